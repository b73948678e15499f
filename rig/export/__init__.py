"""For other tools: tables, traces and spans, all made from the JSON document of a report (`rig.measurement/1`)."""

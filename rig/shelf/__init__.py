"""A folder of sessions at a glance: rows from manifests and kept results, filters, baselines, trends."""

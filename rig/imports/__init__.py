"""Marks out of files that other tools wrote: a dump of webrtc-internals, spans of OpenTelemetry."""

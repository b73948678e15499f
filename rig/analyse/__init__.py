"""Pure functions from samples and records to figures or named refusals. No files, no clock, no globals."""

"""Calibration records on disk: read strictly, chosen by device, written once and never edited."""

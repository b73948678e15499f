"""Verdicts on measurements: what one change did, and whether a budget is kept. Pure functions of JSON documents."""

"""Experiments: a baseline and rounds of one change each, by a plan, and the table that they end in."""

"""Runs and exports brought to others and back: what is pushed, where, and how it is verified."""

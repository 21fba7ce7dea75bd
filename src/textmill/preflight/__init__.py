"""Checks before a run: its data, memory and disk, one step tried; nothing is trained."""

"""Runs of textmill whose settings are Hydra's and whose fit is Lightning's."""

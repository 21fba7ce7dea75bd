"""Runs of weft whose settings are Hydra's and whose fit is Lightning's."""

"""The report of a run: its files, summed up as data, and drawn as a page or as pictures."""

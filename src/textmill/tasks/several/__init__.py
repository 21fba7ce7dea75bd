"""Tasks of several: trained together, or one that has another, finished, run."""

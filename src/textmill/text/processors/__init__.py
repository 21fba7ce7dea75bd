"""Text processors: rows to arrays and outputs to answers, one for each task."""

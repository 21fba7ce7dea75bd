"""Values: from what was written, with its place, to what is typed."""

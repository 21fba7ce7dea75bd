"""checkpoint: see its modules."""

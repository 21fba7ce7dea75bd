"""inference: see its modules."""

"""train: see its modules."""

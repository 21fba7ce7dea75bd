"""models: see its modules."""

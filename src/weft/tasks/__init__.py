"""tasks: see its modules."""

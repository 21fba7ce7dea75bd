"""cli: see its modules."""

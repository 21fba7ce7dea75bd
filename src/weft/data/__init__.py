"""data: see its modules."""

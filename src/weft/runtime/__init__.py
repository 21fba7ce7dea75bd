"""runtime: see its modules."""

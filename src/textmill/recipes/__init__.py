"""recipes: see its modules."""

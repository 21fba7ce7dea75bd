"""text: see its modules."""

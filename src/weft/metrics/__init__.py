"""metrics: see its modules."""

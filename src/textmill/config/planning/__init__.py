"""The plan of a recipe: wired, resolved, keyed, and built on demand."""

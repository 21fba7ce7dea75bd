"""Batches of tasks: encoded from rows, or as a recipe's own code makes them."""

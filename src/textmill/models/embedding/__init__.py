"""Vectors of texts that are near where the texts mean alike: the model, and what it learns by."""

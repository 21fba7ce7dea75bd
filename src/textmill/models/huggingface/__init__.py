"""Textmill's Transformers as transformers has them: parameter names, and weights taken from it."""

"""Weft's Transformers as transformers has them: names of parameters, and weights taken from it."""

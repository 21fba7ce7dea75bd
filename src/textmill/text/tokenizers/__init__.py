"""Tokenizers: text to ids of a vocabulary, and back."""

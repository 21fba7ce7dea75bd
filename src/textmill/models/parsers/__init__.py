"""Parsers: models that build a tree over a sentence, action by action."""

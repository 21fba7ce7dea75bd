"""The words, written by hand: nouns, adjectives, verbs, and where and when."""

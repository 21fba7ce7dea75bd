"""The rules of the two languages: how words agree, join, and make a sentence."""

"""The models that ship with textmill: the rows that each learns from, and how it is made."""

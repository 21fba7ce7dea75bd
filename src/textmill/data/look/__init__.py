"""A first look at a file of rows: how it is read, which column is what, what is odd in it."""

"""What is run by those who change weft, and is no part of it."""

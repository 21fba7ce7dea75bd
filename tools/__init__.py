"""What is run by those who change textmill, and is no part of it."""

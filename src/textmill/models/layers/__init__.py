"""The blocks of a Transformer, one noun a file."""

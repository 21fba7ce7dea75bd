"""Formats of files of rows: how bytes become columns, and what is wrong where they do not."""

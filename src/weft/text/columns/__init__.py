"""Columns of rows, and how each becomes numbers: what text paths of all tasks are made of."""

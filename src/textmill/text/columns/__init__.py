"""Columns of rows, and how each becomes numbers: what text processors of all tasks are made of."""

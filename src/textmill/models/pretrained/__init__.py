"""Models of transformers: their architecture and weights from files, and no stranger's code."""

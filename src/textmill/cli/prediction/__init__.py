"""The rows and the answers of ``textmill predict``: read, asked, shown and written."""

"""The rows and the answers of ``weft predict``: read, asked, shown and written."""

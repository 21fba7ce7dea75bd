"""Where a recipe comes from: its files, what they import, what they include."""

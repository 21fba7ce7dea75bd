"""weft trains, evaluates, exports and serves text models from one typed recipe."""

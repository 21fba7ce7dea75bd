"""What starts other runs: here and, through one object, elsewhere; grids of runs."""

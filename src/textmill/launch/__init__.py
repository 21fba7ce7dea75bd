"""What starts other runs, and processes of one: here, by Slurm or on Ray; grids of runs."""

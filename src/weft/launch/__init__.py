"""What starts other runs: here, by Slurm or on Ray; grids of runs."""

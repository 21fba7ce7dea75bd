"""What weft reaches on real data, beside linear baselines: ``make results``."""

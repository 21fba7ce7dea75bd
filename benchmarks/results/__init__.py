"""What textmill reaches on real data, beside linear baselines: ``make results``."""

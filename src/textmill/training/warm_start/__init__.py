"""The start of training from another run's weights: what fits, and what does not."""

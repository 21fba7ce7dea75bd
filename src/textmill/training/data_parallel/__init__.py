"""What ranks share of a training: batches, sums of gradients, and weights (FSDP)."""

"""What becomes of the weights after a step: averages of them, and units that are pruned."""

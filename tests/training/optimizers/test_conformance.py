"""What holds of every optimizer: its formula, its state, its groups, its rate."""

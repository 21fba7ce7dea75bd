"""What is fitted on rows or read from files beside the ids of tokens."""

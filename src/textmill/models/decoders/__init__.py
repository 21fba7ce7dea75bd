"""Decoders: from embedded tokens and a memory to hidden states, whole or one step at a time."""

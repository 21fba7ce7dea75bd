"""Encoders: from embedded tokens to their representations."""

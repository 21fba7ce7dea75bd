"""Optimizers as components, on one base that says what learns how fast."""

from textmill.config.public_names import on_first_use

__getattr__, __dir__ = on_first_use("textmill.training")

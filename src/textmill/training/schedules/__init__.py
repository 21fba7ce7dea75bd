"""Learning-rate schedules: pure functions of progress, so there is no schedule state to save."""

from textmill.config.public_names import on_first_use

__getattr__, __dir__ = on_first_use("textmill.training")

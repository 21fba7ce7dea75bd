"""Checkpoints: named parts saved whole, verified byte by byte on loading. No pickle anywhere."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.checkpoint.parts import Stateful as Stateful
    from textmill.checkpoint.state import join_state as join_state
    from textmill.checkpoint.state import split_state as split_state
    from textmill.checkpoint.store import Checkpoints as Checkpoints

__getattr__, __dir__ = on_first_use(__name__)

"""Checkpoints: named parts saved whole, verified byte by byte on loading. No pickle anywhere."""

from weft.checkpoint.state import join_state as join_state
from weft.checkpoint.state import split_state as split_state
from weft.checkpoint.store import Checkpoints as Checkpoints
from weft.checkpoint.store import FoundCheckpoint as FoundCheckpoint
from weft.checkpoint.store import Stateful as Stateful

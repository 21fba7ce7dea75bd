"""What a search reads from, and what it finds."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor
from typing_extensions import override

from weft.errors import UserError
from weft.models.decoder_state import DecoderMemory

__all__ = ["BeamReading", "EncodedSource", "Generator", "Hypothesis", "check_state"]


@dataclass(frozen=True)
class Hypothesis:
    """A target sequence that a search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark; forced ids are among them."""
    score: float
    """Log-probability (natural logarithm) of the ids and the end mark, divided by their number to
    the power of the length penalty; higher is better. It is the model's own, but in beam search,
    which ranks by it, bans and penalties count."""


class EncodedSource(Protocol):
    """What a generator keeps of the tokens it read: all that greedy search and draws ask of it."""

    def select(self, indices: Tensor, /) -> None:
        """Keeps the rows of these indices, in their order; an index may repeat."""
        ...


class BeamReading(EncodedSource, Protocol):
    """What beam search asks of it, such as :class:`weft.models.decoder_state.DecoderState`."""

    def repeat(self, times: int, /) -> None:
        """Makes each row a group of ``times`` equal rows, one after another."""
        ...

    @override
    def select(self, indices: Tensor, /, *, groups: Tensor | None = None) -> None:
        """Keeps rows; ``groups`` are the groups they are of, in their order; None: all of them."""
        ...


@runtime_checkable
class Generator(Protocol):
    """A model that decodes one token at a time, such as :class:`Transformer`."""

    training: bool

    def train(self, mode: bool = True) -> object:
        """Switches training mode, as ``torch.nn.Module`` does."""
        ...

    @property
    def max_length(self) -> int:
        """Longest target it has positions for, in tokens."""
        ...

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        """Runs the encoder."""
        ...

    def start(self, memory: DecoderMemory) -> Any:
        """An :class:`EncodedSource` with nothing read; for beam search a :class:`BeamReading`."""
        ...

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Reads a token of each row; returns the next one's logits, which may be changed."""
        ...


def check_state(model: Generator, state: object, *, beam_size: int) -> None:
    """Refuses a decoder's state that lacks what the search will ask for, before it asks.

    Args:
        model: The model that began the state, for the message.
        state: What its ``start`` gave.
        beam_size: Over 1, the search is one of beams.

    Raises:
        UserError: Names the methods that are missing.

    Example:
        >>> from weft.models.decoder_state import DecoderState
        >>> import torch
        >>> check_state(None, DecoderState([torch.zeros(2, 1, 1, 3, 4)], None), beam_size=4)
    """
    select = getattr(state, "select", None)
    missing = []
    if not callable(select):
        missing.append("select(indices)" if beam_size == 1 else "select(indices, groups=None)")
    elif beam_size > 1 and not _takes(select, "groups"):
        missing.append("groups=None in its select(indices)")
    if beam_size > 1 and not callable(getattr(state, "repeat", None)):
        missing.append("repeat(times)")
    if not missing:
        return
    greedy = (
        "" if beam_size == 1 else ", or set decoding.beam_size=1, which needs select(indices) alone"
    )
    raise UserError(
        f"{_name(model)}.start(memory) gives a state, {_name(state)}, without "
        f"{' and '.join(missing)}, which the search needs (decoding.beam_size is {beam_size}). "
        f"weft.models.decoder_state.DecoderState has all that a search asks for; add it{greedy}."
    )


def _takes(function: Callable[..., object], name: str) -> bool:
    """Whether a function takes an argument of this name; True where nothing tells."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)


def _name(thing: object) -> str:
    return type(thing).__name__

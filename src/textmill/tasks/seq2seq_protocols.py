"""What a sequence-to-sequence task asks of its module: scores to train, and steps to generate."""

from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from textmill.errors import UserError
from textmill.models.decoding.search_state import Generator
from textmill.tasks.batches.real_places import at_places

_GENERATES = {
    "max_length": "max_length",
    "encode": "encode(source, source_lengths) -> memory",
    "start": "start(memory) -> state",
    "step": "step(tokens, state) -> logits",
}


@runtime_checkable
class HiddenStates(Protocol):
    """A module in two halves, so that padding is never scored over the vocabulary."""

    def hidden(self, source: Tensor, source_lengths: Tensor, target_in: Tensor, /) -> Tensor:
        """The last states. *Shape:* :math:`(B,T,D)`."""

    def project(self, hidden: Tensor, /) -> Tensor:
        """Logits of some of them. *Shape:* :math:`(N,D)` to :math:`(N,V)`."""


@runtime_checkable
class LinearOutput(HiddenStates, Protocol):
    """One whose ``project`` is an affine map: its loss can be had without all scores at once."""

    output_weight: Tensor
    """*Shape:* :math:`(V,D)`."""
    output_bias: Tensor | None
    """*Shape:* :math:`(V)`."""


@runtime_checkable
class HasMaxLength(Protocol):
    """A module that has positions for so many tokens."""

    max_length: int | None


def label_logits(
    module: nn.Module, source: Tensor, source_lengths: Tensor, *, target_in: Tensor, places: Tensor
) -> Tensor:
    """Scores of the next token at the positions that are not padding.

    Args:
        module: One with ``hidden`` and ``project``, or any that
            ``module(source, source_lengths, target_in)`` scores all positions, :math:`(B,T,V)`.
        source: Token ids. *Shape:* :math:`(B,S)`.
        source_lengths: Real tokens of each row. *Shape:* :math:`(B)`.
        target_in: What the decoder reads. *Shape:* :math:`(B,T)`.
        places: Those whose label is not padding, as ``real_places`` gives them.

    Returns:
        Logits. *Shape:* :math:`(N,V)`.

    Raises:
        UserError: The module gives something else.
    """
    if isinstance(module, HiddenStates):
        states = module.hidden(source, source_lengths, target_in)
        return module.project(at_places(states, places))
    logits = module(source, source_lengths, target_in)
    found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if not isinstance(logits, Tensor) or logits.ndim != 3 or logits.shape[:2] != target_in.shape:
        batch, length = target_in.shape
        raise UserError(
            f"{type(module).__name__}(source, source_lengths, target_in) must give logits of shape "
            f"({batch}, {length}, vocabulary), but gave {found}."
        )
    return at_places(logits, places)


def generator_of(module: nn.Module) -> Generator:
    """The module as what searches read from.

    Raises:
        UserError: It cannot generate; names what is missing.
    """
    if isinstance(module, Generator):
        return module
    missing = [text for name, text in _GENERATES.items() if not hasattr(module, name)]
    raise UserError(
        f"{type(module).__name__} can be trained, but generates no text: it has no "
        f"{', no '.join(missing)}. Generation needs these, where the state has select(indices), "
        "and repeat(times) and select(indices, groups=None) for beam search; "
        "textmill.models.Transformer has them all. Add them, or set task.generate=false to "
        "evaluate the loss alone."
    )


def longest_input(module: nn.Module) -> int | None:
    """The most tokens the module has positions for; None where it does not say."""
    found = module.max_length if isinstance(module, HasMaxLength) else None
    return found if isinstance(found, int) else None

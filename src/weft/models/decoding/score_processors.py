"""What changes the scores of next tokens before a search chooses among them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, final

import torch
from torch import Tensor

from weft.errors import UserError
from weft.models.decoding.forced_prefix import Forced
from weft.models.decoding.search_settings import Decoding

__all__ = [
    "MinLength",
    "NoRepeatedNgrams",
    "RepetitionPenalty",
    "ScoreProcessor",
    "Scores",
    "UnknownPenalty",
    "processors_of",
]


class ScoreProcessor(Protocol):
    """Changes scores by what was generated."""

    @property
    def only_bans(self) -> bool:
        """Whether it changes no score but to minus infinity."""
        ...

    def __call__(self, scores: Tensor, ids: Tensor, start: int, /) -> Tensor:
        """Changes scores in place.

        Args:
            scores: Of the next token: logits, or log-probabilities in beam search. *Shape:*
                :math:`(N,V)`.
            ids: What was generated of each row, the prefix first. *Shape:* :math:`(N,T)`.
            start: How many ids are the prefix.

        Returns:
            The scores.
        """
        ...


@final
@dataclass(frozen=True)
class RepetitionPenalty:
    r"""Makes tokens that occurred less likely (CTRL, Keskar et al. 2019, section 4.1).

    A score :math:`s` of a token of the target so far becomes :math:`s / \theta` where it is
    positive and :math:`s \theta` where it is negative.

    Example:
        >>> penalty = RepetitionPenalty(2.0)
        >>> penalty(torch.tensor([[4.0, -1.0, 3.0]]), torch.tensor([[0, 1, 1]]), 1).tolist()
        [[2.0, -2.0, 3.0]]
    """

    only_bans: ClassVar[bool] = False

    penalty: float
    r"""The :math:`\theta`."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`ScoreProcessor`."""
        found = scores.gather(1, ids)
        less = torch.where(found < 0, found * self.penalty, found / self.penalty)
        return scores.scatter_(1, ids, less)


@final
@dataclass(frozen=True)
class UnknownPenalty:
    """Makes the unknown token, which stands for no text, less likely.

    Example:
        >>> import torch
        >>> UnknownPenalty(1.5, unk_idx=1)(torch.zeros(1, 2), torch.tensor([[0]]), 1).tolist()
        [[0.0, -1.5]]
    """

    only_bans: ClassVar[bool] = False

    penalty: float
    """Taken from its score; infinite bans it."""
    unk_idx: int
    """Id of the unknown token."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`ScoreProcessor`."""
        scores[:, self.unk_idx] -= self.penalty
        return scores


@final
@dataclass(frozen=True)
class NoRepeatedNgrams:
    """Bans a token that would make the last ``size`` ids occur a second time (Paulus et al. 2018).

    Example:
        >>> NoRepeatedNgrams(2)(torch.zeros(1, 4), torch.tensor([[1, 2, 3, 1]]), 0).tolist()
        [[0.0, 0.0, -inf, 0.0]]
    """

    only_bans: ClassVar[bool] = True

    size: int
    """Tokens of a sequence, from 1."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`ScoreProcessor`."""
        if ids.shape[1] < self.size:
            return scores
        windows = ids.unfold(1, self.size, 1)
        begun = ids[:, ids.shape[1] - self.size + 1 :]
        again = (windows[:, :, :-1] == begun[:, None]).all(dim=2)
        rows, places = again.nonzero(as_tuple=True)
        scores[rows, windows[rows, places, -1]] = -torch.inf
        return scores


@final
@dataclass(frozen=True)
class MinLength:
    """Bans the end mark until enough ids were generated.

    Example:
        >>> MinLength(2, eos_idx=0)(torch.zeros(1, 2), torch.tensor([[1, 5]]), 1).tolist()
        [[-inf, 0.0]]
    """

    only_bans: ClassVar[bool] = True

    length: int
    """Ids without the prefix and the end mark."""
    eos_idx: int
    """Id of the end mark."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`ScoreProcessor`."""
        if ids.shape[1] - start < self.length:
            scores[:, self.eos_idx] = -torch.inf
        return scores


def processors_of(decoding: Decoding, *, eos_idx: int, unk_idx: int | None) -> list[ScoreProcessor]:
    """The processors that settings ask for, in the order of ``transformers``.

    Raises:
        UserError: The unknown token has a penalty, and no id.

    Example:
        >>> processors_of(Decoding(min_length=2), eos_idx=3, unk_idx=1)
        [MinLength(length=2, eos_idx=3)]
    """
    found: list[ScoreProcessor] = []
    if decoding.repetition_penalty != 1:
        found.append(RepetitionPenalty(decoding.repetition_penalty))
    if decoding.unknown_penalty != 0:
        if unk_idx is None:
            raise UserError("decoding.unknown_penalty needs unk_idx, the unknown token's id.")
        found.append(UnknownPenalty(decoding.unknown_penalty, unk_idx))
    if decoding.no_repeat_ngram:
        found.append(NoRepeatedNgrams(decoding.no_repeat_ngram))
    if decoding.min_length:
        found.append(MinLength(decoding.min_length, eos_idx))
    return found


@final
class Scores:
    """All that changes the scores of a search, in order; forced ids come last and always hold.

    Where everything is banned, the target ends: its end mark keeps its score.

    Args:
        processors: In their order.
        forced: Ids each row begins with, if any.
        eos_idx: Id of the end mark.
    """

    def __init__(
        self, processors: Sequence[ScoreProcessor], forced: Forced | None, *, eos_idx: int
    ) -> None:
        self.processors, self.forced, self.eos_idx = processors, forced, eos_idx
        self.only_ban = all(processor.only_bans for processor in processors)
        """Whether no score changes but to minus infinity."""
        # Others ban two tokens at most, and no vocabulary is as small.
        self._may_ban_all = any(isinstance(p, NoRepeatedNgrams) for p in processors)

    def change(self, length: int) -> bool:
        """Whether the scores change after ``length`` ids were generated."""
        return bool(self.processors) or (self.forced is not None and length < self.forced.longest)

    def repeated(self, rows: Tensor) -> "Scores":
        """The same for rows of these numbers, which may repeat."""
        forced = None if self.forced is None else self.forced.repeated(rows)
        return Scores(self.processors, forced, eos_idx=self.eos_idx)

    def __call__(self, scores: Tensor, ids: Tensor, start: int, *, rows: Tensor) -> Tensor:
        """Changes scores in place.

        Args:
            scores: *Shape:* :math:`(N,V)`.
            ids: What was generated of each row, the prefix first. *Shape:* :math:`(N,T)`.
            start: How many ids are the prefix.
            rows: Each row's number among the sources. *Shape:* :math:`(N)`.

        Returns:
            The scores.
        """
        forced = None
        if self.forced is not None:
            forced = self.forced.at(ids.shape[1] - start, rows, scores)
        eos = scores[:, self.eos_idx].clone() if self._may_ban_all else None
        for processor in self.processors:
            scores = processor(scores, ids, start)
        if forced is not None:
            scores = forced.hold(scores)
        if eos is not None:
            none_left = (scores == -torch.inf).all(dim=1)
            # Without a branch, which would wait for the device.
            found = scores[:, self.eos_idx]
            scores[:, self.eos_idx] = torch.where(none_left, eos, found)
        return scores

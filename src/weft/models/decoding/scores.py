"""What changes the scores of next tokens before a search chooses among them."""

from collections.abc import Sequence
from typing import Protocol, final

import torch
from torch import Tensor

from weft.errors import UserError
from weft.models.decoding.forced import Forced
from weft.models.decoding.min_length import MinLength
from weft.models.decoding.ngrams import NoRepeatedNgrams
from weft.models.decoding.repetition import RepetitionPenalty
from weft.models.decoding.settings import Decoding
from weft.models.decoding.unknown import UnknownPenalty

__all__ = ["ScoreProcessor", "Scores", "processors_of"]


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

"""What changes the scores of next tokens before a search chooses among them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from textmill.errors import UserError
from textmill.models.decoding.search_settings import Decoding


def penalize_repetition(scores: Tensor, ids: Tensor, penalty: float) -> Tensor:
    r"""Makes tokens that occurred less likely, in place (CTRL, Keskar et al. 2019, section 4.1).

    A score :math:`s` of a token of ``ids`` becomes :math:`s / \theta` where it is positive and
    :math:`s \theta` where it is negative. *Shape:* :math:`(N,V)` and :math:`(N,T)`.

    Example:
        >>> scores = torch.tensor([[4.0, -1.0, 3.0]])
        >>> penalize_repetition(scores, torch.tensor([[0, 1, 1]]), 2.0).tolist()
        [[2.0, -2.0, 3.0]]
    """
    found = scores.gather(1, ids)
    less = torch.where(found < 0, found * penalty, found / penalty)
    return scores.scatter_(1, ids, less)


def ban_repeated_ngrams(scores: Tensor, ids: Tensor, size: int) -> Tensor:
    """Bans, in place, a token that would make the last ``size`` ids occur a second time.

    Source: Paulus et al. 2018. *Shape:* :math:`(N,V)` and :math:`(N,T)`.

    Example:
        >>> ban_repeated_ngrams(torch.zeros(1, 4), torch.tensor([[1, 2, 3, 1]]), 2).tolist()
        [[0.0, 0.0, -inf, 0.0]]
    """
    if ids.shape[1] < size:
        return scores
    windows = ids.unfold(1, size, 1)
    begun = ids[:, ids.shape[1] - size + 1 :]
    again = (windows[:, :, :-1] == begun[:, None]).all(dim=2)
    rows, places = again.nonzero(as_tuple=True)
    scores[rows, windows[rows, places, -1]] = -torch.inf
    return scores


@dataclass(frozen=True)
class Scores:
    """All that changes the scores of a search, in the order of ``transformers``.

    Forced ids come last and always hold. Where everything is banned, the target ends: its end mark
    keeps its score.
    """

    decoding: Decoding
    """The settings."""
    eos_idx: int
    """Id of the end mark."""
    unk_idx: int | None = None
    """Id of the unknown token; only its penalty needs it."""
    forced: Tensor | None = None
    """Ids that each row's target begins with, after the prefix that all have; -1 is padding.
    *Shape:* :math:`(B,F)`."""

    def __post_init__(self) -> None:
        if self.decoding.unknown_penalty and self.unk_idx is None:
            raise UserError("decoding.unknown_penalty needs unk_idx, the unknown token's id.")

    @property
    def only_ban(self) -> bool:
        """Whether a score that changes becomes minus infinity."""
        return self.decoding.repetition_penalty == 1 and not self.decoding.unknown_penalty

    def forcing(self, ids: Sequence[Sequence[int]], device: torch.device) -> "Scores":
        """The same with these ids at the beginning of each row's target; a row may have none."""
        longest = max(map(len, ids), default=0)
        padded = [[*row, *[-1] * (longest - len(row))] for row in ids]
        return replace(self, forced=torch.tensor(padded, dtype=torch.int64, device=device))

    def repeated(self, rows: Tensor) -> "Scores":
        return self if self.forced is None else replace(self, forced=self.forced[rows])

    def change(self, length: int) -> bool:
        """Whether the scores change after ``length`` ids were generated."""
        if self.forced is not None and length < self.forced.shape[1]:
            return True
        return bool(not self.only_ban or self.decoding.no_repeat_ngram or self.decoding.min_length)

    def __call__(self, scores: Tensor, ids: Tensor, start: int, *, rows: Tensor) -> Tensor:
        """Changes scores, :math:`(N,V)`, of next tokens in place, and gives them back.

        They are logits, or log-probabilities in beam search. ``ids`` are what was generated of
        each row, :math:`(N,T)`, whose first ``start`` are the prefix; ``rows`` are the rows'
        numbers among the sources, :math:`(N)`.
        """
        length = ids.shape[1] - start
        if self.forced is None or length >= self.forced.shape[1]:
            return self._changed(scores, ids, length)
        wanted = self.forced[rows, length]
        held = (wanted >= 0).nonzero()[:, 0]
        wanted = wanted[held]
        kept = scores[held, wanted]  # as they are before any is banned
        scores = self._changed(scores, ids, length)
        scores[held] = -torch.inf
        scores[held, wanted] = kept
        return scores

    def _changed(self, scores: Tensor, ids: Tensor, length: int) -> Tensor:
        decoding = self.decoding
        # Others ban two tokens at most, and no vocabulary is as small.
        eos = scores[:, self.eos_idx].clone() if decoding.no_repeat_ngram else None
        if decoding.repetition_penalty != 1:
            penalize_repetition(scores, ids, decoding.repetition_penalty)
        if decoding.unknown_penalty:
            assert self.unk_idx is not None
            # A slice is empty where the model has no score for the token.
            scores[:, self.unk_idx : self.unk_idx + 1] -= decoding.unknown_penalty
        if decoding.no_repeat_ngram:
            ban_repeated_ngrams(scores, ids, decoding.no_repeat_ngram)
        if length < decoding.min_length:
            scores[:, self.eos_idx] = -torch.inf
        if eos is not None:
            none_left = (scores == -torch.inf).all(dim=1)
            # Without a branch, which would wait for the device.
            scores[:, self.eos_idx] = torch.where(none_left, eos, scores[:, self.eos_idx])
        return scores

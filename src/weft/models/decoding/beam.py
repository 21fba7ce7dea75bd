"""Beam search: the best sequences among those that stay among the best at every length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from weft.errors import UserError
from weft.models.decoding.hypothesis import Generator, Hypothesis, length_limits, read_prefix

__all__ = ["EarlyStopping", "beam_search"]

EarlyStopping = Literal["heuristic", "first", "never"]


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The numbers of a search."""

    beam_size: int
    length_penalty: float
    early_stopping: EarlyStopping
    eos_idx: int


@torch.inference_mode()
def beam_search(
    model: Generator,
    source: Tensor,
    source_lengths: Tensor | None,
    *,
    prefix: Sequence[int],
    eos_idx: int,
    max_length: int | Tensor,
    beam_size: int,
    length_penalty: float = 1.0,
    n_best: int = 1,
    early_stopping: EarlyStopping = "heuristic",
) -> list[list[Hypothesis]]:
    r"""Follows the ``beam_size`` likeliest unfinished sequences of each row, a token at a time.

    A finished sequence :math:`y` scores :math:`\log p(y) / |y|^\alpha` with :math:`\alpha` the length penalty
    and :math:`|y|` its ids, the end mark included and the prefix not. A sequence that reaches ``max_length``
    counts as finished. The search is that of ``transformers``, step for step.

    Args:
        model: The model, in evaluation mode.
        source: Token ids. *Shape:* :math:`(B,S)`.
        source_lengths: Real tokens of each row; None: all are. *Shape:* :math:`(B)`.
        prefix: Ids every target starts with: the start mark, and a language tag where there is one.
        eos_idx: Id of the end mark.
        max_length: The most ids to generate, the end mark included. One number, or *Shape:* :math:`(B)`.
        beam_size: Sequences followed, and finished ones kept.
        length_penalty: :math:`\alpha`; 0 compares log-probabilities, over 0 favours long sequences.
        n_best: Hypotheses to return, at most ``beam_size``.
        early_stopping: When a row with ``beam_size`` finished sequences stops: when no unfinished one would be
            better if it ended at this length (``heuristic``; transformers' False), at once (``first``; True), or
            when none can become better at any length up to ``max_length`` (``never``).

    Returns:
        For each row of ``source``, in order, up to ``n_best`` hypotheses, the best first. Fewer where
        the vocabulary allows no more.
    """
    if not 1 <= n_best <= beam_size:
        raise UserError(f"n_best must be from 1 to beam_size, but n_best is {n_best} and beam_size {beam_size}.")
    limits = length_limits(max_length, model=model, source=source, prefix=prefix)
    search = _Search(
        beam_size=beam_size, length_penalty=length_penalty, early_stopping=early_stopping, eos_idx=eos_idx
    )
    state = model.start(model.encode(source, source_lengths))
    beams = _Beams(limits, search)
    logits = read_prefix(model, state, prefix)
    state.repeat(beam_size)
    logits = logits.repeat_interleave(beam_size, dim=0)
    while True:
        parents = beams.extend(logits.float().log_softmax(dim=-1))
        kept = beams.open_groups()
        if kept is None:
            state.select(parents.flatten())
        elif not len(kept):
            return beams.results(n_best)
        else:
            beams.keep(kept)
            state.select(parents[kept].flatten(), groups=kept)
        logits = model.step(beams.last_tokens(), state)


class _Beams:
    """The sequences of all rows (groups of beams) that are still searched, and the finished ones of every row.

    Finished sequences are kept by input row, unfinished ones by group; ``rows`` maps groups to rows.
    """

    def __init__(self, limits: Tensor, search: _Search) -> None:
        self.search = search
        groups, beams, longest = len(limits), search.beam_size, int(limits.max())
        self.length = 0
        self.rows = torch.arange(groups, device=limits.device)
        self.limits = limits
        self.ids = limits.new_zeros((groups, beams, longest))
        # All beams start equal: only the first may have successors at first.
        self.log_probs = torch.full((groups, beams), -torch.inf, device=limits.device)
        self.log_probs[:, 0] = 0.0
        self.done_ids = self.ids.clone()
        self.done_lengths = limits.new_zeros((groups, beams))
        self.done_scores = torch.full((groups, beams), -torch.inf, device=limits.device)

    def extend(self, log_probs: Tensor) -> Tensor:
        """Moves every group on by one token.

        Args:
            log_probs: Of the next token. *Shape:* :math:`(GK,V)`.

        Returns:
            The row of the state that each beam continues. *Shape:* :math:`(G,K)`.
        """
        groups, beams = self.log_probs.shape
        vocabulary = log_probs.shape[-1]
        sums = self.log_probs[:, :, None] + log_probs.view(groups, beams, vocabulary)
        # At most one successor of a beam is the end mark, so 2K candidates hold K that go on.
        candidates = min(2 * beams, beams * vocabulary)
        best, flat = sums.flatten(1).topk(candidates, dim=1)
        parents, tokens = flat // vocabulary, flat % vocabulary
        ids = _gather(self.ids, parents)
        ids[:, :, self.length] = tokens
        self.length += 1
        ended = (tokens == self.search.eos_idx) | (self.limits <= self.length)[:, None]
        # Only candidates among the K best may end: those behind them only stand in for the ended.
        self._finish(ids[:, :beams], best[:, :beams], ended[:, :beams])
        going_on, chosen = best.masked_fill(ended, -torch.inf).topk(beams, dim=1)
        self.log_probs = going_on
        self.ids = _gather(ids, chosen)
        first_row = torch.arange(groups, device=parents.device)[:, None] * beams
        return first_row + parents.gather(1, chosen)

    def _finish(self, ids: Tensor, log_probs: Tensor, ended: Tensor) -> None:
        """Merges ended candidates into the finished sequences of their rows and keeps the K best."""
        scores = (log_probs / self.length**self.search.length_penalty).masked_fill(~ended, -torch.inf)
        lengths = torch.full_like(self.done_lengths[self.rows], self.length)
        merged = torch.cat([self.done_scores[self.rows], scores], dim=1)
        best, chosen = merged.topk(self.search.beam_size, dim=1)
        self.done_scores[self.rows] = best
        self.done_ids[self.rows] = _gather(torch.cat([self.done_ids[self.rows], ids], dim=1), chosen)
        self.done_lengths[self.rows] = torch.cat([self.done_lengths[self.rows], lengths], dim=1).gather(1, chosen)

    def open_groups(self) -> Tensor | None:
        """Numbers of the groups to go on with; None if all are."""
        worst = self.done_scores[self.rows, -1]
        full = worst > -torch.inf
        if self.search.early_stopping == "first":
            improvable = ~full
        else:
            at_limit = self.search.early_stopping == "never" and self.search.length_penalty > 0
            lengths = self.limits if at_limit else torch.full_like(self.limits, self.length)
            improvable = ~full | (self.log_probs[:, 0] / lengths**self.search.length_penalty > worst)
        open_ = improvable & (self.limits > self.length) & (self.log_probs[:, 0] > -torch.inf)
        return None if bool(open_.all()) else open_.nonzero()[:, 0]

    def keep(self, groups: Tensor) -> None:
        """Drops all groups but these."""
        self.rows, self.limits = self.rows[groups], self.limits[groups]
        self.ids, self.log_probs = self.ids[groups], self.log_probs[groups]

    def last_tokens(self) -> Tensor:
        """The newest token of each beam. *Shape:* :math:`(GK)`."""
        return self.ids[:, :, self.length - 1].flatten()

    def results(self, n_best: int) -> list[list[Hypothesis]]:
        """The best finished sequences of every row."""
        rows = zip(self.done_ids.tolist(), self.done_lengths.tolist(), self.done_scores.tolist(), strict=True)
        found = []
        for row in rows:
            best = [h for h in zip(*row, strict=True) if h[2] > -torch.inf][:n_best]
            found.append([self._hypothesis(*h) for h in best])
        return found

    def _hypothesis(self, ids: list[int], length: int, score: float) -> Hypothesis:
        ended = ids[length - 1] == self.search.eos_idx
        return Hypothesis(ids[: length - ended], score)


def _gather(ids: Tensor, beams: Tensor) -> Tensor:
    """Rows ``beams`` of each group. *Shape:* :math:`(G,K,T)`, :math:`(G,N)` to :math:`(G,N,T)`."""
    return ids.gather(1, beams[:, :, None].expand(-1, -1, ids.shape[2]))

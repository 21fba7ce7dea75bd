"""Beam search: the best sequences among those that stay among the best at every length."""

from collections.abc import Sequence

import torch
from torch import Tensor

from weft.models.decoding.hypothesis import Generator, Hypothesis, read_prefix
from weft.models.decoding.settings import Decoding

__all__ = ["beam_search"]


@torch.inference_mode()
def beam_search(
    model: Generator,
    source: Tensor,
    source_lengths: Tensor | None,
    decoding: Decoding,
    *,
    prefix: Sequence[int],
    eos_idx: int,
) -> list[list[Hypothesis]]:
    r"""Follows the ``beam_size`` likeliest unfinished sequences of each row, a token at a time.

    A finished sequence :math:`y` scores :math:`\log p(y) / |y|^\alpha` with :math:`\alpha` the
    length penalty and :math:`|y|` its ids, the end mark included and the prefix not. A sequence at
    its length limit counts as finished. The search is that of ``transformers``, step for step.

    Args:
        model: The model, in evaluation mode.
        source: Token ids. *Shape:* :math:`(B,S)`.
        source_lengths: Real tokens of each row; None: all are. *Shape:* :math:`(B)`.
        decoding: The settings.
        prefix: Ids every target starts with: the start mark, and a language tag where there is one.
        eos_idx: Id of the end mark.

    Returns:
        For each row of ``source``, in order, ``n_best`` hypotheses, the best first; fewer where the
        vocabulary and the length limit allow no more.
    """
    # The last id generated is never read, so it needs no position.
    longest = model.max_length - len(prefix) + 1
    limits = decoding.limits(source, source_lengths, longest=longest)
    state = model.start(model.encode(source, source_lengths))
    beams = _Beams(limits, decoding, eos_idx=eos_idx)
    logits = read_prefix(model, state, prefix)
    state.repeat(decoding.beam_size)
    logits = logits.repeat_interleave(decoding.beam_size, dim=0)
    while True:
        parents = beams.extend(logits.float().log_softmax(dim=-1))
        kept = beams.open_groups()
        if kept is None:
            state.select(parents.flatten())
        elif not len(kept):
            return beams.results(decoding.n_best)
        else:
            beams.keep(kept)
            state.select(parents[kept].flatten(), groups=kept)
        logits = model.step(beams.last_tokens(), state)


class _Beams:
    """The sequences of rows that are still searched, and the finished ones of every row.

    Finished sequences are kept by input row, unfinished ones by group; ``rows`` maps groups to
    rows.
    """

    def __init__(self, limits: Tensor, decoding: Decoding, *, eos_idx: int) -> None:
        self.decoding, self.eos_idx = decoding, eos_idx
        groups, beams, longest = len(limits), decoding.beam_size, int(limits.max())
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
        ended = (tokens == self.eos_idx) | (self.limits <= self.length)[:, None]
        # Only candidates among the K best may end: those behind them only stand in for the ended.
        self._finish(ids[:, :beams], best[:, :beams], ended[:, :beams])
        going_on, chosen = best.masked_fill(ended, -torch.inf).topk(beams, dim=1)
        self.log_probs = going_on
        self.ids = _gather(ids, chosen)
        first_beam = torch.arange(groups, device=parents.device)[:, None] * beams
        return first_beam + parents.gather(1, chosen)

    def _finish(self, ids: Tensor, log_probs: Tensor, ended: Tensor) -> None:
        """Merges ended candidates into the finished sequences of their rows; the K best stay."""
        scores = (log_probs / self.length**self.decoding.length_penalty).masked_fill(
            ~ended, -torch.inf
        )
        lengths = torch.full_like(self.done_lengths[self.rows], self.length)
        merged = torch.cat([self.done_scores[self.rows], scores], dim=1)
        best, chosen = merged.topk(self.decoding.beam_size, dim=1)
        self.done_scores[self.rows] = best
        self.done_ids[self.rows] = _gather(
            torch.cat([self.done_ids[self.rows], ids], dim=1), chosen
        )
        self.done_lengths[self.rows] = torch.cat(
            [self.done_lengths[self.rows], lengths], dim=1
        ).gather(1, chosen)

    def open_groups(self) -> Tensor | None:
        """Numbers of the groups to go on with; None if all are."""
        worst = self.done_scores[self.rows, -1]
        full = worst > -torch.inf
        if self.decoding.early_stopping == "first":
            improvable = ~full
        else:
            at_limit = self.decoding.early_stopping == "never" and self.decoding.length_penalty > 0
            lengths = self.limits if at_limit else torch.full_like(self.limits, self.length)
            improvable = ~full | (
                self.log_probs[:, 0] / lengths**self.decoding.length_penalty > worst
            )
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
        rows = zip(
            self.done_ids.tolist(),
            self.done_lengths.tolist(),
            self.done_scores.tolist(),
            strict=True,
        )
        found = []
        for row in rows:
            best = [h for h in zip(*row, strict=True) if h[2] > -torch.inf][:n_best]
            found.append([self._hypothesis(*h) for h in best])
        return found

    def _hypothesis(self, ids: list[int], length: int, score: float) -> Hypothesis:
        ended = ids[length - 1] == self.eos_idx
        return Hypothesis(ids[: length - ended], score)


def _gather(ids: Tensor, beams: Tensor) -> Tensor:
    """Rows ``beams`` of each group. *Shape:* :math:`(G,K,T)`, :math:`(G,N)` to :math:`(G,N,T)`."""
    return ids.gather(1, beams[:, :, None].expand(-1, -1, ids.shape[2]))

"""Beam search: the best sequences among those that stay among the best at every length."""

import torch
from torch import Tensor

from textmill.models.decoding.search_state import (
    DROP_SHARE,
    Begun,
    Generator,
    Hypothesis,
    Request,
    SearchState,
)
from textmill.models.decoding.topk import best_successors, log_sums


@torch.inference_mode()
def beam_search(model: Generator, request: Request) -> list[list[Hypothesis]]:
    r"""Follows the ``beam_size`` likeliest unfinished sequences of each row, a token at a time.

    A finished sequence :math:`y` scores :math:`\log p(y) / |y|^\alpha` with :math:`\alpha` the
    length penalty and :math:`|y|` its ids, the end mark included and the prefix not. A sequence at
    its length limit counts as finished. The search is that of ``transformers``, step for step. A
    row has fewer hypotheses than ``n_best`` where the vocabulary and the length limit allow no
    more.
    """
    begun = request.begin(model)
    logits = begun.logits
    state: SearchState = begun.state
    beams = _Beams(request, begun)
    beam_size = request.decoding.beam_size
    state.repeat(beam_size)
    logits = logits.repeat_interleave(beam_size, dim=0)
    while True:
        scores = logits.float()
        totals = log_sums(scores)
        if begun.scores.change(beams.length):
            if not begun.scores.only_ban:  # a penalty is one of log-probabilities
                scores, totals = scores - totals[:, None], torch.zeros_like(totals)
            rows = beams.rows.repeat_interleave(beam_size)
            scores = begun.scores(scores, beams.so_far(), beams.start, rows=rows)
        parents = beams.extend(scores, totals)
        open_ = beams.close()
        num_open = int(open_.sum())
        if not num_open:
            return beams.results()
        if num_open <= (1 - DROP_SHARE) * len(open_):
            kept = open_.nonzero()[:, 0]
            beams.keep(kept)
            state.select(parents[kept].flatten(), groups=kept)
        else:
            state.select(parents.flatten())
        logits = model.step(beams.last_tokens(), state)


class _Beams:
    """The sequences of rows that are still searched, and the finished ones of every row.

    Finished sequences are kept by input row, unfinished ones by group; ``rows`` maps groups to
    rows. A group that is closed, but not dropped yet, has no beam of a finite score.
    """

    def __init__(self, request: Request, begun: Begun) -> None:
        limits = begun.limits
        self.request, self.decoding = request, request.decoding
        self.start = len(request.prefix)
        groups, beams = len(limits), self.decoding.beam_size
        self.length = begun.read.shape[1]
        self.rows = torch.arange(groups, device=limits.device)
        self.limits = limits
        self.ids = limits.new_zeros((groups, beams, self.start + int(limits.max())))
        self.ids[:, :, : self.start] = limits.new_tensor(request.prefix)
        self.ids[:, :, self.start : self.start + self.length] = begun.read[:, None]
        # All beams start equal: only the first may have successors at first.
        self.log_probs = torch.full((groups, beams), -torch.inf, device=limits.device)
        self.log_probs[:, 0] = begun.log_probs
        self.done_ids = self.ids.clone()
        self.done_lengths = limits.new_zeros((groups, beams))
        self.done_scores = torch.full((groups, beams), -torch.inf, device=limits.device)

    def extend(self, scores: Tensor, totals: Tensor) -> Tensor:
        """Moves every group on by one token; gives the row of the state that each beam continues.

        ``totals`` is what is taken from a beam's scores to have log-probabilities. *Shape:*
        :math:`(GK,V)` and :math:`(GK)` to :math:`(G,K)`.
        """
        groups, beams = self.log_probs.shape
        # At most one successor of a beam is the end mark, so 2K candidates hold K that go on.
        candidates = min(2 * beams, beams * scores.shape[1])
        offsets = self.log_probs - totals.view(groups, beams)
        best, parents, tokens = best_successors(scores, offsets, candidates)
        ids = _gather(self.ids, parents)
        ids[:, :, self.start + self.length] = tokens
        self.length += 1
        ended = (tokens == self.request.eos_idx) | (self.limits <= self.length)[:, None]
        # Only candidates among the K best may end: those behind them only stand in for the ended.
        self._finish(ids[:, :beams], best[:, :beams], ended[:, :beams])
        self.log_probs, chosen = best.masked_fill(ended, -torch.inf).topk(beams, dim=1)
        self.ids = _gather(ids, chosen)
        first_beam = torch.arange(groups, device=parents.device)[:, None] * beams
        return first_beam + parents.gather(1, chosen)

    def _finish(self, ids: Tensor, log_probs: Tensor, ended: Tensor) -> None:
        if not bool(ended.any()):
            return
        rows, scores = self.rows, log_probs / self.length**self.decoding.length_penalty
        scores = scores.masked_fill(~ended, -torch.inf)
        lengths = torch.full_like(self.done_lengths[rows], self.length)
        merged = torch.cat([self.done_scores[rows], scores], dim=1)
        self.done_scores[rows], chosen = merged.topk(self.decoding.beam_size, dim=1)
        self.done_ids[rows] = _gather(torch.cat([self.done_ids[rows], ids], dim=1), chosen)
        lengths = torch.cat([self.done_lengths[rows], lengths], dim=1)
        self.done_lengths[rows] = lengths.gather(1, chosen)

    def close(self) -> Tensor:
        """Closes the groups that cannot become better. *Shape:* :math:`(G)`, True if open."""
        worst = self.done_scores[self.rows, -1]
        full = worst > -torch.inf
        stopping, penalty = self.decoding.early_stopping, self.decoding.length_penalty
        improvable = ~full
        if stopping != "first":
            at_limit = stopping == "never" and penalty > 0
            lengths = self.limits if at_limit else torch.full_like(self.limits, self.length)
            improvable |= self.log_probs[:, 0] / lengths**penalty > worst
        open_ = improvable & (self.limits > self.length) & (self.log_probs[:, 0] > -torch.inf)
        self.log_probs = self.log_probs.masked_fill(~open_[:, None], -torch.inf)
        return open_

    def keep(self, groups: Tensor) -> None:
        self.rows, self.limits = self.rows[groups], self.limits[groups]
        self.ids, self.log_probs = self.ids[groups], self.log_probs[groups]

    def so_far(self) -> Tensor:
        """What each beam generated, the prefix first. *Shape:* :math:`(GK,T)`."""
        return self.ids[:, :, : self.start + self.length].flatten(0, 1)

    def last_tokens(self) -> Tensor:
        """The newest token of each beam. *Shape:* :math:`(GK)`."""
        return self.ids[:, :, self.start + self.length - 1].flatten()

    def results(self) -> list[list[Hypothesis]]:
        done = (self.done_ids[:, :, self.start :], self.done_lengths, self.done_scores)
        rows = zip(*(part.tolist() for part in done), strict=True)
        finished = ([h for h in zip(*row, strict=True) if h[2] > -torch.inf] for row in rows)
        most = self.decoding.n_best
        return [[self.request.hypothesis(*h) for h in row[:most]] for row in finished]


def _gather(ids: Tensor, beams: Tensor) -> Tensor:
    """Rows ``beams`` of each group. *Shape:* :math:`(G,K,T)`, :math:`(G,N)` to :math:`(G,N,T)`."""
    return ids.gather(1, beams[:, :, None].expand(-1, -1, ids.shape[2]))

"""What a search reads from, what is asked of it, how it begins, and what it finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, runtime_checkable

import torch
from torch import Tensor

from textmill.errors import UserError
from textmill.models.decoder_state import DecoderMemory
from textmill.models.decoding.score_processors import Scores
from textmill.models.decoding.search_settings import Decoding

DROP_SHARE: Final = 0.25
"""Finished rows are dropped once they are this share of the batch: dropping copies the cache. 64
draws of 0 to 64 tokens take 260 ms so, 273 with every row dropped at once, 500 with none."""


READ_AT_ONCE: Final = 512
"""Tokens of all rows that are read at once: their scores over 50,000 tokens are 100 MB."""


@dataclass(frozen=True)
class Hypothesis:
    """A target sequence that a search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark; forced ids are among them."""
    score: float
    """Log-probability (natural logarithm) of the ids and the end mark, divided by their number to
    the power of the length penalty; higher is better. It is the model's own, but in beam search,
    which ranks by it, bans and penalties count."""


class SearchState(Protocol):
    """What a generator keeps of the tokens it read, as ``decoder_state.DecoderState`` does.

    Greedy search and draws need ``select(indices)`` alone.
    """

    def repeat(self, times: int, /) -> None:
        """Makes each row a group of ``times`` equal rows, one after another."""

    def select(self, indices: Tensor, /, *, groups: Tensor | None = None) -> None:
        """Keeps the rows of these indices, in their order; an index may repeat.

        After :meth:`repeat`, ``groups`` are the groups that the rows are of; None: all of them.
        """


@runtime_checkable
class Generator(Protocol):
    """A model that decodes one token at a time, as a Transformer does."""

    training: bool

    def train(self, mode: bool = True) -> object:
        """Switches training mode, as ``torch.nn.Module`` does."""

    @property
    def max_length(self) -> int:
        """Longest target it has positions for, in tokens."""

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        """Runs the encoder."""

    def start(self, memory: DecoderMemory) -> Any:
        """A :class:`SearchState` in which nothing was read."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Reads a token of each row; returns the next one's logits, which may be changed."""


@runtime_checkable
class BlockReader(Protocol):
    """A generator that can read a forced prefix in one pass."""

    def read(self, tokens: Tensor, state: Any) -> Tensor:
        """Reads tokens of each row. *Shape:* :math:`(B,T)` to logits :math:`(B,T,V)`."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Sources, and how their targets are searched."""

    source: Tensor
    """Token ids. *Shape:* :math:`(B,S)`."""
    source_lengths: Tensor | None = None
    """Real tokens of each row; None: all are. *Shape:* :math:`(B)`."""
    decoding: Decoding
    """The settings."""
    prefix: Sequence[int]
    """Ids every target starts with: the start mark, and a language tag where there is one."""
    eos_idx: int
    """Id of the end mark."""
    unk_idx: int | None = None
    """Id of the unknown token; only its penalty needs it."""
    forced: Sequence[Sequence[int]] | None = None
    """Ids that each row's target begins with, after the prefix."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What the encoder gets of each source beside its ids, by name."""

    def begin(self, model: Generator) -> "Begun":
        if not self.prefix:
            raise UserError("Decoding needs a prefix of at least one id, the start mark.")
        forced, rows = self.forced, len(self.source)
        if forced is not None and len(forced) != rows:
            raise UserError(
                f"Forced ids must be given for each of the {rows} sources, "
                f"but are for {len(forced)}."
            )
        scores = Scores(self.decoding, eos_idx=self.eos_idx, unk_idx=self.unk_idx)
        if forced is not None:
            scores = scores.forcing(forced, self.source.device)
        limits = self._limits(model.max_length)
        state = model.start(model.encode(self.source, self.source_lengths, **self.beside))
        logits = torch.empty(0)
        for token in self.prefix:
            logits = model.step(torch.full((rows,), token, device=self.source.device), state)
        begun = Begun(
            state, logits, limits, scores, limits.new_zeros(rows, 0), logits.new_zeros(rows)
        )
        return self._ahead(begun, model) if isinstance(model, BlockReader) and forced else begun

    def _ahead(self, begun: "Begun", model: BlockReader) -> "Begun":
        forced = self.forced or []
        count = min(*map(len, forced), int(begun.limits.min()) - 1)
        ids = begun.limits.new_tensor([row[: max(count, 0)] for row in forced])
        if count < 1 or bool((ids == self.eos_idx).any()):
            return begun
        logits, total = begun.logits, begun.log_probs.float()
        for block in ids.split(max(1, READ_AT_ONCE // len(ids)), dim=1):
            made = model.read(block, begun.state)
            scores = torch.cat([logits[:, None], made[:, :-1]], dim=1).float()
            chosen = scores.gather(2, block[:, :, None])[:, :, 0] - scores.logsumexp(dim=2)
            total, logits = total + chosen.sum(dim=1), made[:, -1]
        return replace(begun, logits=logits, read=ids, log_probs=total)

    def hypothesis(self, ids: list[int], length: int, score: float) -> Hypothesis:
        """The first ``length`` ids, without the end mark if they end with it."""
        return Hypothesis(ids[: length - (ids[length - 1] == self.eos_idx)], score)

    def _limits(self, max_length: int) -> Tensor:
        # The last id generated is never read, so it needs no position.
        longest = max_length - len(self.prefix) + 1
        limits = self.decoding.limits(self.source, self.source_lengths, longest=longest)
        if self.forced is None:
            return limits
        lengths = [len(ids) for ids in self.forced]
        if max(lengths, default=0) >= longest:
            row = lengths.index(max(lengths))
            raise UserError(
                f"Row {row + 1} has {lengths[row]} forced ids; the model has positions for "
                f"{longest - 1} of a target and one more."
            )
        return (limits + limits.new_tensor(lengths)).clamp(max=longest)


@dataclass(frozen=True)
class Begun:
    """A search that has read its prefix, and what else it could at once."""

    state: Any
    """A :class:`SearchState` that has read the prefix, a row for each source."""
    logits: Tensor
    """Scores of the next id. *Shape:* :math:`(B,V)`."""
    limits: Tensor
    """The most ids to generate for each row. *Shape:* :math:`(B)`."""
    scores: Scores
    """Changes the scores of each step."""
    read: Tensor
    """Forced ids after the prefix that were read, too. *Shape:* :math:`(B,N)`."""
    log_probs: Tensor
    """Sum of the log probabilities of ``read``. *Shape:* :math:`(B)`."""

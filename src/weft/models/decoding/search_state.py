"""What is asked of a search, and how every search begins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from weft.errors import UserError
from weft.models.decoding.forced_prefix import Forced
from weft.models.decoding.hypothesis import Generator, check_state
from weft.models.decoding.score_processors import Scores, processors_of
from weft.models.decoding.search_settings import Decoding

__all__ = ["Begun", "Request"]


@final
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

    def begin(self, model: Generator) -> "Begun":
        """Runs the encoder and reads the prefix.

        Raises:
            UserError: There is no prefix, forced ids do not fit the rows or the model, or the
                model's state lacks what the search needs.
        """
        if not self.prefix:
            raise UserError("Decoding needs a prefix of at least one id, the start mark.")
        scores, limits = self._scores(), self._limits(model.max_length)
        state = model.start(model.encode(self.source, self.source_lengths))
        check_state(model, state, beam_size=self.decoding.beam_size)
        logits = torch.empty(0)
        for token in self.prefix:
            tokens = torch.full((len(self.source),), token, device=self.source.device)
            logits = model.step(tokens, state)
        return Begun(state, logits, limits, scores)

    def _scores(self) -> Scores:
        forced = None if self.forced is None else Forced(self.forced, self.source.device)
        if forced is not None:
            forced.check_rows(len(self.source))
        processors = processors_of(self.decoding, eos_idx=self.eos_idx, unk_idx=self.unk_idx)
        return Scores(processors, forced, eos_idx=self.eos_idx)

    def _limits(self, max_length: int) -> Tensor:
        """The most ids to generate for each row; forced ones do not count against the settings."""
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


@final
@dataclass(frozen=True)
class Begun:
    """A search that has read its prefix."""

    state: Any
    """Of the prefix, a row for each source: an :class:`EncodedSource`, in beam search a
    :class:`BeamReading`."""
    logits: Tensor
    """Of the first id. *Shape:* :math:`(B,V)`."""
    limits: Tensor
    """The most ids to generate for each row. *Shape:* :math:`(B)`."""
    scores: Scores
    """What changes scores."""

"""The settings of a search."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from textmill.config.component import typed_construction
from textmill.config.validators import require
from textmill.errors import UserError

LARGEST_BEAM = 1_000
"""Over this no search of text has gained, and a typing error would take all memory."""
LARGEST_PENALTY = 5
"""32-bit numbers hold lengths up to ten million to this power; to the power of 500, none over 1."""


@typed_construction
@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How targets are searched."""

    shown_first: ClassVar = frozenset({"beam_size", "sample"})

    beam_size: int = 1
    """Sequences followed at once; 1 is greedy search, the fastest; 4 or 5 are usual for quality."""
    length_penalty: float = 1.0
    """Power of the length that log-probabilities are divided by to compare sequences; 0 compares
    them as they are, which favours short ones. 1 is transformers' default; 5 is the largest."""
    n_best: int = 1
    """Hypotheses for a source, at most ``beam_size``; with ``sample``, draws for a source."""
    early_stopping: Literal["heuristic", "first", "never"] = "heuristic"
    """When a source with ``beam_size`` finished sequences stops: when no unfinished one would be
    better if it ended at this length (``heuristic``; transformers' False), at once (``first``;
    True), or when none can become better at any length allowed (``never``). For beams only."""
    max_length_a: float = 2.0
    """At most ``max_length_a * S + max_length_b`` tokens, the end mark included and forced ids not,
    are generated for a source of S tokens, and no more than the model has positions for.
    Translations rarely double."""
    max_length_b: int = 10
    """See ``max_length_a``; room for sources of a few tokens."""
    min_length: int = 0
    """Tokens before the end mark may be generated; 0 lets it come first."""
    repetition_penalty: float = 1.0
    """Over 1 makes tokens that stand in the target already less likely: their scores are divided by
    it where positive and multiplied where negative (CTRL, Keskar et al. 2019); 1 is off."""
    no_repeat_ngram: int = 0
    """Length of the sequences of tokens that may not occur twice in a target; 0 is off."""
    unknown_penalty: float = 0.0
    """Taken from the score of the unknown token (in nats); ``.inf`` bans it."""
    sample: bool = False
    """Whether tokens are drawn by their probability instead of searched for."""
    seed: int = 0
    """Seed of the draws of sample: a source gets the same ones in any batch, on any day."""
    temperature: float = 1.0
    """What scores are divided by before a draw: under 1 likely tokens become likelier."""
    top_k: int = 0
    """Draws are among this many likeliest tokens (Fan et al. 2018); 0 is all."""
    top_p: float = 1.0
    """Draws are among the fewest likeliest tokens that have this probability together (nucleus
    sampling, Holtzman et al. 2020); 1 is all."""

    def __post_init__(self) -> None:
        if self.n_best < 1 or (not self.sample and self.n_best > self.beam_size):
            most = "to beam_size, " if not self.sample else "up, "
            found = f"{self.n_best} of {self.beam_size}" if not self.sample else f"{self.n_best}"
            raise UserError(f"decoding.n_best must be from 1 {most}but is {found}.")
        for name in ("beam_size", "n_best"):
            if (value := getattr(self, name)) > LARGEST_BEAM:
                raise UserError(f"decoding.{name} must be at most {LARGEST_BEAM}, but is {value}.")
        if not -LARGEST_PENALTY <= self.length_penalty <= LARGEST_PENALTY:
            raise UserError(
                f"decoding.length_penalty must be from {-LARGEST_PENALTY} to {LARGEST_PENALTY} "
                f"(0 to 2 are usual), but is {self.length_penalty}."
            )
        if not 0 <= self.max_length_a < math.inf or self.max_length_b < 1:
            raise UserError(
                "decoding.max_length_a must be at least 0 and max_length_b at least 1, "
                f"but they are {self.max_length_a} and {self.max_length_b}."
            )
        if self.beam_size == 1 and self.early_stopping != "heuristic":
            raise UserError(
                f"decoding.early_stopping={self.early_stopping} is for beams only; set "
                "decoding.beam_size with it (4 or 5 are usual), or leave it out."
            )
        require(
            self,
            "decoding",
            positive=["repetition_penalty", "temperature"],
            not_negative=["min_length", "no_repeat_ngram", "top_k"],
        )
        # -inf would make the unknown token the only one.
        if not self.unknown_penalty > -math.inf:
            raise UserError(
                f"decoding.unknown_penalty must be a number or .inf, but is {self.unknown_penalty}."
            )
        if not 0 < self.top_p <= 1:
            raise UserError(f"decoding.top_p must be over 0 and at most 1, but is {self.top_p}.")
        if self.sample:
            if self.beam_size != 1:
                raise UserError(
                    "decoding.sample draws single sequences: leave decoding.beam_size 1 "
                    f"(it is {self.beam_size}); decoding.n_best is how many are drawn."
                )
            return
        # A value that would do nothing is a mistake: the user thinks that answers are drawn.
        for name, off in (("seed", 0), ("temperature", 1.0), ("top_k", 0), ("top_p", 1.0)):
            if (value := getattr(self, name)) != off:
                raise UserError(
                    f"decoding.{name}={value} is for drawn tokens only; "
                    "set decoding.sample=true with it, or leave it out."
                )

    def likeliest(self) -> Self:
        """The same of drawn tokens, with the likeliest in their place."""
        return replace(self, sample=False, seed=0, temperature=1.0, top_k=0, top_p=1.0, n_best=1)

    def limits(self, source: Tensor, source_lengths: Tensor | None, *, longest: int) -> Tensor:
        """The most ids to generate for each source by a model with ``longest`` positions.

        *Shape:* :math:`(B,S)` with lengths of :math:`(B)`, or None, to :math:`(B)`, int64.
        """
        if source_lengths is None:
            source_lengths = torch.full(source.shape[:1], source.shape[1], device=source.device)
        factor = min(self.max_length_a, float(longest))  # of a source of one token it is enough
        wanted = (factor * source_lengths).long() + min(self.max_length_b, longest)
        return wanted.clamp(max=longest)

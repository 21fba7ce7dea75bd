"""A conditional masked language model, which predicts all tokens of a target at once."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.validators import require
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory, length_mask
from textmill.models.layers.linear import LinearLayer, linear
from textmill.models.transformer import Transformer
from textmill.models.vocabulary import HasVocabInfo


class Decoded(NamedTuple):
    """What target tokens are scored from."""

    states: Tensor
    """*Shape:* :math:`(B,T,D)`."""
    keys: Tensor | None
    """What source tokens are scored by, :math:`(B,S,D)`; None if none is copied."""


@registries.models.register("mask_predict")
class MaskPredict(Component, nn.Module):
    """A Transformer whose decoder reads targets from both sides, with some of their tokens masked.

    The encoder predicts the move of each source token: how many places later it is in the target.
    The last token's move decides the length of the target. With ``copies``, a target token that the
    source has too is a copy: its number is the size of the vocabulary, V, plus the token's place in
    the source, and the decoder reads which source token moves to each place. So one pass knows
    where the copies are, as with fertilities (Gu et al. 2018).

    Source: Ghazvininejad et al. 2019, "Mask-Predict"; copies as in Babu et al. 2021,
    "Non-Autoregressive Semantic Parsing for Compositional Task-Oriented Dialog".
    """

    class Config(Transformer.Config):
        copies: bool = True
        """Whether a target token that the source has, too, is copied from there: the second of
        equal tokens from the second, and so on."""
        longest_move: int = 128
        """The longest move, in places: a target is longer than its source, or shorter, by so many
        tokens at most. A longer move in training counts as this one."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "model", sizes=["longest_move"])

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.transformer = Transformer(config, tokenizer=tokenizer)
        filled: Any = self.transformer.config
        self.config: MaskPredict.Config = filled
        self.max_length, dim = config.max_length, config.dim
        self.size: int = filled.vocabulary_size
        """The number of a source's first token, V."""
        self.mask = nn.Parameter(nn.init.normal_(torch.empty(dim)))
        classes = 2 * config.longest_move + 1
        self.moves = nn.Sequential(LinearLayer(dim, dim), nn.ReLU(), LinearLayer(dim, classes))
        self.copied = LinearLayer(dim, 3 * dim) if config.copies else None
        self.register_buffer("written", torch.zeros(self.size, dtype=torch.bool))

    own_task = "mask_predict_parsing"
    """The only task that trains it."""
    written: Tensor
    """Which tokens training had to write. *Shape:* :math:`(V)`."""

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        return self.transformer.encode(source, source_lengths)

    def move_scores(self, memory: DecoderMemory) -> Tensor:
        """Scores of source tokens' moves from ``-longest_move`` on. *Shape:* (B,S,2M+1)."""
        scores: Tensor = self.moves(memory.states)
        return scores.float()

    def move(self, places: Tensor, source_places: Tensor) -> Tensor:
        """The number of a move among :meth:`move_scores`. *Shape:* those of both, alike."""
        most = self.config.longest_move
        return (places - source_places).clamp(min=-most, max=most) + most

    def moved(self, scores: Tensor) -> Tensor:
        """Where source tokens are expected in the target. *Shape:* (B,S,2M+1) to (B,S)."""
        moves = scores.argmax(dim=2) - self.config.longest_move
        return moves + torch.arange(scores.shape[1], device=scores.device)

    def read(
        self, ids: Tensor, masked: Tensor, lengths: Tensor, memory: DecoderMemory, places: Tensor
    ) -> Decoded:
        """The decoder's states.

        *Shape:* numbers of tokens, and which are masked, :math:`(B,T)`; lengths :math:`(B)`; where
        source tokens are in the target :math:`(B,S)`.
        """
        target, states = self.transformer.target, memory.states
        x = torch.where(masked[:, :, None], self.mask, target.vectors(ids.clamp(max=self.size - 1)))
        keys = None
        if self.copied is not None:
            values, near, keys = self.copied(states).chunk(3, dim=2)
            own = (ids - self.size).clamp(min=0)[:, :, None].expand_as(x)
            is_copied = (ids >= self.size) & ~masked
            x = torch.where(is_copied[:, :, None], values.gather(1, own), x)
            there = torch.arange(ids.shape[1], device=ids.device)[:, None] == places[:, None]
            if memory.mask is not None:
                there = there & memory.mask[:, 0]
            x = x + there.to(near.dtype) @ near
        real = length_mask(ids, lengths)
        if real is None:
            real = torch.ones((1, 1, 1, ids.shape[1]), dtype=torch.bool, device=ids.device)
        decoded: Tensor = self.transformer.decoder(target.placed(x), states, memory.mask, real)
        return Decoded(decoded, keys)

    def scores(
        self, decoded: Decoded, at: Tensor, memory: DecoderMemory, tokens: Tensor | None = None
    ) -> Tensor:
        """Scores of all tokens, or of some, then of source tokens, for N of the decoder's states.

        *Shape:* which states, :math:`(B,T)`; numbers of tokens :math:`(W)`; to :math:`(N,V+S)` or
        :math:`(N,W+S)`.
        """
        weight, bias = self.transformer.output_weight, self.transformer.output_bias
        if tokens is not None:
            weight, bias = weight[tokens], None if bias is None else bias[tokens]
        states, keys = decoded
        scores = linear(states[at], weight, bias).float()
        if keys is None:
            return scores
        copied = (states @ keys.transpose(1, 2)).float() * states.shape[2] ** -0.5
        if memory.mask is not None:
            copied = copied.masked_fill(~memory.mask[:, 0], -torch.inf)
        return torch.cat([scores, copied[at]], dim=1)

    def likeliest(
        self, decoded: Decoded, at: Tensor, memory: DecoderMemory
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities and numbers of the likeliest tokens, :math:`(N)` each.

        Tokens of the vocabulary that training never had to write are left out.
        """
        written = self.written if bool(self.written.any()) else ~self.written  # of a new model all
        tokens = written.nonzero()[:, 0]
        scores = self.scores(decoded, at, memory, tokens)
        best, found = scores.max(dim=1)
        copied = torch.arange(memory.states.shape[1], device=tokens.device) + self.size
        return best - scores.logsumexp(dim=1), torch.cat([tokens, copied])[found]

    def with_copies(self, target: Tensor, source: Tensor) -> Tensor:
        """Targets in which tokens of the source are copied. *Shape:* (B,T), (B,S) to (B,T)."""
        if self.copied is None:
            return target
        same = target[:, :, None] == source[:, None]
        same &= _counts(target)[:, :, None] == _counts(source)[:, None]
        found = same.any(dim=2) & (target != self.config.pad_idx)
        return torch.where(found, same.int().argmax(dim=2) + self.size, target)

    def with_tokens(self, ids: Tensor, source: Tensor) -> Tensor:
        """The copied tokens themselves, undoing :meth:`with_copies`."""
        copied = source.gather(1, (ids - self.size).clamp(min=0))
        return torch.where(ids >= self.size, copied, ids)


def _counts(ids: Tensor) -> Tensor:
    """How many equal ids are before each in its row. *Shape:* :math:`(B,T)` to the same."""
    return (ids[:, :, None] == ids[:, None]).tril(-1).sum(dim=2)

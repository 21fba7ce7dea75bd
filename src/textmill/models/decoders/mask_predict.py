"""A conditional masked language model: a target's length from its source, then all its tokens."""

from typing import Any

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


@registries.models.register("mask_predict")
class MaskPredict(Component, nn.Module):
    """A Transformer whose decoder reads a target from both sides, with some of its tokens masked.

    A target token is one of the vocabulary's V or, with ``copies``, the place of a source token,
    whose number is V and what is before it in the source. A target's length, its end mark included,
    is classified by how much longer than its source it is.

    Source: Ghazvininejad et al. 2019, "Mask-Predict"; the copied places are those of Babu et al.
    2021, "Non-Autoregressive Semantic Parsing for Compositional Task-Oriented Dialog".
    """

    class Config(Transformer.Config):
        copies: bool = True
        """Whether a target token that the source has, too, is copied from its place there: the
        second of equal tokens from the second, and so on."""
        max_difference: int = 128
        """By how many tokens at most the length of a target differs from its source's; where it is
        more, this is what is learned."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "model", sizes=["max_difference"])

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.transformer = Transformer(config, tokenizer=tokenizer)
        filled: Any = self.transformer.config
        self.config: MaskPredict.Config = filled
        self.max_length, dim = config.max_length, config.dim
        self.size: int = filled.vocabulary_size
        """The number of the first place, V."""
        classes = 2 * config.max_difference + 1
        self.mask = nn.Parameter(nn.init.normal_(torch.empty(dim)))
        self.differences = nn.Embedding(classes, dim)
        self.length = nn.Sequential(LinearLayer(dim, dim), nn.ReLU(), LinearLayer(dim, classes))
        self.copied = LinearLayer(dim, dim) if config.copies else None
        self.places = LinearLayer(dim, dim) if config.copies else None
        self.register_buffer("written", torch.zeros(self.size, dtype=torch.bool))

    own_task = "mask_predict_parsing"
    """The only task that trains it."""
    written: Tensor
    """Which tokens training had to write. *Shape:* :math:`(V)`."""

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        return self.transformer.encode(source, source_lengths)

    def length_scores(self, memory: DecoderMemory) -> Tensor:
        """Scores of differences from ``-max_difference`` on. *Shape:* :math:`(B,2M+1)`."""
        mean = memory.states.mean(dim=1)
        if memory.mask is not None:
            real = memory.mask[:, 0, 0, :, None]
            mean = (memory.states * real).sum(dim=1) / real.sum(dim=1)
        scores: Tensor = self.length(mean)
        return scores

    def difference(self, lengths: Tensor, source_lengths: Tensor) -> Tensor:
        """The number of the class of targets of some lengths. *Shape:* :math:`(B)` each."""
        most = self.config.max_difference
        return (lengths - source_lengths).clamp(min=-most, max=most) + most

    def read(
        self,
        ids: Tensor,
        masked: Tensor,
        lengths: Tensor,
        source_lengths: Tensor,
        memory: DecoderMemory,
    ) -> Tensor:
        """The decoder's states. *Shape:* :math:`(B,T)` each, lengths :math:`(B)`, to (B,T,D)."""
        target, states = self.transformer.target, memory.states
        x = target.vectors(ids.clamp(max=self.size - 1))
        if self.copied is not None:
            places = (ids - self.size).clamp(min=0)[:, :, None].expand(-1, -1, states.shape[2])
            copied = self.copied(states).gather(1, places)
            x = torch.where((ids >= self.size)[:, :, None], copied, x)
        x = torch.where(masked[:, :, None], self.mask, x)
        x = x + self.differences(self.difference(lengths, source_lengths))[:, None]
        real = length_mask(ids, lengths)
        if real is None:
            real = torch.ones((1, 1, 1, ids.shape[1]), dtype=torch.bool, device=ids.device)
        out: Tensor = self.transformer.decoder(target.placed(x), states, memory.mask, real)
        return out

    def scores(
        self, hidden: Tensor, at: Tensor, memory: DecoderMemory, tokens: Tensor | None = None
    ) -> Tensor:
        """Scores of all tokens, or of some, then of places, for N of the decoder's states.

        *Shape:* states :math:`(B,T,D)`, of which N are true in ``at``, :math:`(B,T)`; numbers of
        tokens :math:`(W)`; to :math:`(N,V+S)` or :math:`(N,W+S)`.
        """
        weight, bias = self.transformer.output_weight, self.transformer.output_bias
        if tokens is not None:
            weight, bias = weight[tokens], None if bias is None else bias[tokens]
        scores = linear(hidden[at], weight, bias)
        if self.places is None:
            return scores
        places = hidden @ self.places(memory.states).transpose(1, 2) * hidden.shape[2] ** -0.5
        if memory.mask is not None:
            places = places.masked_fill(~memory.mask[:, 0], -torch.inf)
        return torch.cat([scores, places[at]], dim=1)

    def likeliest(self, hidden: Tensor, at: Tensor, memory: DecoderMemory) -> tuple[Tensor, Tensor]:
        """Log-probabilities and numbers of the likeliest tokens and places, :math:`(N)` each.

        Tokens that training never had to write are left out.
        """
        written = self.written if bool(self.written.any()) else ~self.written  # of a new model all
        tokens = written.nonzero()[:, 0]
        scores = self.scores(hidden, at, memory, tokens).float()
        best, found = scores.max(dim=1)
        places = torch.arange(memory.states.shape[1], device=tokens.device)
        numbers = torch.cat([tokens, places + self.size])
        return best - scores.logsumexp(dim=1), numbers[found]

    def with_places(self, target: Tensor, source: Tensor) -> Tensor:
        """Targets in which tokens of the source are its places. *Shape:* (B,T), (B,S) to (B,T)."""
        if self.places is None:
            return target
        same = target[:, :, None] == source[:, None]
        same &= _counts(target)[:, :, None] == _counts(source)[:, None]
        place = same.int().argmax(dim=2)
        found = same.any(dim=2) & (target != self.config.pad_idx)
        return torch.where(found, place + self.size, target)

    def with_tokens(self, ids: Tensor, source: Tensor) -> Tensor:
        """The tokens at the places, undoing :meth:`with_places`."""
        copied = source.gather(1, (ids - self.size).clamp(min=0))
        return torch.where(ids >= self.size, copied, ids)


def _counts(ids: Tensor) -> Tensor:
    """How many equal ids are before each in its row. *Shape:* :math:`(B,T)` to the same."""
    return (ids[:, :, None] == ids[:, None]).tril(-1).sum(dim=2)

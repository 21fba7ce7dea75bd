"""An encoder and a pooling of a person's own, whose constructors begin as any module's does."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from textmill.models.classifier import TextVector
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.poolings import Pooling

BEGINNINGS = {
    "super().__init__()": lambda base, made, config, dim: base.__init__(made),
    "super().__init__(config)": lambda base, made, config, dim: base.__init__(made, config),
    "super().__init__(config, dim=dim)": lambda base, made, config, dim: base.__init__(
        made, config, dim=dim
    ),
    "nn.Module.__init__(self)": lambda base, made, config, dim: nn.Module.__init__(made),
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_constructor_may_begin_as_everyone_writes_it(beginning):
    begin = BEGINNINGS[beginning]

    class Mine(SequenceEncoder):
        class Config(SequenceEncoder.Config):
            width: int = 3

        def __init__(self, config, *, dim):
            begin(SequenceEncoder, self, config, dim)
            self.conv = nn.Conv1d(dim, dim, config.width, padding="same")

        def forward(self, x, lengths):
            return self.conv(x.transpose(1, 2)).transpose(1, 2)

    class Sum(Pooling):
        class Config(Pooling.Config): ...

        def __init__(self, config, *, dim):
            begin(Pooling, self, config, dim)

        def forward(self, states, real):
            return (states * real[..., None]).sum(dim=1)

    config, vocab_info = Mine.Config(width=5), SimpleNamespace(size=10, pad_idx=0)
    embedding = WordEmbedding.Config(dim=6)
    made = TextVector(embedding, config, Sum.Config(), vocab_info=vocab_info)
    text, lengths = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    assert made(text, lengths).shape == (1, 6)
    assert (made.encoder.config, made.encoder.out_dim) == (config, 6)
    assert sorted(dict(made.encoder.named_parameters())) == ["conv.bias", "conv.weight"]
    copied = copy.deepcopy(made)
    torch.testing.assert_close(copied.eval()(text, lengths), made.eval()(text, lengths))
    assert copied.pooling.out_dim == 6

"""Vectors of words' kinds: every pooling as a loop says it, padding and further words without
effect.
"""

import pytest
import torch

from textmill.errors import UserError
from textmill.models.layers.word_embeddings import DictionaryEmbedding

POOLED = {
    "mean": lambda x: x.mean(0),
    "max": lambda x: x.amax(0),
    "logsumexp": lambda x: x.logsumexp(0),
}


def by_loops(embedding, found, length):
    out = torch.zeros(len(found), length, embedding.out_dim)
    for row, findings in enumerate(found):
        for place in range(length):
            own = [f for f in findings if int(f[1]) > 0 and int(f[0]) == place]
            if own:
                each = torch.stack([f[2] * embedding.kinds.weight[int(f[1])] for f in own])
                out[row, place] = POOLED[embedding.config.pooling](each)
    return out


@pytest.mark.parametrize("pooling", POOLED)
def test_it_is_what_a_loop_over_words_gives(pooling):
    torch.manual_seed(1)
    embedding = DictionaryEmbedding.Config(dim=5, pooling=pooling).build(size=7)
    places = torch.randint(0, 6, (4, 9))  # the words are 5: one place is behind them
    numbers = torch.randint(0, 7, (4, 9))
    found = torch.stack([places, numbers, torch.randn(4, 9)], dim=-1)
    expected = by_loops(embedding, found, 5)
    given = embedding(found, 5)
    assert torch.allclose(given, expected, atol=1e-6)
    (expected_grad,) = torch.autograd.grad(expected.square().sum(), embedding.kinds.weight)
    (grad,) = torch.autograd.grad(given.square().sum(), embedding.kinds.weight)
    assert torch.allclose(grad, expected_grad, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLED)
def test_nothing_known_is_zero_and_padding_has_no_effect(pooling):
    torch.manual_seed(1)
    embedding = DictionaryEmbedding.Config(dim=3, pooling=pooling).build(size=4)
    assert embedding(torch.zeros(2, 0, 3), 4).tolist() == [[[0.0] * 3] * 4] * 2
    assert embedding(torch.zeros(2, 1, 3), 0).shape == (2, 0, 3)
    found = torch.tensor([[[1.0, 2.0, 0.5]]])
    padded = torch.cat([found, torch.zeros(1, 2, 3)], dim=1)
    assert torch.equal(embedding(found, 3), embedding(padded, 3))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"dim": 0}, "dictionary_embedding.dim must be at least 1, but is 0"),
        ({"dropout": 1.0}, "dictionary_embedding.dropout must be from 0 to below 1, but is 1.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, error):
    with pytest.raises(UserError, match=error):
        DictionaryEmbedding.Config(**settings)

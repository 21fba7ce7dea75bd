"""Vectors of affixes: each place has its own, padding has none."""

import pytest
import torch

from textmill.errors import UserError
from textmill.models.layers.word_embeddings import AffixEmbedding


def test_a_word_is_its_affixes_in_their_order():
    torch.manual_seed(0)
    embedding = AffixEmbedding.Config(dim=3).build(size=7, pad_idx=0, length=2)
    table = embedding.affixes.weight
    (found,) = embedding(torch.tensor([[[3, 5], [5, 3], [0, 0]]]))
    assert embedding.out_dim == 6
    assert torch.equal(found[0], torch.cat([table[3], table[5]]))
    assert torch.equal(found[1], torch.cat([table[5], table[3]]))
    assert found[2].tolist() == [0] * 6
    assert embedding(torch.zeros(1, 1, 1, dtype=torch.int64)).tolist() == [[[0] * 6]]


def test_padding_learns_nothing():
    embedding = AffixEmbedding.Config(dim=3).build(size=7, pad_idx=0, length=2)
    embedding(torch.tensor([[[3, 5], [0, 0]]])).sum().backward()
    assert embedding.affixes.weight.grad.sum(1).tolist() == [0, 0, 0, 3, 0, 3, 0]


def test_no_features_are_refused():
    with pytest.raises(UserError, match=r"affix_embedding.dim must be at least 1, but is 0"):
        AffixEmbedding.Config(dim=0)

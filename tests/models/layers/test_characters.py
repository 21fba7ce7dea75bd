"""Vectors of words out of characters: padding has no part, every word by itself."""

import pytest
import torch

from textmill.errors import UserError
from textmill.models.layers.word_embeddings import CharacterCnn


@pytest.mark.parametrize("widths", [(1,), (2,), (3, 5)])
def test_a_word_alone_is_as_beside_longer_ones(widths):
    torch.manual_seed(0)
    cnn = CharacterCnn.Config(dim=4, filters=3, widths=widths).build(size=20, pad_idx=0)
    words = torch.tensor([[[4, 5, 6, 7, 8], [9, 0, 0, 0, 0]], [[5, 9, 0, 0, 0], [0] * 5]])
    found = cnn(words)
    for row, place, length in ((0, 0, 5), (0, 1, 1), (1, 0, 2)):
        alone = cnn(words[row, place, :length][None, None])
        assert torch.allclose(found[row, place], alone[0, 0], atol=1e-6)
    assert found[1, 1].tolist() == [0] * 3 * len(widths)


def test_the_maximum_is_that_of_the_definition():
    torch.manual_seed(0)
    cnn = CharacterCnn.Config(dim=4, filters=3).build(size=20, pad_idx=0)
    x = torch.nn.functional.pad(cnn.characters(torch.tensor([4, 5, 6])), (0, 0, 1, 1))
    weight, bias = cnn.filters[0].weight, cnn.filters[0].bias
    each = [sum(weight[:, :, k] @ x[i + k] for k in range(3)) + bias for i in range(3)]
    expected = torch.stack(each).amax(0)
    assert torch.allclose(cnn(torch.tensor([[[4, 5, 6, 0]]]))[0, 0], expected, atol=1e-6)


def test_no_word_at_all_is_zeros_and_every_parameter_learns():
    cnn = CharacterCnn.Config(dim=4, filters=3).build(size=20, pad_idx=0)
    assert cnn(torch.zeros(2, 3, 1, dtype=torch.int64)).shape == (2, 3, 3)
    cnn(torch.tensor([[[4, 5]]])).sum().backward()
    assert all(p.grad is not None for p in cnn.parameters())
    assert cnn.characters.weight.grad[0].abs().sum() == 0


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"dim": 0}, "character_cnn.dim must be at least 1, but is 0"),
        ({"widths": (3, 0)}, r"character_cnn.widths must be one .* at least 1, but is \[3, 0\]"),
        ({"widths": ()}, "character_cnn.widths must be one width at least"),
        ({"dropout": 1.0}, "character_cnn.dropout must be from 0 to below 1, but is 1.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, text):
    with pytest.raises(UserError, match=text):
        CharacterCnn.Config(**settings)

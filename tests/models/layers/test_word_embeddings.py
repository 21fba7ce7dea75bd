"""The table of word vectors: frozen or not, and what a fresh run reads from a file."""

import pytest
import torch

from textmill.errors import UserError
from textmill.models.classifier import Classifier
from textmill.models.layers.word_embeddings import (
    AffixEmbedding,
    CharacterCnn,
    DictionaryEmbedding,
    WordEmbedding,
)
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import Labels
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

WORDS = WordTokenizer.Config(words=("the", "cat", "sat")).build()


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("2 3\nThe 1 2 3\nsat 4 5 6\n")
    return path


def task(tokenizer=WORDS, **settings):
    torch.manual_seed(0)
    given = {"tokenizer": tokenizer, "labels": Labels(["a", "b"])}
    embedding = WordEmbedding.Config(dim=3, **settings)
    module = Classifier.Config(embedding=embedding).build(**given)
    return DocumentClassification.Config().build(module=module, **given)


def table(task):
    return task.module.text.embedding.tokens.weight.detach()


def test_a_fresh_run_begins_with_the_vectors_of_the_file(vectors):
    made = task(vectors=vectors)
    before = table(made).clone()
    line = f"Word vectors of {vectors}: 2 of 3 words have one of its 2 vectors (66.7 %)."
    assert made.initialize() == [line]
    assert table(made)[[2, 4]].tolist() == [[1, 2, 3], [4, 5, 6]]
    others = [0, 1, 3]  # padding, the unknown word, and a word that the file has not
    assert torch.equal(table(made)[others], before[others])
    assert not before[3].eq(0).any()


def test_no_file_is_read_before(tmp_path):
    made = task(vectors=tmp_path / "gone.txt")  # as when a run is loaded
    with pytest.raises(UserError, match=r"^The word vectors cannot be read. .*gone.txt: missing.$"):
        made.initialize()
    assert task().initialize() == []


def test_frozen_vectors_have_no_gradient(vectors):
    made, free = task(vectors=vectors, frozen=True), task(vectors=vectors)
    frozen = made.module.text.embedding.tokens.weight
    assert not any(frozen is p for group in made.parameter_groups() for p in group["params"])
    assert free.module.text.embedding.tokens.weight.requires_grad


def test_vectors_of_words_for_other_tokens_are_refused(vectors):
    with pytest.raises(UserError, match=r"are of words, but the tokenizer has other tokens. Use"):
        task(ByteTokenizer.Config().build(), vectors=vectors).initialize()


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

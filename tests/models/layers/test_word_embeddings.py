"""The table of word vectors: frozen or not, and what a fresh run reads from a file."""

import pytest
import torch

from textmill.errors import UserError
from textmill.models.classifier import Classifier
from textmill.models.layers.word_embeddings import WordEmbedding
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

"""Saved text processors of several texts: a changed one is refused."""

import shutil

import pytest

from tests.text.saved import change
from textmill.text import load_text_processor
from textmill.text.columns.labels import LabelColumn
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.features.labels import Labels
from textmill.text.metadata import SavedTextError
from textmill.text.processors.texts import EmbeddingText, LabelText, NumberText, RankingText
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

WORDS = WordTokenizer.Config(words=("wake", "me", "up")).build()


def texts(*roles):
    return {role: TextColumn(f"{role} of a row", WORDS, limit=4) for role in roles}


PATHS = {
    "label": LabelText(texts("text1", "text2"), {"label": LabelColumn(Labels(["a", "b"]))}),
    "number": NumberText(
        texts("text1", "text2"), {"number": NumberColumn("score", span=(0.0, 5.0))}
    ),
    "ranking": RankingText(texts("query", "positive"), texts("negative")),
    "embedding": EmbeddingText(texts("text1"), texts("text2")),
}


@pytest.fixture(params=PATHS)
def path(request):
    return PATHS[request.param]


def test_saved_and_loaded_it_has_the_same_columns_and_limits(path, tmp_path):
    path.save(tmp_path)
    loaded = load_text_processor(tmp_path)
    assert type(loaded) is type(path)
    assert (loaded.columns, loaded.limits) == (path.columns, path.limits)
    assert set(loaded.limits.values()) == {4}


def test_texts_of_two_tokenizers_or_limits_are_refused(path, tmp_path):
    path.save(tmp_path)
    _, second = list(path.all)[:2]
    other = WordTokenizer.Config(words=("wake", "me", "up", "now")).build()
    shutil.rmtree(tmp_path / "columns" / second / "tokenizer")
    other.save(tmp_path / "columns" / second / "tokenizer")
    with pytest.raises(SavedTextError, match=f"{second}: has another tokenizer or limit than .*"):
        load_text_processor(tmp_path)
    path.save(tmp_path)
    change(tmp_path / "columns" / second / "column.json", limit=5)
    with pytest.raises(SavedTextError, match=f"{second}: has another tokenizer or limit"):
        load_text_processor(tmp_path)


def test_a_role_that_is_missing_is_refused(path, tmp_path):
    path.save(tmp_path)
    change(tmp_path / "text.json", targets=[])
    with pytest.raises(SavedTextError, match="has columns for"):
        load_text_processor(tmp_path)

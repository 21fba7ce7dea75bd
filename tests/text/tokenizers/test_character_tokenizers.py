"""Characters and bytes as ids, against Python's own; alphabets; strangers' descriptions."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.saved import change
from textmill.errors import UserError
from textmill.text import ByteTokenizer, CharacterTokenizer, load_tokenizer
from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers.character_tokenizers import covering

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def characters(alphabet: str, **more) -> CharacterTokenizer:
    return CharacterTokenizer.Config(characters=alphabet, **more).build()


@given(st.lists(TEXT, max_size=4))
def test_bytes_are_those_of_utf8(texts):
    one = ByteTokenizer.Config().build()
    rows = one.create_encoder(mode="target").batch(texts)
    assert [row.tolist() for row in rows] == [[2, *(b + 4 for b in t.encode()), 3] for t in texts]
    assert one.create_decoder().batch([row.tolist() for row in rows]) == texts


@given(st.lists(TEXT, max_size=4), st.sets(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_characters_are_looked_up(texts, alphabet):
    order = "".join(sorted(alphabet))
    ids = {c: i for i, c in enumerate(order, start=4)}
    rows = characters(order).create_encoder().batch(texts)
    assert [row.tolist() for row in rows] == [[*(ids.get(c, 1) for c in t), 3] for t in texts]
    decoded = characters(order).create_decoder().batch([row.tolist() for row in rows])
    assert decoded == ["".join(c if c in ids else "\u2047" for c in t) for t in texts]


@given(st.lists(TEXT, max_size=5), st.floats(0.1, 1.0), st.integers(1, 3))
def test_the_alphabet_is_that_of_a_count(texts, coverage, least):
    counts = Counter("".join(texts))
    expected, seen = [], 0
    for c, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if n >= least and seen < coverage * counts.total():
            expected.append(c)
        seen += n
    assert covering(texts, coverage, least) == expected


def test_many_texts_are_counted_in_parts():
    texts = ["ab"] * 600_000 + ["c"]
    assert covering(texts, 1.0) == ["a", "b", "c"]
    assert covering(texts, 1.0, min_count=2) == ["a", "b"]


def test_an_alphabet_has_a_largest_size():
    made = CharacterTokenizer.fit(["aaabbc"], vocab_size=6)
    assert (made.config.characters, made.vocab_info.size) == ("ab", 6)


@pytest.mark.parametrize(
    ("texts", "more"), [([], {}), (["ab"], {"vocab_size": 4}), (["ab"], {"min_count": 2})]
)
def test_an_alphabet_of_nothing_is_refused(texts, more):
    with pytest.raises(UserError, match="needs one character at least"):
        CharacterTokenizer.fit(texts, **more)


@pytest.mark.parametrize(
    ("alphabet", "message"),
    [
        ("abcb", "The 'characters' must differ, but 'b' is there twice."),
        ("a\ud800", "'characters' holds half of a surrogate pair."),
        ("", "'characters' must hold one character at least."),
    ],
)
def test_alphabets_that_are_none(alphabet, message, tmp_path):
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        characters(alphabet)
    characters("ab").save(tmp_path)
    path = tmp_path / "tokenizer.json"
    change(path, characters=alphabet)
    with pytest.raises(SavedTextError, match=f"^{re.escape(str(path))}: .*'characters' "):
        load_tokenizer(tmp_path)

"""Files of word vectors: with a header or without, other forms of words, bad lines."""

import os

import pytest

from textmill.errors import DataError, UserError
from textmill.text.features.word_vectors import read_word_vectors

WORDS = {"the": 2, "to": 3, "you": 4, "zebra": 5}


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "vectors.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "the 1 2\nto 3 4\n", "2 2\nthe 1 2\nto 3 4", "the\t1\t2\r\nto\t3\t4\r\n",
        "2 2 \nthe 1 2 \nto 3 4 \n", "the 1 2\n\nto 3 4\n",
    ],
    ids=["glove", "word2vec", "tabs", "fasttext", "empty line"],
)  # fmt: skip
def test_all_that_is_published_is_read(file, text):
    found = read_word_vectors(file(text), WORDS, 2)
    assert found.ids.tolist() == [2, 3]
    assert found.vectors.tolist() == [[1, 2], [3, 4]]
    assert found.coverage == "2 of 4 words have one of its 2 vectors (50.0 %)"


def test_the_first_vector_of_a_word_counts_and_its_own_form_before_others(file):
    path = file("The 9 9\nTHE 8 8\nthe 1 2\nthe 7 7\nTo 3 4\nTO 5 5\n")
    found = read_word_vectors(path, WORDS, 2, lowercase=True)
    assert found.vectors.tolist() == [[1, 2], [3, 4]]
    assert read_word_vectors(path, WORDS, 2).ids.tolist() == [2]


def test_a_word_with_spaces_does_not_shift_the_numbers(file):
    found = read_word_vectors(file("the 1 2\nat you@there.com 3 4\nyou 5 6\n"), WORDS, 2)
    assert found.vectors.tolist() == [[1, 2], [5, 6]]


@pytest.mark.parametrize("text", ["the 1 2 3\n", "1 3\nthe 1 2 3\n", "2 1\nthe 1\nto 2\n"])
def test_vectors_of_another_size_are_refused_and_the_size_is_named(file, text):
    size = 1 if text.startswith("2 1") else 3
    error = rf"line 1: its vectors are of size {size}, but embedding.dim is 2. Set embedding.dim="
    with pytest.raises(UserError, match=error):
        read_word_vectors(file(text), WORDS, 2)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("the 1 2\nto 3\n", "line 2: wanted a word and 2 numbers, found 'to 3'"),
        ("the 1 2\nto 3 4 5\n", "line 2: wanted a word and 2 numbers, found 'to 3 4 5'"),
        ("the 1 2\nyou 1 2\nto 3\n", "line 3: wanted a word and 2 numbers, found 'to 3'"),
        ("the 1 two\n", "line 1: wanted 2 finite numbers for 'the', found '1 two'"),
        ("to 1 2\nthe 1 nan\n", "line 2: wanted 2 finite numbers for 'the', found '1 nan'"),
        ("5 2\nthe 1 2\n", "its first line says 5 vectors, but it has 1. Get the"),
        (b"to 1 2\n\xffthe 1 2\n", r"line 2: not UTF-8 \(byte 0 of the line\)"),
        ("der 1 2\ndie 3 4\n", "none of its 2 words is among the 4 of the vocabulary"),
        ("", "none of its 0 words"),
    ],
)
def test_a_bad_file_is_refused(file, text, error):
    with pytest.raises(UserError if "none" in error else DataError, match=error):
        read_word_vectors(file(text), WORDS, 2)


@pytest.mark.parametrize("kind", ["missing", "pipe", "device", "folder"])
def test_what_is_no_file_is_refused_and_does_not_hang(tmp_path, kind):
    path = tmp_path / "none.vec"
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "device":
        path.symlink_to("/dev/zero")
    if kind == "folder":
        path.mkdir()
    with pytest.raises(UserError) as caught:
        read_word_vectors(path, WORDS, 2)
    why = "missing" if kind == "missing" else "not a regular file"
    assert str(caught.value) == f"The word vectors cannot be read. {path}: {why}."

"""The file of the token: whose it is, and what it may hold."""

import pytest

from textmill.errors import UserError
from textmill.serving.server import read_token


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "token"
    made.touch(mode=0o600)
    return made


def test_it_is_the_only_line(file):
    file.write_text("a-token.of_letters~and+digits/019==\n")
    assert read_token(file) == "a-token.of_letters~and+digits/019=="


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_may_use_is_refused(file, mode):
    file.write_text("a" * 32)
    file.chmod(mode)
    with pytest.raises(UserError) as refused:
        read_token(file)
    assert str(refused.value) == (
        f"{file} is not only yours to read (its mode is {mode:o}). Make it so: chmod 600 {file}"
    )


@pytest.mark.parametrize("text", ["", "short", "two\nlines of a token", "é" * 32, "a b" * 20])
def test_what_is_no_token_is_refused(file, text):
    file.write_text(text)
    with pytest.raises(UserError, match=r"wanted one line of 16 letters and digits or more; found"):
        read_token(file)


def test_a_file_that_is_not_there_is_refused_with_how_to_make_one(file):
    with pytest.raises(UserError, match=r"not-there: missing\. Make one: python -c"):
        read_token(file.with_name("not-there"))

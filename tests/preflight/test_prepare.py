"""``textmill prepare``: all data is read, its tokens are kept, and training finds them."""

import os
import re

import numpy as np
import pytest

import textmill
from tests.preflight.test_check import SCRIPT as FIVE_WORDS
from textmill.cli.main import main
from textmill.data.bad_rows import BadRowsError
from textmill.data.store import tokens
from textmill.data.store.tokens import TokenStore
from textmill.errors import UserError
from textmill.preflight.prepare import prepare

SCRIPT = FIVE_WORDS.replace('"train.tsv")', '"train.tsv"), max_bad_rows=1')
SCRIPT = SCRIPT.replace('"dev.tsv")', '"valid.tsv"), max_bad_rows=0')


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tokens, "LEAST_CHARACTERS", 100)
    words = ["un", "deux", "trois", "quatre", "cinq"]
    rows = [f"{a} {b}\t{b} {a}" for a in words for b in words]
    (tmp_path / "train.tsv").write_text("\n".join([*rows, "bad"]) + "\n")
    (tmp_path / "valid.tsv").write_text(f"{rows[0]}\n")
    (tmp_path / "recipe.py").write_text(SCRIPT)
    return tmp_path / "recipe.py"


def test_what_is_prepared_is_what_training_uses(recipe, monkeypatch):
    said = []
    found = prepare(recipe, say=said.append)
    (folder,) = found.values()
    about = rf"train_data: 25 rows, [\d,]+ tokens, 0\.0 MB in {folder}"
    wanted = [
        r"train_data: 26 rows: 25 good, 1 bad", r"  train\.tsv:26: wanted 2 columns, found 1",
        r"valid_data: 1 rows: 1 good, 0 bad", rf"Tokenizing 25 rows, once, into {folder}\.",
        r"Tokenized 25 rows in \d+\.\d s \([\d,]+ rows/s\)\.", about,
        r"valid_data: 10 characters, encoded anew in each run: a store pays from 100 on",
    ]  # fmt: skip
    assert len(said) == len(wanted)
    for line, pattern in zip(said, wanted, strict=True):
        assert re.fullmatch(pattern, line), line
    said.clear()
    assert prepare(recipe, say=said.append) == found
    assert re.fullmatch(about, said[3])
    monkeypatch.setattr(TokenStore, "_make", None)  # training makes no tokens of its own
    assert textmill.train(recipe, device="cpu").result["steps"] == 2


def test_verifying_makes_a_damaged_store_again(recipe, capsys, monkeypatch):
    monkeypatch.setattr(tokens, "COMPARED_ROWS", 1)  # of 25 rows, the second is none of the eight
    assert main(["prepare", str(recipe), "--workers", "0"]) == 0
    (path,) = (recipe.parent / "cache" / "tokens").glob("*/source.values")
    whole = path.read_bytes()
    times = path.stat()
    at = 2 * int(np.fromfile(path.with_name("source.offsets"), "<i8")[1])
    path.write_bytes(whole[:at] + b"\0\0" + whole[at + 2 :])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # no sign that it was changed
    capsys.readouterr()
    assert main(["prepare", str(recipe)]) == 0
    assert "again" not in capsys.readouterr().err
    assert main(["prepare", str(recipe), "--verify"]) == 0
    out, err = capsys.readouterr()
    differs = (
        rf"{re.escape(str(path))}: sha256 differs \([0-9a-f]{{12}}… instead of [0-9a-f]{{12}}…\)"
    )
    assert re.search(rf"{differs}\. The tokens are made again\.\n", err)
    assert "Tokenized 25 rows" in out
    assert path.read_bytes() == whole


def test_bad_rows_and_settings_stop_it(recipe):
    with pytest.raises(BadRowsError, match=r"train_data\.max_bad_rows=1"):
        prepare(recipe, ["train_data.max_bad_rows=0"])
    with pytest.raises(UserError, match=r"^workers: wanted 0 or more processes, found -1\.$"):
        prepare(recipe, workers=-1)

"""Names that are not UTF-8, or that a terminal would obey, in and around run folders."""

import os
import shutil

import pytest

import textmill
from tests.hostile.small_run import data, small_run, words
from textmill.cli.main import main
from textmill.errors import UserError

ODD = os.fsdecode(b"r\xff\x1b[2Jn")
COMMANDS = (
    "runs list runs",
    "runs verify {run}",
    "runs compare {run} {base}",
    "runs report {run} --against {base}",
    "runs prune runs --yes --keep 0",
    "predict {run} rows.txt",
    "evaluate {run} --predictions {odd}",
    "train {run}",
    "train {run} trainer.max_steps=6",
    "runs list runs",
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.txt").write_text("a b ham\n")
    return shutil.copytree(small_run(), tmp_path / "runs" / ODD)


def test_a_run_folder_of_an_odd_name_is_one_as_any(run, capsys):
    for place in ("", "predictions", "export"):
        (run / place).mkdir(exist_ok=True)
        (run / place / os.fsdecode(b"valid\xff-step-00000004.jsonl")).write_text("{}\n")
    for command in COMMANDS:
        given = {"run": run, "base": small_run(), "odd": ODD}
        code = main([word.format(**given) for word in command.split()])
        out, err = capsys.readouterr()
        assert code == 0, f"{command}: {err}"
        assert "\x1b" not in out + err
        (out + err).encode()  # no lone surrogate
        if command.startswith("runs list"):
            assert r"runs/r\udcff\x1b[2Jn" in out


def test_data_named_so_are_refused_in_words(tmp_path):
    path = tmp_path / ODD
    shutil.copy(data() / "train.tsv", path)
    with pytest.raises(UserError, match="not UTF-8 text, but files of settings are UTF-8"):
        textmill.train("classification/averaging", words(**{"train_data.path": path}))

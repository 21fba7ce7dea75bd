"""Each example does what it says, on tiny data."""

import subprocess
import sys
from pathlib import Path

from textmill.cli.main import main
from textmill.recipes.planning import plan_recipe

EXAMPLES = Path(__file__).parents[1] / "examples"


def prepare(*words):
    command = [sys.executable, str(EXAMPLES / "prepare_tatoeba.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write_pairs(path):
    """600 lines in 120 groups of five: an English and a French sentence of a group recur."""
    lines = []
    for group in range(120):
        english, french = f"The house {group} is red.", f"La maison {group} est rouge."
        lines += [
            f"{english}\t{french}\tCC-BY 2.0",
            f"{english}\tElle est rouge, la maison {group}.\tCC-BY 2.0",
            f"{english.upper()}\tMaison {group} !\tCC-BY 2.0",
            f"House {group} is red.\t{french}\tCC-BY 2.0",
            f"House {group}  is red.\tVoilà {group}.\tCC-BY 2.0",
        ]
    path.write_text("\n".join([*lines, lines[0], "no tab"]) + "\n", encoding="utf-8")


def sentences(path, column):
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(len(row) == 2 for row in rows)
    return {" ".join(row[column].casefold().split()) for row in rows}


def test_the_parts_share_no_sentence_and_are_the_same_for_any_order(tmp_path):
    write_pairs(tmp_path / "fra.txt")
    done = prepare(tmp_path / "fra.txt", tmp_path / "a", "--dev", "0.2")
    assert done.stderr == "1 lines without two columns were left out\n"
    for column in (0, 1):
        train, dev = (sentences(tmp_path / "a" / f"{n}.tsv", column) for n in ("train", "dev"))
        assert train
        assert dev
        assert not train & dev
    lines = (tmp_path / "fra.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "back.txt").write_text("".join(reversed(lines)), encoding="utf-8")
    prepare(tmp_path / "back.txt", tmp_path / "b", "--dev", "0.2")
    for name in ("train.tsv", "dev.tsv"):
        first, second = ((tmp_path / f / name).read_text().splitlines() for f in "ab")
        assert sorted(first) == sorted(second)
    counts = [len((tmp_path / "a" / f"{n}.tsv").read_text().splitlines()) for n in ("train", "dev")]
    assert sum(counts) == 600
    assert 0.1 < counts[1] / 600 < 0.3


def test_a_missing_file_and_a_wrong_share_are_said(tmp_path):
    done = prepare(tmp_path / "none.txt", tmp_path)
    assert done.returncode == 2
    assert "No such file" in done.stderr
    assert "Traceback" not in done.stderr
    done = prepare(tmp_path / "none.txt", tmp_path, "--dev", "3")
    assert done.stderr.endswith("error: --dev is 3; wanted a share between 0 and 1\n")


def test_tatoeba_trains_is_measured_and_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path / "fra.txt")
    assert prepare("fra.txt", "data/tatoeba", "--dev", "0.1").returncode == 0
    small = ["vocab_size=60", "model.dim=16", "num_encoder_layers=1", "num_decoder_layers=1"]
    small += ["max_steps=4", "model.num_heads=2"]
    recipe = str(EXAMPLES / "tatoeba.py")
    assert main(["check", recipe, *small]) == 0
    assert main(["train", recipe, "--run-dir", "run", *small]) == 0
    assert capsys.readouterr().out.endswith("run: run\n")
    (tmp_path / "data" / "tatoeba" / "train.tsv").unlink()
    assert main(["evaluate", "run"]) == 0
    assert "bleu" in capsys.readouterr().out
    (tmp_path / "new.txt").write_text("The house is red.\nHouse 3.\n")
    assert main(["predict", "run", "new.txt"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_example_and_the_experiment_are_the_same_recipe():
    script, named = (
        plan_recipe(recipe, targets=["trainer", "valid_data"]).plan.settings
        for recipe in (EXAMPLES / "tatoeba.py", "translation/tatoeba")
    )
    assert script == named

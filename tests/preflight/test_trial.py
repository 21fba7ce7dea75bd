"""``textmill test -f``: one ingredient is built, and data is read through and measured."""

import re

import pytest

from tests.preflight.test_check import SCRIPT
from textmill.preflight.ingredient_probe import try_ingredient

DATA = """
from pathlib import Path

from textmill.data import TextPairs

train_data = TextPairs.Config(path=Path("train.tsv"), shuffle=False)
"""

WHOLE = SCRIPT.replace('"train.tsv")', '"train.tsv"), shuffle=False')


@pytest.fixture
def attempt(tmp_path):
    """Tries one ingredient of a script; returns the lines that are said."""
    words = ["un", "deux", "trois", "quatre", "cinq"]
    rows = [f"{a} {b}\t{b} {a}" for a in words for b in words]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")

    def command(script, name, *words):
        (tmp_path / "recipe.py").write_text(script)
        said = []
        try_ingredient(str(tmp_path / "recipe.py"), name, words, device="cpu", say=said.append)
        return said

    return command


def test_rows_of_a_recipe_without_a_model_are_counted_and_shown(attempt):
    assert attempt(DATA, "train_data")[:2] == [
        "train_data: 25 rows; the first: {'source': 'un un', 'target': 'un un'}",
        "The recipe has no complete task yet; batches are shown once it has.",
    ]


def test_rows_of_a_whole_recipe_are_measured_as_batches(attempt):
    said = attempt(WHOLE, "train_data", "train_data.batch_size=10")
    assert re.fullmatch(r"train_data, one epoch: 3 batches, 25 examples in \d+\.\d\d s", said[1])
    assert re.fullmatch(r"[\d,]+ tokens/s, padding \d+\.\d %", said[2])
    assert re.fullmatch(
        r"a batch has 8\.3 examples and \d+ tokens on average; the longest source has \d+ ids, "
        r"target \d+",
        said[3],
    )
    assert said[-1].startswith("Success! train_data() = ")


def test_the_first_batch_is_shown_by_its_shapes_and_its_first_example_as_text_and_ids(attempt):
    said = attempt(WHOLE, "train_data", "train_data.batch_size=10")
    assert said[4] == "the first batch is a Seq2SeqBatch:"
    shapes = [line.split(" ", 3)[2:] for line in said[5:9]]
    assert [name for name, _ in shapes] == ["source", "source_lengths", "target", "target_lengths"]
    assert [shape for _, shape in shapes[1::2]] == ["[10] int64", "[10] int64"]
    assert re.fullmatch(r"\[10, \d+\] int64", shapes[0][1])
    assert said[9] == "its first example:"
    pattern = r"  (source|target), (\d+) ids: ([\d ]+) = '(\w+) (\w+)'"
    source, target = (re.fullmatch(pattern, line).groups() for line in said[10:12])
    assert [source[0], target[0]] == ["source", "target"]
    assert source[3:] == target[:2:-1], "the targets of this data are the sources backwards"
    for _, count, ids, *_ in (source, target):
        assert int(count) == len(ids.split())

"""``weft test -f``: one ingredient is built, and data is read through and measured."""

import re

import pytest

from weft.errors import PlanError
from weft.recipes.trial import try_ingredient

DATA = """
from pathlib import Path

from weft.data import TextPairs

train_data = TextPairs.Config(path=Path("train.tsv"), shuffle=False)
"""

WHOLE = (
    DATA
    + """
from weft.models import Transformer
from weft.text import FittedTokenizer

tokenizer = FittedTokenizer.Config(vocab_size=22)
model = Transformer.Config(dim=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
"""
)


@pytest.fixture
def attempt(tmp_path, monkeypatch):
    """Tries one ingredient of a script; returns the lines that are said."""
    monkeypatch.chdir(tmp_path)
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
    assert said[3].startswith("Success! train_data() = ")


def test_batches_of_any_type_are_counted(attempt):
    script = "def train_data(size: int = 3):\n    return [[1] * size, [2]]\n"
    said = attempt(script, "train_data", "size=4")
    assert said[0] == "size=4 sets train_data.size"
    assert said[1].startswith("train_data, one epoch: 2 batches, 5 examples in ")
    assert said[2] == "Success! train_data() = [[1, 1, 1, 1], [2]]"


def test_a_word_for_an_ingredient_that_is_not_reached_is_noted(attempt):
    said = attempt(WHOLE, "train_data", "vocab_size=21")
    assert said[:2] == [
        "vocab_size=21 sets tokenizer.vocab_size",
        "tokenizer is not used here; its settings (command line: vocab_size=21) change nothing.",
    ]


def test_an_ingredient_that_nobody_defines(attempt):
    with pytest.raises(PlanError) as caught:
        attempt(WHOLE, "modell")
    assert str(caught.value) == (
        "1 problem in the recipe; nothing was run.\n"
        "  no 'modell' is specified. Did you mean 'model'? Define modell in the recipe."
    )

"""Tasks of one's own whose targets are numbers, and modules of a function: trained and loaded."""

from pathlib import Path

import pytest

import textmill
import textmill.runs  # the default reporters name one of its own, html
from textmill.errors import CodeNotAllowedError
from textmill.preflight.check import check

NUMBERS = '''
"""Two numbers for each text."""
from pathlib import Path


import torch

import textmill
from textmill.data.text_rows import TextRows
from textmill.models.classifier import Regressor
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Loss
from textmill.text.columns.inputs import text_columns
from textmill.text.columns.numbers import FittedNumbers, NumbersColumn
from textmill.text.processors.column_processor import PlainColumns
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Trainer


class Grades(ColumnsTask):
    """The mean of the two is learnt."""

    class Config(ColumnsTask.Config):
        """No settings."""

    def __init__(self, config, *, module, tokenizer, numbers):
        super().__init__(config, module=module)
        grades = {"grades": NumbersColumn("grades", numbers)}
        self.text = PlainColumns(text_columns(tokenizer, column="text", max_length=20), grades)

    def loss(self, scores, batch):
        return Loss((scores - batch["grades"]).square().sum(), torch.tensor(float(len(batch))))

    def answers(self, scores, batch):
        return scores.squeeze(1).tolist()

    def answer_row(self, answer):
        return {"prediction": answer}


train_data = TextRows.Config(path=Path("rows.tsv"), columns=("text", "grades"), batch_size=4)
valid_data = textmill.like("train_data", shuffle=False)
tokenizer = FittedWords.Config()
numbers = FittedNumbers.Config(column="grades")
model = Regressor.Config()
task = Grades.Config()
trainer = Trainer.Config(max_steps=2)
'''


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"some text {n % 7}\t[{n % 5}, {n % 3}]\n" for n in range(40))
    Path("rows.tsv").write_text(rows)


def test_numbers_that_are_a_target_are_no_features_of_the_model_that_is_loaded():
    Path("recipe.py").write_text(NUMBERS)
    assert check("recipe.py", device="cpu").problems == []
    run = textmill.train("recipe.py", run_dir="run", device="cpu").folder
    predictor = textmill.load(run, allow_code=True, device="cpu")
    assert isinstance(predictor("some text"), float)
    assert textmill.evaluate(run, allow_code=True)["valid_data"].values["loss"] > 0


@pytest.mark.parametrize("change", ["made.hidden_scale = 1", "made.register_forward_hook(ten)"])
def test_a_module_that_a_function_changes_is_built_by_that_function(change):
    """It may be of a component of the library, whose settings say nothing of the change."""
    script = (
        NUMBERS
        + f"""

def ten(module, given, scores):
    return scores * 0 + 10


def module(model: Regressor.Config, tokenizer):
    made = model.build(tokenizer=tokenizer)
    {change}
    return made
"""
    )
    Path("recipe.py").write_text(script)
    run = textmill.train("recipe.py", run_dir="run", device="cpu").folder
    with pytest.raises(CodeNotAllowedError, match="made by code"):
        textmill.load(run, device="cpu")
    answer = textmill.load(run, allow_code=True, device="cpu")("some text")
    assert (answer == 10) == ("ten" in change)

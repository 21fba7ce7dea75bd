"""Names of other frameworks: who writes one is told textmill's, and textmill's are real."""

from pathlib import Path

import pytest
import torch

from textmill.cli.main import main
from textmill.config.foreign_names import SETTINGS
from textmill.config.ingredient import STANDARD
from textmill.errors import UserError
from textmill.recipes.planning import plan_recipe
from textmill.tasks import Loss, Outputs, Task
from textmill.tasks.evaluation import evaluate
from textmill.tasks.task import loss_of


def dotted(tree, name=""):
    if not isinstance(tree, dict):
        return {name}
    return {
        found for key, item in tree.items() for found in dotted(item, f"{name}.{key}".strip("."))
    }


def test_every_setting_that_is_named_is_one():
    known = set()
    for experiment in ("translation/demo", "classification/docnn"):
        known |= dotted(plan_recipe(experiment, targets=["trainer"], draft=True).plan.settings)
    known |= {f"test_data.{name.partition('.')[2]}" for name in known if "valid_data." in name}
    for theirs, ours in SETTINGS.items():
        if " " not in ours:
            assert ours in known, theirs
        elif ours.startswith("the ingredient"):
            assert set(ours.replace(",", "").split()) & set(STANDARD), theirs
    assert not {name.rpartition(".")[2] for name in known} & set(SETTINGS), "textmill's own names"


@pytest.mark.parametrize(
    "written",
    [
        "def lr_scheduler(optimizer):\n    return StepLR(optimizer, 10)",
        "def lr_scheduler(optimizer, gamma: float = 0.5) -> StepLR:\n"
        "    return StepLR(optimizer, 10, gamma)",
        "lr_scheduler = StepLR",
    ],
)
def test_a_scheduler_of_torch_is_an_ingredient(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "own", "--task"]) == 0
    monkeypatch.chdir("own")
    head, found, rest = Path("own.py").read_text().partition("lr_scheduler = Constant.Config()")
    assert found
    imports = "from torch.optim.lr_scheduler import StepLR\n"
    start = head.index("from pathlib")
    Path("own.py").write_text(head[:start] + imports + head[start:] + written + rest)
    set_here = ["lr_scheduler.step_size=5"] if written.endswith("= StepLR") else []
    assert main(["check", "own.py", *set_here]) == 0


class Returns(Task):
    """A task whose steps give what Lightning's do."""

    def __init__(self):
        self.module = torch.nn.Linear(1, 1)

    def batches(self, data, *, train, seed): ...
    def predict(self, rows): ...
    def answer_row(self, answer): ...

    def training_step(self, batch, examples=()):
        return torch.zeros(())

    def validation_step(self, batch, examples):
        return Loss(torch.zeros(()), torch.ones(()))


def test_a_step_that_returns_something_else_is_told_what_is_wanted():
    with pytest.raises(UserError, match=r"^Returns\.training_step returned a Tensor; wanted a"):
        loss_of(Returns(), None)

    class Batches(list):
        def examples(self, batch):
            return []

    with pytest.raises(UserError, match=r"^Returns\.validation_step returned a Loss; wanted"):
        evaluate(Returns(), Batches([1]))
    assert Outputs(Loss(torch.zeros(()), torch.ones(()))).answers == {}

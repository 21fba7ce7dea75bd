"""Names of other frameworks: who writes one is told textmill's, and textmill's are real."""

from pathlib import Path

import pytest
import torch

from textmill.cli.main import main
from textmill.config.foreign_names import SETTINGS
from textmill.config.ingredient import STANDARD
from textmill.errors import PlanError, UserError
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
    ("word", "text"),
    [
        ("learning_rate=1", "no setting is named 'learning_rate'. In textmill it is optimizer.lr."),
        (
            "accelerator=gpu",
            "no setting is named 'accelerator'. In textmill it is the argument device='cuda'.",
        ),
        ("mode=continuous_eval", "In textmill it is the command textmill watch RUNS."),
        ("load_snapshot_path=x", "In textmill it is the folder of a run, in place of the recipe."),
        ("use_fp16=true", "In textmill it is trainer.precision."),
        ("prepare_task=1", "In textmill it is the command textmill check RECIPE."),
        (
            "trainer.batch_size=32",
            "trainer has no setting 'batch_size'. In textmill it is train_data.batch_size. It has:",
        ),
        (
            "trainer.min_epochs=1",
            "trainer has no setting 'min_epochs'. In textmill it is not there: only "
            "trainer.selection.patience ends a run before its length. It has: max_steps,",
        ),
        (
            "trainer.validation_interval=5",
            "trainer has no setting 'validation_interval'. In textmill it is "
            "trainer.evaluate_every.",
        ),
        (
            "early_stop_after=5",
            "no setting is named 'early_stop_after'. In textmill it is trainer.selection.patience.",
        ),
        (
            "validation_data.path=x",
            "'validation_data' is no ingredient of this recipe. In textmill it is the ingredient "
            "valid_data.",
        ),
        (
            "modle.dim=5",
            "'modle' is no ingredient of this recipe. Did you mean 'model'?",
        ),
        ("trainer.devices=2", "In textmill it is textmill train --nproc N, a process for each"),
        ("runtime.num_gpus=2", "In textmill it is textmill train --nproc N, a process for each"),
        ("distributed_world_size=2", "In textmill it is textmill train --nproc N, a process for"),
        ("trainer.num_nodes=2", "In textmill it is textmill train --launcher slurm slurm.nodes=N"),
        ("trainer.strategy=fsdp", "In textmill it is trainer.data_parallelism."),
        ("trainer.recovery_max_trials=3", "In textmill it is trainer.max_nonfinite."),
        (
            "slurm.time=2h",
            "'slurm' is no ingredient of this recipe. In textmill it is a setting of --launcher "
            "slurm; add that option to train, grid or watch.",
        ),
        ("slurm.gpus=2", "In textmill it is a setting of --launcher slurm"),
    ],
)
def test_a_setting_of_another_framework_is_told_textmill_s_name(word, text):
    with pytest.raises(PlanError) as caught:
        plan_recipe("translation/demo", [word], targets=["trainer"])
    assert text in caught.value.problems[0].message


@pytest.mark.parametrize(
    "written",
    [
        "def lr_scheduler(optimizer):\n    return StepLR(optimizer, 10)",
        "def lr_scheduler(optimizer) -> StepLR:\n    return StepLR(optimizer, 10)",
    ],
)
def test_a_scheduler_of_torch_is_refused_with_what_to_write(tmp_path, monkeypatch, capsys, written):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "own", "--task"]) == 0
    monkeypatch.chdir("own")
    head, found, rest = Path("own.py").read_text().partition("lr_scheduler = Constant.Config()")
    assert found
    imports = "from torch.optim.lr_scheduler import StepLR\n"
    start = head.index("from pathlib")
    Path("own.py").write_text(head[:start] + imports + head[start:] + written + rest)
    assert main(["check", "own.py"]) == 2
    told = capsys.readouterr()
    wanted = "def lr_scheduler():\n    return lambda step, total, history: 0.95 ** (step // 100)"
    told = "\n".join(line.removeprefix("    ") for line in (told.out + told.err).splitlines())
    assert wanted in told
    Path("own.py").write_text(head + wanted + rest)
    assert main(["check", "own.py"]) == 0


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
    with pytest.raises(UserError) as caught:
        loss_of(Returns(), None)
    assert str(caught.value) == (
        "Returns.training_step returned a Tensor; wanted a textmill.tasks.Loss(total, count): the "
        "loss summed over its targets, and their number."
    )

    class Batches(list):
        def examples(self, batch):
            return []

    with pytest.raises(UserError) as caught:
        evaluate(Returns(), Batches([1]))
    assert str(caught.value) == (
        "Returns.validation_step returned a Loss; wanted textmill.tasks.Outputs(loss, answers): "
        "the Loss of the batch, and its answers by position."
    )
    assert Outputs(Loss(torch.zeros(()), torch.ones(()))).answers == {}

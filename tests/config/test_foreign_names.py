"""Names of other frameworks: who writes one is told textmill's, and textmill's are real."""

import importlib
from pathlib import Path

import pytest
import torch

import textmill
from textmill.cli.main import main
from textmill.config import Component
from textmill.config.foreign_names import ATTRIBUTES, HOOKS, SETTINGS
from textmill.config.ingredient import STANDARD
from textmill.config.sources.script import load_script
from textmill.errors import PlanError, UserError
from textmill.metrics import Metric
from textmill.recipes.planning import plan_recipe
from textmill.tasks import Loss, Outputs, Task, Translation
from textmill.tasks.evaluation import evaluate
from textmill.tasks.task import loss_of
from textmill.training import Callback, Schedule, Trainer


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


def test_every_hook_that_is_named_is_one():
    classes = {"Task": Task, "Callback": Callback, "Schedule": Schedule, "Metric": Metric}
    for name, kind in classes.items():
        for theirs, ours in HOOKS[name].items():
            assert not hasattr(kind, theirs)
            if not ours.startswith(("the ingredient", "the setting", "not there")):
                first = ours.partition(",")[0]
                assert hasattr(kind, first) or first == "loss", (theirs, ours)


def test_every_attribute_that_is_named_is_one():
    for theirs, ours in ATTRIBUTES.items():
        name = ours.partition(",")[0].partition(" ")[0].rstrip(";")
        module, _, attribute = name.rpartition(".")
        if module != "textmill" or attribute != "text":
            assert hasattr(importlib.import_module(module), attribute), theirs
        with pytest.raises(ImportError, match=f"there is no {theirs}. In textmill it is {name}"):
            getattr(importlib.import_module(theirs.rpartition(".")[0]), theirs.rpartition(".")[2])


def test_an_import_of_a_foreign_name_says_textmill_s(tmp_path):
    with pytest.raises(ImportError) as caught:
        from textmill.cli import Env  # noqa: F401
    assert (
        str(caught.value) == "there is no textmill.cli.Env. In textmill it is textmill.runtime.Env."
    )
    with pytest.raises(AttributeError, match="module 'textmill' has no attribute 'nothing'"):
        textmill.nothing  # noqa: B018
    script = tmp_path / "a.py"
    script.write_text("from textmill.generate import spm_train\n")
    with pytest.raises(UserError) as refused:
        load_script(script)
    assert str(refused.value) == (
        f"{script}:1: the script failed: ModuleNotFoundError: No module named "
        "'textmill.generate'. In "
        "textmill it is textmill.text.train_sentencepiece for spm_train, textmill.load to answer."
    )


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
            "'slurm' is no ingredient of this recipe. In textmill it is for --launcher slurm, "
            "which the command does not have.",
        ),
    ],
)
def test_a_setting_of_another_framework_is_told_textmill_s_name(word, text):
    with pytest.raises(PlanError) as caught:
        plan_recipe("translation/demo", [word], targets=["trainer"])
    assert text in caught.value.problems[0].message


def test_modes_of_model_garden_are_told_textmill_s():
    for mode, text in (
        ("train_and_eval", "In textmill it is train_and_evaluate."),
        ("continuous_eval", "In textmill it is the command textmill watch RUNS."),
    ):
        with pytest.raises(UserError) as caught:
            textmill.run_experiment("translation/demo", mode)
        assert str(caught.value).endswith(f"train, evaluate, train_and_evaluate. {text}")


@pytest.mark.parametrize("name", ["use_fp16", "load_snapshot_path", "epochs"])
def test_a_setting_there_that_is_taken_for_an_attribute_is_told_where_it_is(name):
    with pytest.raises(ImportError, match=f"there is no textmill.{name}. In textmill it is the "):
        getattr(textmill, name)


@pytest.mark.parametrize("setting", ["dim=8", "hidden=[4]", "nothing.at_all=1"])
def test_an_ingredient_without_settings_is_not_meant(setting):
    with pytest.raises(PlanError) as caught:
        plan_recipe("classification/averaging/local", [f"modle.{setting}"], targets=["trainer"])
    assert caught.value.problems[0].message == (
        "'modle' is no ingredient of this recipe. Did you mean 'model'?"
    )


def test_an_ingredient_of_a_file_is_told_textmill_s_name(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("scheduler: {type: constant}\nmodle: {max_length: 9}\n")
    with pytest.raises(PlanError) as caught:
        plan_recipe("translation/demo", configs=[file], targets=["trainer"])
    assert [problem.message for problem in caught.value.problems] == [
        "'scheduler' is no ingredient of this recipe. In textmill it is the ingredient "
        "lr_scheduler.",
        "'modle' is no ingredient of this recipe. Did you mean 'model'?",
    ]


def refused(base, *names) -> str:
    def method(self, batch, batch_idx=None): ...

    with pytest.raises(UserError) as caught:
        type("Mine", base if isinstance(base, tuple) else (base,), dict.fromkeys(names, method))
    return str(caught.value)


def test_a_hook_of_another_framework_is_refused_with_textmill_s_name():
    assert refused(Translation, "compute_loss", "build_inputs", "own") == (
        "Mine.build_inputs would never be called. In textmill it is the ingredients train_data, "
        "valid_data and test_data.\n"
        "Mine.compute_loss would never be called. In textmill it is loss, or training_step."
    )


@pytest.mark.parametrize(
    ("base", "name", "text"),
    [
        (Callback, "on_train_end", "would never be called. In textmill it is end."),
        (Schedule, "get_lr", "would never be called. In textmill it is after_warmup."),
        (Metric, "result", "would never be called. In textmill it is compute."),
        (
            (Component, torch.nn.Module),
            "configure_optimizers",
            "would never be called. In textmill it is the ingredients optimizer and lr_scheduler "
            "(and parameter_groups).",
        ),
        (
            Translation,
            "validation_epoch_end",
            "would never be called. In textmill it is the ingredient callbacks.",
        ),
        (
            Trainer,
            "train_step",
            "would never be called. In textmill it is a hook of the task, training_step.",
        ),
        (
            Translation,
            "validation_step",
            "asks for batch_idx, and is called as validation_step(batch, examples).",
        ),
    ],
)
def test_the_hooks_of_every_component_are_refused(base, name, text):
    assert refused(base, name) == f"Mine.{name} {text}"


def test_a_method_that_the_class_calls_itself_is_its_own_business():
    class Mine(Translation):
        def compute_loss(self, logits, targets):
            return super().loss(logits, targets)

        def loss(self, logits, targets):
            return self.compute_loss(logits, targets)

    class Further(Mine):
        def compute_loss(self, logits, targets):
            return super().compute_loss(logits, targets)

    assert Further.compute_loss is not Mine.compute_loss


def test_a_hook_that_calls_only_itself_is_never_called():
    with pytest.raises(UserError) as caught:

        class Mine(Translation):
            def setup(self, stage=None):
                super().setup(stage)

            def on_train_epoch_end(self):
                super().on_train_epoch_end()

            def on_before_optimizer_step(self, optimizer):
                return [super().on_before_optimizer_step(each) for each in [optimizer]]

    assert str(caught.value).split("Mine.")[1:] == [
        "on_before_optimizer_step would never be called. In textmill it is the ingredient "
        "callbacks.\n",
        "on_train_epoch_end would never be called. In textmill it is the ingredient callbacks.\n",
        "setup would never be called. In textmill it is initialize.",
    ]
    with pytest.raises(UserError, match=r"Late\.teardown would never be called\..* is end\."):

        class Late(Callback):
            def teardown(self, trainer, module, stage):
                super().teardown(trainer, module, stage)


def test_a_call_within_a_function_of_the_class_counts():
    class Mine(Translation):
        def setup(self, part): ...

        @property
        def made(self):
            return [self.setup(part) for part in (1, 2)]

    class Other(Translation):
        def setup(self, part): ...

        @torch.no_grad()
        def initialize(self):
            return sorted((1, 2), key=lambda part: self.setup(part))  # noqa: PLW0108

    assert Mine.setup is not Other.setup


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

    def training_step(self, batch):
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

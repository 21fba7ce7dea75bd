"""textmill.load and textmill.evaluate: from a run folder alone, by data alone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import textmill
from tests.trained_run import PAIRS, copy_of, data_in, edited, library_run, train_script
from tests.warm_textmill import warm_programs
from textmill.config import Recipe, register_experiment
from textmill.errors import CodeNotAllowedError, UserError

CANARY = '\nimport pathlib\npathlib.Path({path!r}).write_text("executed")\n'


@pytest.fixture
def run(tmp_path) -> Path:
    return copy_of(library_run(), tmp_path / "run")


@pytest.fixture
def canary(run, tmp_path):
    """The run's recipe writes a file if it is ever executed."""
    path = tmp_path / "canary"
    recipe = run / "recipe.py"
    recipe.write_text(recipe.read_text() + CANARY.format(path=str(path)))
    yield path
    assert not path.exists(), "code of the run folder was executed"


def data_words(folder: Path) -> list[str]:
    data_in(folder)
    return [f"valid_data.path={folder / 'dev.tsv'}"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_no_code_is_executed_and_nothing_is_written(run, canary, tmp_path):
    before = files_of(run)
    expected = textmill.load(library_run())("Go.")
    assert textmill.load(run)("Go.") == expected
    assert set(textmill.evaluate(run, data_words(tmp_path / "data"))) == {"valid_data"}
    assert files_of(run) == before


def test_a_moved_run_answers_from_another_folder_in_another_process(run, tmp_path, canary):
    """The data and the tokenizer's cache of this run are gone, and it lies elsewhere now."""
    (tmp_path / "far").mkdir()
    shutil.move(run, tmp_path / "far" / "away")
    code = f"import textmill; print(textmill.load({'far/away'!r})('Go.').text)"
    done = subprocess.run(
        [warm_programs() / "warm-python", "-c", code], cwd=tmp_path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == textmill.load(library_run())("Go.").text + "\n"
    assert done.stderr == ""


def test_checkpoints_by_name(run, monkeypatch):
    monkeypatch.chdir(run.parent)
    assert textmill.load("run").checkpoint == textmill.load(run, checkpoint="best").checkpoint
    assert textmill.load(run, checkpoint="last").checkpoint == "step-00000004"
    early = textmill.load("run", checkpoint="step-00000002")
    assert early.checkpoint == "step-00000002"
    assert early("Go.").score != textmill.load(run, checkpoint="last")("Go.").score


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(UserError) as caught:
        textmill.load(tmp_path)
    wanted = "wanted a folder that textmill train has written, with checkpoints/ in it."
    assert str(caught.value) == f"{tmp_path} is not a run folder; {wanted}"
    (tmp_path / "run.json").write_text('{"format_version": 1, "recipe": "r", "key": "k"}')
    with pytest.raises(UserError) as caught:
        textmill.load(tmp_path)
    way = f"textmill.train({str(tmp_path)!r})"
    assert str(caught.value) == f"{tmp_path} has no checkpoint yet; train it first: {way}"


def test_from_an_experiment(tmp_path):
    @register_experiment("tests/reload")
    def experiment() -> Recipe:
        from textmill.data import TextPairs
        from textmill.models import Transformer
        from textmill.text import FittedTokenizer
        from textmill.training import Trainer

        return Recipe(
            train_data=TextPairs.Config(path=tmp_path / "data" / "train.tsv"),
            valid_data=textmill.like("train_data", path=tmp_path / "data" / "dev.tsv"),
            tokenizer=FittedTokenizer.Config(vocab_size=60, cache_dir=tmp_path / "cache"),
            model=Transformer.Config(dim=16, num_heads=2, ffn_dim=32, num_encoder_layers=1),
            trainer=Trainer.Config(max_steps=1),
        )

    data_in(tmp_path / "data")
    done = textmill.train("tests/reload", ["reporters.console=false"], run_dir=tmp_path / "run")
    assert not (done.folder / "recipe.py").exists()
    assert set(textmill.evaluate(done.folder)) == {"valid_data"}
    shutil.rmtree(tmp_path / "data")
    shutil.rmtree(tmp_path / "cache")
    assert textmill.load(done.folder)("Go.").text is not None


# -- code of the recipe's own

MODULE_CLASS = """
from torch import nn
class module(nn.Module):
    def __init__(self, model, tokenizer):
        super().__init__()
        self.inner = model.build(tokenizer=tokenizer)
        self.max_length = self.inner.max_length
        self.encode, self.start, self.step = self.inner.encode, self.inner.start, self.inner.step
    def forward(self, source, source_lengths, target_in):
        return self.inner(source, source_lengths, target_in)
"""
OWN_TASK = """
from textmill.tasks import Loss
class Mine(Translation):
    def loss(self, logits, targets):
        base = super().loss(logits, targets)
        return Loss(base.total * 2, base.count, base.sums)
task = Mine.Config()
"""
OWN = {"module": MODULE_CLASS, "task": OWN_TASK}


@pytest.mark.parametrize("part", ["task", pytest.param("module", marks=pytest.mark.slow)])
def test_the_recipes_own_code_needs_to_be_allowed(tmp_path, part):
    run = train_script(tmp_path / "work", OWN[part])
    moved = tmp_path / "moved"
    shutil.move(run, moved)
    shutil.rmtree(tmp_path / "work")
    with pytest.raises(CodeNotAllowedError) as caught:
        textmill.load(moved)
    made = "of type '@Mine', code" if part == "task" else "made by code"
    assert str(caught.value).startswith(f"The {part} of {moved} is {made} of the recipe's")
    assert caught.value.exit_code == 2
    predictor = textmill.load(moved, allow_code=True)
    assert isinstance(predictor("Go.").text, str)
    words = data_words(tmp_path / "data")
    with pytest.raises(CodeNotAllowedError):
        textmill.evaluate(moved, words)
    values = textmill.evaluate(moved, words, allow_code=True)["valid_data"].values
    logged = [json.loads(line) for line in (moved / "metrics.jsonl").read_text().splitlines()]
    valid = [line for line in logged if line.get("split") == "valid"]
    steps = {line["step"]: line for line in valid}
    step = int(predictor.checkpoint.removeprefix("step-"))
    assert json.dumps(values["loss"])[:8] in json.dumps(steps[step])


REGISTERED = """
from torch import nn
from textmill.config import Component, Config
from textmill.recipes import registries
from textmill.models import Transformer
@registries.models.register("tests_deep")
class Deep(Component, nn.Module):
    class Config(Config):
        dim: int = 8
    def __init__(self, config, *, tokenizer):
        nn.Module.__init__(self)
        self.config = config
        sizes = dict(dim=config.dim, num_heads=2, ffn_dim=16, max_length=64)
        self.inner = Transformer.Config(**sizes).build(tokenizer=tokenizer)
        self.max_length = 64
        self.encode, self.start, self.step = self.inner.encode, self.inner.start, self.inner.step
    def forward(self, source, source_lengths, target_in):
        return self.inner(source, source_lengths, target_in)
"""


def test_a_registered_class_is_loaded_once_its_module_is_imported(tmp_path, monkeypatch):
    """In another process: without the import an error names the type; with it no flag is needed."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "tests_my_models.py").write_text(REGISTERED)
    monkeypatch.syspath_prepend(str(package))
    lines = "from tests_my_models import Deep\nmodel = Deep.Config(dim=16)"
    run = train_script(tmp_path / "work", lines)
    (run / "recipe.py").write_text(CANARY.format(path=str(tmp_path / "canary")))

    code = f"""
import textmill
from textmill.errors import UserError

try:
    textmill.load({str(run)!r})
except UserError as error:
    print(type(error).__name__, error)
import tests_my_models

print(textmill.load({str(run)!r})("Go.").text)
"""
    path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *filter(None, sys.path)])}
    done = subprocess.run(
        [warm_programs() / "warm-python", "-c", code], env=path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        f"NeedsCodeError The module of {run} is of type 'tests_deep', which nothing imported here "
        "has registered. Import the module that registers it (--include tests_my_models); or, if "
        f"it is the recipe's own ({run / 'recipe.py'}) and you trust that, allow it: --allow-code "
        "on the command line, allow_code=True in Python.",
        textmill.load(run)("Go.").text,
    ]
    assert not (tmp_path / "canary").exists()


def test_allowed_code_is_the_runs_own_recipe_and_no_other(tmp_path):
    run = train_script(tmp_path / "work", OWN_TASK)
    other = tmp_path / "work" / "other.py"
    other.write_text(CANARY.format(path=str(tmp_path / "canary")))
    config = run / "config.yaml"
    edited(run, "recipe: recipe.py", "recipe: ../other.py")
    with pytest.raises(UserError) as caught:
        textmill.load(run, allow_code=True)
    assert str(caught.value).startswith(f"{config}:1:9: '../other.py' is not the recipe that a run")
    assert not (tmp_path / "canary").exists()


# -- evaluate

OWN_TRAIN_DATA = f"""
def train_data():
    return [{{"source": s, "target": t}} for s, t in {PAIRS!r}]
valid_data = TextPairs.Config(path=HERE / "dev.tsv", max_tokens=300)
test_data = TextPairs.Config(path=HERE / "train.tsv", max_tokens=300)
"""


def test_valid_data_of_the_library_needs_no_code_where_train_data_is_the_recipes_own(tmp_path):
    run = train_script(tmp_path / "work", OWN_TRAIN_DATA)
    (run / "recipe.py").write_text(CANARY.format(path=str(tmp_path / "canary")))
    assert textmill.load(run)("Go.").text is not None
    found = textmill.evaluate(run)
    assert list(found) == ["valid_data", "test_data"]
    assert len(found["valid_data"].rows) == len({source for source, _ in PAIRS})
    assert not (tmp_path / "canary").exists()


def test_words_change_the_data_of_an_evaluation(run, tmp_path):
    data_in(tmp_path / "d")
    (tmp_path / "d" / "dev.tsv").write_text("Go.\tVa !\nGo.\tAllez !\n")
    words = [f"valid_data.path={tmp_path / 'd' / 'dev.tsv'}"]
    one = textmill.evaluate(run, words)["valid_data"]
    two = textmill.evaluate(run, [*words, "valid_data.batch_size=1"])["valid_data"]
    assert [row["references"] for row in one.rows] == [["Va !", "Allez !"]]
    assert one.values == pytest.approx(two.values, rel=1e-5)

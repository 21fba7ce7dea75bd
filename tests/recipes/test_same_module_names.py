"""Two projects whose own modules have one name, in one process: each run answers with its own."""

from pathlib import Path

import pytest

from tests.runs.test_own_parts import (
    PARTS,
    QUIET,
    RECIPE,
    data_in,
    in_new_process,
    loss_in_training,
)
from textmill.config.values.yaml_files import dump_yaml

FACTORS = {"a": 1, "b": 3}
"""By what the encoder of each project multiplies."""
IMPORTING = "import package.nets\nfrom package.nets import Named, Wide\n"
INCLUDED = {
    "recipe": "classification/docnn",
    "include": "mine",
    "settings": {
        "train_data": {"path": "train.tsv"}, "valid_data": {"path": "valid.tsv"},
        "model": {"encoder": {"type": "tests_named", "width": 5}}, "trainer": {"max_epochs": 1},
    },
}  # fmt: skip
CODE = """
import logging, sys, textmill
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from textmill.errors import TextmillError
def loss_of(run, **more):
    try:
        print(textmill.evaluate(run, **more)["valid_data"].values["loss"])
    except TextmillError as error:
        print(type(error).__name__, error)
"""


def parts_times(factor: int) -> str:
    return PARTS.replace("x.transpose(1, 2)).t", f"x.transpose(1, 2)).mul({factor}).t")


def trained(folder: Path, recipe: str) -> None:
    in_new_process(
        f"import textmill; textmill.train('{recipe}', {QUIET!r}, run_dir='run')", cwd=folder
    )


@pytest.fixture(scope="module")
def scripts(tmp_path_factory) -> Path:
    """Two projects, each a script and a package of two modules; only the inner one differs."""
    top = tmp_path_factory.mktemp("scripts")
    for name, factor in FACTORS.items():
        home = top / name
        (home / "package").mkdir(parents=True)
        data_in(home)
        (home / "package" / "nets.py").write_text(parts_times(factor))
        encoder = {"a": "Named", "b": "Wide"}[name]
        model = f"encoder={encoder}.Config(width=5)"
        (home / "own.py").write_text(IMPORTING + RECIPE.format(folder=home, model=model, task=""))
        trained(home, "own.py")
    return top


def said(top: Path, code: str) -> list[str]:
    return in_new_process(CODE + code, cwd=top).splitlines()


def losses(top: Path, *names: str) -> list[float]:
    return [pytest.approx(loss_in_training(top / name / "run"), rel=1e-5) for name in names]


def test_a_run_does_not_answer_unasked_with_the_code_of_another(scripts):
    loss, refused = said(scripts, "loss_of('a/run', allow_code=True)\nloss_of('b/run')\n")
    assert [float(loss)] == losses(scripts, "a")
    assert refused == (
        "NeedsCodeError a/run/package/nets.py changed since b/run was trained. "
        "Restore it, or let the run's own copy be used, if you trust it: --allow-code on the "
        "command line, allow_code=True in Python."
    )


def test_an_included_module_of_another_run_is_refused(tmp_path):
    """Such a run keeps no copy of its module."""
    for name, factor in FACTORS.items():
        home = tmp_path / name
        home.mkdir()
        data_in(home)
        (home / "mine.py").write_text(parts_times(factor))
        (home / "mine.yaml").write_text(dump_yaml(INCLUDED))
        trained(home, "mine.yaml")
    asked = "".join(
        f"os.chdir('{tmp_path / name}')\nloss_of('run', allow_code=True)\n" for name in "ab"
    )
    loss, refused = said(tmp_path, "import os\n" + asked)
    assert [float(loss)] == losses(tmp_path, "a")
    assert refused == (
        f"UserError {tmp_path / 'a' / 'mine.py'} changed since run was trained, and this "
        "process has imported it already. Use the run in a process of its own, which imports what "
        "it was trained with."
    )

"""A checkpoint, a pointer or settings of another run or step: said, and never answered from."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import textmill
from tests.hostile.folder import says
from tests.trained_run import copy_of, edited, train_script
from textmill.cli.main import main
from textmill.errors import CheckpointError
from textmill.runs.export import export

WORDS = ("trainer.selection.metric=loss", "trainer.selection.better=higher")  # step 2 is the best
BEST, LAST = "step-00000002", "step-00000004"


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    return train_script(tmp_path_factory.mktemp("begun"), words=WORDS)


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    """A run of the same shape."""
    return train_script(tmp_path_factory.mktemp("other"), words=(*WORDS, "trainer.seed=2"))


@pytest.fixture
def run(begun, tmp_path) -> Path:
    return copy_of(begun, tmp_path / "run")


@pytest.fixture(scope="module")
def answers(begun):
    found = {name: textmill.load(begun, checkpoint=name)("Go.") for name in (BEST, LAST)}
    assert found[BEST] != found[LAST]
    return found


def swap(first: Path, second: Path) -> None:
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def takes(run: Path, other: Path, *names: str) -> None:
    """Puts parts of another run in the place of a run's own."""
    for name in names:
        if (run / name).is_dir():
            shutil.rmtree(run / name)
            shutil.copytree(other / name, run / name)
        else:
            shutil.copy(other / name, run / name)


def says_of_best(run: Path, /, **changes: object) -> None:
    says(run / "checkpoints" / BEST / "manifest.json", lambda content: content.update(changes))


Damage = Callable[[Path, Path], object]
CHECKPOINTS: dict[str, tuple[Damage, str, str]] = {
    "best.json and last.json swapped": (
        lambda run, _: swap(run / "checkpoints/best.json", run / "checkpoints/last.json"),
        "best.json: it was written as last.json",
        BEST,
    ),
    "best.json missing": (
        lambda run, _: (run / "checkpoints/best.json").unlink(),
        "best.json: missing",
        BEST,
    ),
    "best.json missing, and what it was of": (
        lambda run, _: [
            (run / "checkpoints/best.json").unlink(),
            shutil.rmtree(run / "checkpoints" / BEST),
        ],
        "best.json: missing",
        LAST,
    ),
    "another run's checkpoint and its pointer": (
        lambda run, other: takes(run, other, f"checkpoints/{BEST}", "checkpoints/best.json"),
        "manifest.json: it is of another run",
        LAST,
    ),
    "a checkpoint without a name of its run": (
        lambda run, _: says_of_best(run, run=None),
        "manifest.json: it is of another run",
        LAST,
    ),
    "another save of the step": (
        lambda run, _: says_of_best(run, versions={"torch": "9"}),
        "best.json",
        LAST,
    ),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_answers_are_the_best_ones_or_it_is_said_whose_they_are(
    run, other, answers, name, caplog, capsys
):
    damage, reason, used = CHECKPOINTS[name]
    damage(run, other)
    caplog.clear()
    predictor = textmill.load(run)
    (message,) = caplog.messages
    assert reason in message
    assert message.endswith(f"using {used}")
    assert predictor.checkpoint == used
    assert predictor("Go.") == answers[used]
    assert main(["runs", "verify", str(run)]) == 1
    assert reason in capsys.readouterr().out


def test_swapped_checkpoints_are_not_used(run, capsys):
    swap(run / "checkpoints" / BEST, run / "checkpoints" / LAST)
    for word in ({}, {"checkpoint": LAST}):
        with pytest.raises(CheckpointError, match=r"manifest\.json: it is of step 2"):
            textmill.load(run, **word)
    assert main(["runs", "verify", str(run)]) == 1
    assert f"{BEST}: manifest.json: it is of step 4\n" in capsys.readouterr().out


# -- what says what the weights mean


def unsealed(run: Path, _: Path) -> None:
    """Leaves out the comments, as any YAML tool does that writes the file anew."""
    lines = (run / "config.yaml").read_text().splitlines(keepends=True)
    (run / "config.yaml").write_text("".join(line for line in lines if line[0] != "#"))


CONFIGS: dict[str, tuple[Damage, str]] = {
    "heads": (lambda run, _: change(run, "num_heads: 2", "num_heads: 4"), "the seal in its last"),
    "cut": (lambda run, _: change(run, "# sealed: run", "#"), "its last lines, are gone"),
    "another tool's": (unsealed, "its last lines, are gone"),
    "another run's": (lambda run, other: takes(run, other, "config.yaml"), "it is of another run"),
}


def change(run: Path, old: str, new: str) -> None:
    path = run / "config.yaml"
    text = path.read_text()
    assert old in text, old
    path.write_text(text.replace(old, new))


USES: dict[str, Callable[[Path], object]] = {
    "load": textmill.load,
    "evaluate": textmill.evaluate,
    "export": lambda run: export(run, "ctranslate2"),
    "train": lambda run: textmill.train(run, ["trainer.max_steps=6"], allow_code=True),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_settings_that_are_not_the_runs_are_not_used(run, other, name, capsys):
    damage, why = CONFIGS[name]
    damage(run, other)
    for use in USES.values():
        with pytest.raises(CheckpointError, match=f"(?s){run}.*{why}"):
            use(run)
    (run / "asked.txt").write_text("Go.\n")
    for words in (
        ["predict", str(run), str(run / "asked.txt")],
        ["train", str(run), "trainer.max_steps=+2"],
    ):
        assert main(words) == CheckpointError.exit_code
        printed = capsys.readouterr()
        assert (printed.out, why in printed.err) == ("", True)
    assert main(["runs", "verify", str(run)]) == 1
    assert why in capsys.readouterr().out


def test_an_edited_copy_is_a_recipe_of_its_own(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change(run, "max_steps: 4", "max_steps: 2")
    made = textmill.train(run / "config.yaml", run_dir="new", allow_code=True)
    assert made.result["steps"] == 2
    textmill.load("new")


OWN_TASK = """
from textmill.tasks import Translation
class Mine(Translation):
    pass
task = Mine.Config()
"""


def test_code_that_is_not_the_runs_is_not_executed(tmp_path, capsys):
    run = train_script(tmp_path / "work", OWN_TASK)
    textmill.load(run, allow_code=True)
    (run / "recipe.py").write_text((run / "recipe.py").read_text() + "open('canary', 'w')\n")
    for use in (textmill.load, textmill.train):
        with pytest.raises(CheckpointError) as refused:
            use(run, allow_code=True, **({"overrides": WORDS} if use is textmill.train else {}))
        assert str(refused.value).startswith(f"recipe.py in {run}: not as the run wrote it")
    assert main(["runs", "verify", str(run)]) == 1
    assert "recipe.py: it is not as the run wrote it\n" in capsys.readouterr().out


# -- going on


def weights_of(run: Path) -> bytes:
    last = json.loads((run / "checkpoints" / "last.json").read_text())["folder"]
    return (run / "checkpoints" / last / "model.safetensors").read_bytes()


GOING_ON: dict[str, tuple[Damage, str, str]] = {
    "last.json damaged": (
        lambda run, _: (run / "checkpoints/last.json").write_text("{}"),
        "last.json: its own digest does not fit",
        "the run",
    ),
    "newest manifest missing": (
        lambda run, _: (run / "checkpoints" / LAST / "manifest.json").unlink(),
        f"checkpoint {LAST} skipped: manifest.json: missing",
        "the command that began it",
    ),
    "another run's newest": (
        lambda run, other: takes(run, other, f"checkpoints/{LAST}"),
        f"checkpoint {LAST} skipped: manifest.json: it is of another run",
        "the run",
    ),
    "best.json damaged": (
        lambda run, _: (run / "checkpoints/best.json").write_text("{}"),
        "",  # it is written anew, as by any run that goes on
        "the command that began it",
    ),
}


LONGER = ["trainer.max_steps=8", "trainer.keep=1"]


@pytest.fixture(scope="module")
def undisturbed(begun, tmp_path_factory):
    run = copy_of(begun, tmp_path_factory.mktemp("undisturbed") / "run")
    textmill.train(run, LONGER, allow_code=True)
    return run


@pytest.mark.parametrize("name", GOING_ON)
def test_going_on_falls_back_and_ends_as_if_nothing_had_been(
    run, undisturbed, begun, other, name, caplog
):
    damage, line, by = GOING_ON[name]
    damage(run, other)
    caplog.clear()
    if by == "the run":
        textmill.train(run, LONGER, allow_code=True)
    else:
        info = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(
            json.dumps({**info, "length": {**info["length"], "max_steps": 8}, "finished": False})
        )
        script = begun.parent / "tiny.py"
        textmill.train(script, [*WORDS, *LONGER, "reporters.console=false"], run_dir=run)
    assert not line or any(message.startswith(line) for message in caplog.messages)
    assert weights_of(run) == weights_of(undisturbed)
    assert textmill.load(run).checkpoint == textmill.load(undisturbed).checkpoint == BEST
    assert main(["runs", "verify", str(run)]) == 0


def test_the_command_that_began_a_run_writes_damaged_settings_anew(run, begun, caplog):
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "finished": False}))
    change(run, "num_heads: 2", "num_heads: 4")
    caplog.clear()
    textmill.train(begun.parent / "tiny.py", [*WORDS, "reporters.console=false"], run_dir=run)
    assert any(
        message.startswith(f"{run / 'config.yaml'} is not as the run wrote it")
        for message in caplog.messages
    )
    textmill.load(run)


def test_a_run_keeps_its_name_and_another_has_its_own(run, other):
    name = json.loads((run / "run.json").read_text())["id"]
    assert name != json.loads((other / "run.json").read_text())["id"]
    textmill.train(run, ["trainer.max_steps=6"], allow_code=True)
    assert json.loads((run / "run.json").read_text())["id"] == name
    assert edited(run)
    textmill.load(run)


@pytest.mark.parametrize("name", [None, "x\nrecipe: y.py"])
def test_the_checkpoints_tell_the_name_of_their_run(run, other, begun, name):
    info = json.loads((run / "run.json").read_text())
    own = info["id"]
    changed = {"finished": False, "id": name or own}
    (run / "run.json").write_text(json.dumps({**info, **changed}))
    if name is None:
        takes(run, other, "config.yaml")
    textmill.train(begun.parent / "tiny.py", [*WORDS, "reporters.console=false"], run_dir=run)
    assert json.loads((run / "run.json").read_text())["id"] == own
    assert textmill.load(run).checkpoint == BEST
    assert main(["runs", "verify", str(run)]) == 0

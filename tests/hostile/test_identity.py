"""A checkpoint, a pointer or settings of another run or step: said, and never answered from."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import textmill
from tests.trained_run import copy_of, edited, train_script
from textmill.cli.main import main
from textmill.errors import CheckpointError
from textmill.runs.export import export
from textmill.runtime.sealed import seal

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


def says(path: Path, **changes: object) -> None:
    """Changes a sealed file, and seals it again."""
    content = json.loads(path.read_text())
    content.pop("digest")
    path.write_bytes(seal({k: v for k, v in {**content, **changes}.items() if v != ""}))


Damage = Callable[[Path, Path], object]
CHECKPOINTS: dict[str, tuple[Damage, str, str]] = {
    "best.json and last.json swapped": (
        lambda run, _: swap(run / "checkpoints/best.json", run / "checkpoints/last.json"),
        f"best.json: it was written as last.json; {BEST} is the best by the evaluations in {LAST}; "
        f"using {BEST}",
        "best.json: it was written as last.json",
    ),
    "best.json missing": (
        lambda run, _: (run / "checkpoints/best.json").unlink(),
        f"best.json: missing; {BEST} is the best by the evaluations in {LAST}; using {BEST}",
        "best.json: missing",
    ),
    "best.json missing, and what it was of": (
        lambda run, _: [
            (run / "checkpoints/best.json").unlink(),
            shutil.rmtree(run / "checkpoints" / BEST),
        ],
        f"best.json: missing; {BEST} is the best by the evaluations in {LAST}, and is gone; "
        f"using {LAST}",
        "best.json: missing",
    ),
    "another run's checkpoint": (
        lambda run, other: takes(run, other, f"checkpoints/{BEST}"),
        f"checkpoint {BEST} skipped: manifest.json: it is of another run (OTHER instead of OWN); "
        f"using {LAST}",
        f"{BEST}: manifest.json: it is of another run (OTHER instead of OWN)",
    ),
    "another run's checkpoint and its pointer": (
        lambda run, other: takes(run, other, f"checkpoints/{BEST}", "checkpoints/best.json"),
        f"checkpoint {BEST} skipped: manifest.json: it is of another run (OTHER instead of OWN); "
        f"using {LAST}",
        f"{BEST}: manifest.json: it is of another run (OTHER instead of OWN)",
    ),
    "a checkpoint without a name of its run": (
        lambda run, _: says(run / "checkpoints" / BEST / "manifest.json", run=None),
        f"checkpoint {BEST} skipped: manifest.json: it is of another run (one without a name "
        f"instead of OWN); using {LAST}",
        f"{BEST}: manifest.json: it is of another run (one without a name instead of OWN)",
    ),
    "another save of the step": (
        lambda run, _: says(run / "checkpoints" / BEST / "manifest.json", versions={"torch": "9"}),
        f"checkpoint {BEST} skipped: manifest.json: it is not the one that best.json means; "
        f"using {LAST}",
        f"best.json: {BEST} is not the checkpoint that it points to",
    ),
    "another step under its name": (
        lambda run, _: [
            shutil.rmtree(run / "checkpoints" / BEST),
            shutil.copytree(run / "checkpoints" / LAST, run / "checkpoints" / BEST),
        ],
        f"checkpoint {BEST} skipped: manifest.json: it is of step 4; using {LAST}",
        f"{BEST}: manifest.json: it is of step 4",
    ),
}


def named(run: Path, other: Path, text: str) -> str:
    names = [json.loads((folder / "run.json").read_text())["id"] for folder in (other, run)]
    return text.replace("OTHER", names[0]).replace("OWN", names[1])


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_answers_are_the_best_ones_or_it_is_said_whose_they_are(
    run, other, name, caplog, capsys
):
    damage, line, problem = CHECKPOINTS[name]
    answers = {n: textmill.load(run, checkpoint=n)("Go.") for n in (BEST, LAST)}
    assert answers[BEST] != answers[LAST]
    damage(run, other)
    caplog.clear()
    predictor = textmill.load(run)
    assert caplog.messages == [named(run, other, line)]
    assert predictor.checkpoint == line.rpartition(" ")[2]
    assert predictor("Go.") == answers[predictor.checkpoint]
    assert main(["runs", "verify", str(run)]) == 1
    assert named(run, other, problem) in capsys.readouterr().out.splitlines()


def test_swapped_checkpoints_are_not_used(run, capsys):
    swap(run / "checkpoints" / BEST, run / "checkpoints" / LAST)
    with pytest.raises(CheckpointError) as refused:
        textmill.load(run)
    assert str(refused.value) == (
        f"No checkpoint in {run / 'checkpoints'} can be used.\n"
        f"  checkpoint {BEST} skipped: manifest.json: it is of step 4\n"
        f"  checkpoint {LAST} skipped: manifest.json: it is of step 2"
    )
    with pytest.raises(CheckpointError, match="it is of step 2"):
        textmill.load(run, checkpoint=LAST)
    assert main(["runs", "verify", str(run)]) == 1
    assert f"{BEST}: manifest.json: it is of step 4\n" in capsys.readouterr().out


def test_another_runs_checkpoint_asked_for_by_its_name_is_refused(run, other):
    takes(run, other, f"checkpoints/{BEST}")
    with pytest.raises(CheckpointError, match=f"{BEST}: manifest.json: it is of another run"):
        textmill.load(run, checkpoint=BEST)


# -- what says what the weights mean


def unsealed(run: Path, _: Path) -> None:
    """Leaves out the comments, as any YAML tool does that writes the file anew."""
    lines = (run / "config.yaml").read_text().splitlines(keepends=True)
    (run / "config.yaml").write_text("".join(line for line in lines if line[0] != "#"))


CONFIGS: dict[str, tuple[Damage, str]] = {
    "heads": (lambda run, _: change(run, "num_heads: 2", "num_heads: 4"), "the seal in its last"),
    "norm": (lambda run, _: change(run, "eps: 1.0e-05", "eps: 1.0e-02"), "the seal in its last"),
    "length": (lambda run, _: change(run, "max_length_b: ", "max_length_b: 1"), "the seal in its"),
    "a comment": (lambda run, _: change(run, "settings:", "# mine\nsettings:"), "the seal in its"),
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
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", CONFIGS)
def test_settings_that_are_not_the_runs_are_not_answered_from(run, other, name, use, capsys):
    damage, why = CONFIGS[name]
    damage(run, other)
    with pytest.raises(CheckpointError) as refused:
        USES[use](run)
    assert why in str(refused.value)
    assert str(run) in str(refused.value)
    (run / "asked.txt").write_text("Go.\n")
    assert main(["predict", str(run), str(run / "asked.txt")]) == refused.value.exit_code
    printed = capsys.readouterr()
    assert (printed.out, why in printed.err) == ("", True)
    assert main(["runs", "verify", str(run)]) == 1
    assert why in capsys.readouterr().out


def test_the_refusal_says_what_to_do(run):
    change(run, "num_heads: 2", "num_heads: 4")
    with pytest.raises(CheckpointError) as refused:
        textmill.load(run)
    path = run / "config.yaml"
    assert str(refused.value) == (
        f"{path} is not as the run wrote it: the seal in its last line does not fit. It says what "
        "the weights mean, so they are not used. Restore it from a copy; an unfinished run writes "
        "it anew when it is started by the command that began it. To train with other settings, "
        f"name the file as a recipe: textmill.train({str(path)!r})"
    )
    with pytest.raises(CheckpointError, match="the seal in its last line does not fit"):
        textmill.train(run, ["trainer.max_steps=6"], allow_code=True)


def test_an_edited_copy_is_a_recipe_of_its_own(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change(run, "max_steps: 4", "max_steps: 2")
    made = textmill.train(run / "config.yaml", run_dir="new", allow_code=True)
    assert made.result["steps"] == 2
    textmill.load("new")


def test_a_lawful_change_is_sealed_anew(run):
    textmill.train(run, ["trainer.max_steps=6"], allow_code=True)
    assert main(["runs", "verify", str(run)]) == 0
    textmill.load(run)


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
        assert str(refused.value) == (
            f"recipe.py in {run}: not as the run wrote it, and it says what the weights mean. "
            "Restore it from a copy, or go on with the run by the command that began it, which "
            "writes it anew."
        )
    assert main(["runs", "verify", str(run)]) == 1
    assert "recipe.py: it is not as the run wrote it\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", CONFIGS)
def test_settings_that_are_not_the_runs_are_not_gone_on_with(run, other, name, capsys):
    damage, why = CONFIGS[name]
    damage(run, other)
    with pytest.raises(CheckpointError) as refused:
        textmill.train(run, ["trainer.max_steps=6"], allow_code=True)
    assert why in str(refused.value)
    assert str(run) in str(refused.value)
    assert main(["train", str(run), "trainer.max_steps=+2"]) == refused.value.exit_code
    assert why in capsys.readouterr().err


# -- going on


def weights_of(run: Path) -> bytes:
    last = json.loads((run / "checkpoints" / "last.json").read_text())["folder"]
    return (run / "checkpoints" / last / "model.safetensors").read_bytes()


GOING_ON: dict[str, tuple[Damage, str]] = {
    "last.json damaged": (
        lambda run, _: (run / "checkpoints/last.json").write_text("{}"),
        f"last.json: its own digest does not fit its content; using {LAST}",
    ),
    "last.json missing": (lambda run, _: (run / "checkpoints/last.json").unlink(), ""),
    "newest manifest damaged": (
        lambda run, _: (run / "checkpoints" / LAST / "manifest.json").write_text("{}"),
        f"checkpoint {LAST} skipped: manifest.json: its own digest does not fit its content; "
        f"using {BEST}",
    ),
    "newest manifest missing": (
        lambda run, _: (run / "checkpoints" / LAST / "manifest.json").unlink(),
        f"checkpoint {LAST} skipped: manifest.json: missing; using {BEST}",
    ),
    "newest gone": (
        lambda run, _: shutil.rmtree(run / "checkpoints" / LAST),
        f"checkpoint {LAST} skipped: last.json points to it, but it is gone; using {BEST}",
    ),
    "newest text damaged": (
        lambda run, _: (run / "checkpoints" / LAST / "text/text.json").write_text("{}"),
        f"checkpoint {LAST} skipped: text/text.json: 2 bytes instead of ",
    ),
    "another run's newest": (
        lambda run, other: takes(run, other, f"checkpoints/{LAST}"),
        f"checkpoint {LAST} skipped: manifest.json: it is of another run (OTHER instead of OWN); "
        f"using {BEST}",
    ),
    "best.json missing": (
        lambda run, _: (run / "checkpoints/best.json").unlink(),
        f"best.json: missing; it points to {BEST} again",
    ),
    "best.json damaged": (
        lambda run, _: (run / "checkpoints/best.json").write_text("{}"),
        f"best.json: its own digest does not fit its content; it points to {BEST} again",
    ),
}


LONGER = ["trainer.max_steps=8", "trainer.keep=1"]


@pytest.fixture(scope="module")
def undisturbed(begun, tmp_path_factory):
    run = copy_of(begun, tmp_path_factory.mktemp("undisturbed") / "run")
    textmill.train(run, LONGER, allow_code=True)
    return run


@pytest.mark.parametrize("by", ["the run", "the command that began it"])
@pytest.mark.parametrize("name", GOING_ON)
def test_going_on_falls_back_and_ends_as_if_nothing_had_been(
    run, undisturbed, begun, other, name, by, caplog
):
    damage, line = GOING_ON[name]
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
    if line:
        assert any(message.startswith(named(run, other, line)) for message in caplog.messages)
    assert weights_of(run) == weights_of(undisturbed)
    assert textmill.load(run).checkpoint == textmill.load(undisturbed).checkpoint == BEST
    assert main(["runs", "verify", str(run)]) == 0


def test_the_command_that_began_a_run_writes_damaged_settings_anew(run, begun, caplog):
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "finished": False}))
    change(run, "num_heads: 2", "num_heads: 4")
    caplog.clear()
    textmill.train(begun.parent / "tiny.py", [*WORDS, "reporters.console=false"], run_dir=run)
    assert (
        f"{run / 'config.yaml'} is not as the run wrote it: the seal in its last line does not fit."
        " It is written anew."
    ) in caplog.messages
    textmill.load(run)


def test_a_run_keeps_its_name_and_another_has_its_own(run, other):
    name = json.loads((run / "run.json").read_text())["id"]
    assert name != json.loads((other / "run.json").read_text())["id"]
    textmill.train(run, ["trainer.max_steps=6"], allow_code=True)
    assert json.loads((run / "run.json").read_text())["id"] == name
    assert edited(run)
    textmill.load(run)


NAMES: dict[str, Damage] = {
    "config.yaml of another run": lambda run, other: takes(run, other, "config.yaml"),
    "another name in run.json": lambda run, _: named_in_info(run, "0123456789abcdef"),
    "no name in run.json": lambda run, _: named_in_info(run, "x\nrecipe: y.py"),
}


def named_in_info(run: Path, name: str) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "id": name}))


@pytest.mark.parametrize("name", NAMES)
def test_the_checkpoints_tell_the_name_of_their_run(run, other, begun, name):
    own = json.loads((run / "run.json").read_text())["id"]
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "finished": False}))
    NAMES[name](run, other)
    textmill.train(begun.parent / "tiny.py", [*WORDS, "reporters.console=false"], run_dir=run)
    assert json.loads((run / "run.json").read_text())["id"] == own
    assert textmill.load(run).checkpoint == BEST
    assert main(["runs", "verify", str(run)]) == 0

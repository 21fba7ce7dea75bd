"""Which run a command means: the same one, another, or none; and what a run keeps of itself."""

import json
import math
import shutil
from pathlib import Path

import pytest
import yaml

import textmill
from tests.runs.made_runs import made_run
from tests.runs.tiny import write_recipe
from textmill.errors import DataError, PlanError, UserError
from textmill.run_folder.folder import RunFolder
from textmill.text import train_sentencepiece

SHORT = ["trainer.max_steps=2"]
LABELS = [
    *("train_data.path=train.tsv", "valid_data.path=train.tsv", "trainer.max_steps=2"),
    *("tokenizer.type=fitted_words", "dictionary.type=phrases", "dictionary.path=phrases.tsv"),
    *("model.embedding.vectors=vectors.txt", "model.embedding.dim=2"),
]
ROWS = """
def train_data():
    lines = Path("train.tsv").read_text(encoding="utf-8").splitlines()
    return [dict(zip(("source", "target"), line.split("\\t"), strict=True)) for line in lines]

valid_data = TextPairs.Config(path=Path("valid.tsv"), max_tokens=None, batch_size=4, shuffle=False)
"""
CALLBACKS = """
from textmill.errors import UserError
from textmill.training import Callback

class Log(Callback):
    def __init__(self, path): self.path = path
    def step(self, progress):
        self.path.write_text(f"{self.path.read_text()}{progress.steps} ")
        if Path("stop").exists():
            raise UserError("stopped")

def callbacks(log: Path = Path("steps.log")): return [Log(log)]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A folder with a finished run of the recipe, and the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(write_recipe(tmp_path_factory.mktemp("once")))
        return Path.cwd(), textmill.train("tiny.py", SHORT)


@pytest.fixture
def trained(once, folder):
    """A finished run in the folder of the test."""
    shutil.copytree(once[0], folder, dirs_exist_ok=True)
    return once[1]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def add(path: Path, line: str) -> None:
    path.write_text(path.read_text() + line)


# -- the same key and data: it goes on to the length that is asked for


@pytest.mark.parametrize("by", ["recipe", pytest.param("folder", marks=pytest.mark.slow)])
def test_another_length_goes_on_and_is_kept(trained, caplog, by):
    caplog.set_level("INFO", logger="textmill")
    run = trained.folder
    recipe = "tiny.py" if by == "recipe" else run
    longer = textmill.train(recipe, ["trainer.max_steps=3"], allow_code=True)
    assert (longer.folder, longer.result["steps"]) == (run, 3)
    assert "trainer.max_steps: 2 -> 3" in caplog.messages
    assert "Resumed at step 2." in caplog.text
    info = RunFolder(run).info
    assert info["length"]["max_steps"] == 3
    (change,) = info["changes"]
    assert change["step"] == 2
    assert change["settings"] == {"trainer.max_steps": {"before": 2, "now": 3}}
    assert textmill.train("tiny.py", ["trainer.max_steps=3"]) == longer


def test_a_shorter_one_is_another_run_beside_it(folder, caplog):
    long = textmill.train("tiny.py", ["trainer.max_steps=3", "trainer.max_time=15m"]).folder
    short = textmill.train("tiny.py", ["trainer.max_steps=2", "trainer.max_time=5m"])
    assert (short.folder.name, short.result["steps"]) == (f"{long.name}-2", 2)
    assert f"{long} is longer already: it has 3 steps (trainer.max_steps=2)" in caplog.text
    with pytest.raises(UserError, match="is longer already"):
        textmill.train(long, ["trainer.max_steps=2"], allow_code=True)
    longer = textmill.train("tiny.py", ["trainer.max_steps=4", "trainer.max_time=5m"])
    assert longer.folder == long


def test_one_interrupted_past_the_length_that_is_asked_for_is_another_run(folder, caplog):
    """An epoch has 4 steps: a run at step 6 is in its second."""
    words = ["trainer.max_steps=6", "trainer.save_every=9 steps"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textmill.training.progress.Clock.seconds", 20.0)
        long = textmill.train("tiny.py", words).folder
    RunFolder(long).write_info(finished=False)
    for limit, has in {
        "steps=5": "6 steps",
        "epochs=1": "2 epochs",
        "time=9s": "20 seconds",
    }.items():
        said = rf"longer already: it has {has} \(trainer\.max_{limit}\).* To go on with the old one"
        with pytest.raises(UserError, match=said):
            textmill.train(long, [f"trainer.max_{limit}"], allow_code=True)
    short = textmill.train("tiny.py", SHORT)
    assert (short.folder.name, short.result["steps"]) == (f"{long.name}-2", 2)
    assert f"{long} is longer already: it has 6 steps (trainer.max_steps=2)" in caplog.text
    assert textmill.train("tiny.py", words).folder == long


def test_a_finished_run_whose_last_checkpoint_was_pruned_is_as_long_as_it_was(folder):
    run = textmill.train("tiny.py", ["trainer.max_steps=6", "trainer.save_every=2 steps"])
    newest = RunFolder(run.folder).newest
    shutil.rmtree(run.folder / "checkpoints" / f"step-{newest.step:08}")
    for limit, has in {"steps=4": "6 steps", "epochs=1": "2 epochs"}.items():
        with pytest.raises(UserError, match=rf"longer already: it has {has}"):
            textmill.train(run.folder, [f"trainer.max_{limit}"], allow_code=True)
    assert RunFolder(run.folder).result["steps"] == 6


def test_a_finished_run_has_an_end_whoever_names_it(trained):
    assert textmill.train(trained.folder) == trained
    with pytest.raises(UserError, match=r"trainer\.save_modules=encoder would save nothing"):
        textmill.train("tiny.py", [*SHORT, "trainer.save_modules=[encoder]"])


@pytest.mark.parametrize("refuses", ["data", "trainer"])
def test_a_finished_run_that_cannot_be_gone_on_with_stays_finished(trained, folder, refuses):
    run = trained.folder
    before = (run / "run.json").read_bytes()
    words = ["trainer.max_steps=4"]
    if refuses == "data":
        (folder / "valid.tsv").rename(folder / "away.tsv")
    else:
        words.append("trainer.save_modules=[encoders]")
    with pytest.raises((UserError, DataError)):
        textmill.train(run, words, allow_code=True)
    assert (run / "run.json").read_bytes() == before


# -- anything else is another run, and the difference is told


@pytest.mark.parametrize("name", ["train", pytest.param("test", marks=pytest.mark.slow)])
def test_edited_data_is_another_run_beside_the_old_one(trained, folder, caplog, name):
    old = trained
    add(folder / f"{name}.tsv", "the cat\tle chat\n")
    kept = {path: path.read_bytes() for path in old.folder.rglob("*") if path.is_file()}
    new = textmill.train("tiny.py", SHORT)
    assert new.folder.name == f"{old.folder.name}-2"
    assert f"{name}_data changed since {old.folder} was finished" in caplog.text
    assert f"another run: {new.folder}" in caplog.text
    assert {path: path.read_bytes() for path in kept} == kept
    caplog.clear()
    assert textmill.train("tiny.py", SHORT).folder == new.folder
    assert not caplog.messages
    (folder / f"{name}.tsv").write_text((folder / f"{name}.tsv").read_text()[:-16])
    assert textmill.train("tiny.py", SHORT).folder == old.folder, "the file is what it was"


def test_of_an_unfinished_run_too(folder, caplog):
    add(folder / "tiny.py", CALLBACKS)
    (folder / "steps.log").touch()
    (folder / "stop").touch()
    words = [*SHORT, "trainer.save_every=1 steps"]
    with pytest.raises(UserError, match="stopped"):
        textmill.train("tiny.py", words)
    (folder / "stop").unlink()
    (first,) = Path("runs/tiny").iterdir()
    textmill.train("tiny.py", words)  # what the callback writes is none that the run has read
    assert RunFolder(first).finished
    assert textmill.train("tiny.py", words).folder == first
    RunFolder(first).write_info(finished=False)
    add(folder / "train.tsv", "the cat\tle chat\n")
    assert textmill.train("tiny.py", words).folder.name == f"{first.name}-2"
    assert f"train_data changed since {first} was started" in caplog.text
    with pytest.raises(UserError, match=r"train_data changed since .* was started"):
        textmill.train(first, allow_code=True)  # who names it means it


@pytest.mark.parametrize("words", [{"run_dir": "mine"}, pytest.param({}, marks=pytest.mark.slow)])
def test_a_finished_run_that_is_named_is_refused(folder, words):
    run = textmill.train("tiny.py", SHORT, run_dir="mine").folder
    add(folder / "train.tsv", "the cat\tle chat\n")
    with pytest.raises(UserError, match=r"^train_data changed since mine .*textmill.train\('mine'"):
        textmill.train("tiny.py" if words else run, SHORT, allow_code=True, **words)
    assert textmill.train(run).result == textmill.train("mine").result
    again = textmill.train("tiny.py", SHORT, run_dir="mine", again=True)
    assert again.folder.name == "mine-2"


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        pytest.param("vectors.txt", "ok 1 1\n", "model.embedding.vectors", marks=pytest.mark.slow),
        ("phrases.tsv", "verb\tok\n", "dictionary.path"),
        pytest.param(
            "train.tsv", "eggs\tok\n", "train_data and valid_data", marks=pytest.mark.slow
        ),
    ],
)
def test_every_file_that_settings_name_is_compared(tmp_path, monkeypatch, caplog, file, line, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text("ham\tok see you\nspam\twin it now\n" * 3)
    (tmp_path / "phrases.tsv").write_text("verb\tsee\nverb\twin\n")
    (tmp_path / "vectors.txt").write_text("see 0.5 1\nwin 1 0.5\n")
    old = textmill.train("classification/docnn/local", LABELS).folder
    assert textmill.train("classification/docnn/local", LABELS).folder == old
    add(tmp_path / file, line)
    new = textmill.train("classification/docnn/local", LABELS).folder
    assert new.name == f"{old.name}-2"
    assert f"{said} changed since {old} was finished" in caplog.text


def test_rows_in_a_list_are_compared_though_no_setting_names_their_file(folder, caplog):
    text = (folder / "tiny.py").read_text(encoding="utf-8")
    start, end = text.index("train_data = "), text.index("test_data = ")
    text = text[:start] + ROWS + text[end:].replace('like("train_data"', 'like("valid_data"')
    (folder / "tiny.py").write_text(text, encoding="utf-8")
    old = textmill.train("tiny.py", SHORT).folder
    assert textmill.train("tiny.py", SHORT).folder == old
    add(folder / "train.tsv", "the cat\tle chat\n")
    assert textmill.train("tiny.py", SHORT).folder.name == f"{old.name}-2"


def test_a_run_that_was_begun_with_and_went_on_is_other_weights(trained, caplog):
    first = trained.folder
    words = [*SHORT, f"trainer.initialize={first}", "trainer.seed=2"]
    second = textmill.train("tiny.py", words).folder
    assert textmill.train("tiny.py", words).folder == second
    textmill.train(first, ["trainer.max_steps=4"], allow_code=True)
    best = json.loads((first / "checkpoints" / "best.json").read_text())
    assert best["step"] > 2, "else there is nothing to tell"
    assert textmill.train("tiny.py", words).folder.name == f"{second.name}-2"
    assert f"trainer.initialize changed since {second} was finished" in caplog.text


def test_data_that_is_gone_is_said_not_to_be_compared(trained, folder, caplog):
    (folder / "valid.tsv").unlink()
    assert textmill.train("tiny.py", SHORT) == trained
    assert "valid_data.path (valid.tsv) is gone, so it is not compared" in caplog.messages[-1]


def test_data_that_became_bad_is_refused_and_nothing_is_written(trained, folder):
    old = trained.folder
    add(folder / "train.tsv", "the cat\n")
    with pytest.raises(DataError, match="1 of 27 rows is bad"):
        textmill.train("tiny.py", SHORT)
    assert not (old / "bad_rows.jsonl").exists()
    assert [*old.parent.iterdir()] == [old]


def test_an_edited_script_is_another_run_and_says_so(trained, folder, caplog):
    first = trained.folder
    add(folder / "tiny.py", "# a comment\n")
    with pytest.raises(UserError, match=f"tiny.py changed since {first} was trained"):
        textmill.train("tiny.py", SHORT, run_dir=first)
    second = textmill.train("tiny.py", SHORT).folder
    assert second != first
    assert f"To go on with that one: textmill.train('{first}', allow_code=True)" in caplog.text
    caplog.clear()
    assert textmill.train("tiny.py", SHORT).folder == second
    again = textmill.train(first, ["trainer.max_steps=3"], allow_code=True)
    assert (again.folder, again.result["steps"]) == (first, 3)
    assert "changed since" not in caplog.text


def test_other_settings_are_refused_of_a_run_that_is_named(trained):
    run = trained.folder
    words = ["optimizer.lr=1", "trainer.seed=3", "trainer.keep=1"]
    with pytest.raises(UserError, match=f"^{run} .* another optimizer.lr and trainer.seed: "):
        textmill.train(run, words, allow_code=True)
    assert "changes" not in RunFolder(run).info
    with pytest.raises(UserError, match="holds another run"):
        textmill.train("tiny.py", [*SHORT, "optimizer.lr=1"], run_dir=run)


def test_a_run_that_saved_nothing_gives_its_folder_to_the_mended_one(folder):
    edit(folder / "tiny.py", "task = Translation.Config", "task = Own.Config")
    edit(
        folder / "tiny.py",
        "train_data = ",
        "class Own(Translation):\n    class Config(Translation.Config): pass\n"
        "    def training_step(self, batch, examples=()):\n        1 / 0\n\n\ntrain_data = ",
    )
    with pytest.raises(ZeroDivisionError):
        textmill.train("tiny.py", SHORT, run_dir="r")
    failed = RunFolder(Path("r")).info["key"]
    edit(folder / "tiny.py", "1 / 0", "return super().training_step(batch, examples)")
    add(folder / "train.tsv", "tea\tdu the\n")  # other data, as nothing was learnt from the former
    run = textmill.train("tiny.py", SHORT, run_dir="r")
    assert run.folder == Path("r")
    info = RunFolder(Path("r")).info
    assert info["key"] != failed
    assert info["finished"]
    assert len(info["starts"]) == 1


def test_going_on_elsewhere_is_refused(folder):
    textmill.train("tiny.py", SHORT, run_dir="r")
    with pytest.raises(UserError, match=r"so run_dir=other cannot be"):
        textmill.train("r", ["trainer.max_steps=3"], run_dir="other", allow_code=True)


@pytest.mark.parametrize(
    "word", ["initialize=nowhere", pytest.param("save_modules=[encodr]", marks=pytest.mark.slow)]
)
def test_what_is_refused_before_the_run_leaves_no_folder(folder, word):
    for there in (False, True):
        if there:
            Path("mine").mkdir()
        with pytest.raises(UserError):
            textmill.train("tiny.py", [*SHORT, f"trainer.{word}"], run_dir="mine")
        assert Path("mine").is_dir() == there  # or it was there before
    assert textmill.train("tiny.py", SHORT, run_dir="mine").result["steps"] == 2


def test_what_is_refused_leaves_what_others_wrote(folder):
    writes = '    (xp.folder / "notes.txt").write_text("mine")\n    return ()'
    edit(folder / "tiny.py", "\ntask = ", "\n\ndef callbacks(xp):\n" + writes + "\n\ntask = ")
    with pytest.raises(UserError):
        textmill.train("tiny.py", [*SHORT, "trainer.initialize=nowhere"], run_dir="mine")
    assert {path.name for path in Path("mine").iterdir()} == {"notes.txt", "lock", "log.txt"}


# -- what a run compares when it goes on


def test_another_tokenizer_is_refused(folder):
    edit(
        folder / "tiny.py",
        "FittedTokenizer.Config(vocab_size=44",
        'MultilingualTokenizer.Config(model=Path("spm.model")',
    )
    edit(folder / "tiny.py", "import FittedTokenizer", "import MultilingualTokenizer")
    text = (folder / "train.tsv").read_text(encoding="utf-8")
    train_sentencepiece(text.splitlines(), folder / "spm.model", vocab_size=44)
    run = textmill.train("tiny.py", SHORT)
    RunFolder(run.folder).write_info(finished=False)
    RunFolder(run.folder).write_info(
        data={n: d for n, d in RunFolder(run.folder).info["data"].items() if "tokenizer" not in n}
    )
    other = text.replace("cat", "cow").splitlines() * 2
    train_sentencepiece(other, folder / "spm.model", vocab_size=44)
    with pytest.raises(UserError, match=r"text/tokenizer/sentencepiece\.model of step-00000002"):
        textmill.train("tiny.py", SHORT)


def test_how_a_model_is_run_may_be_another_when_it_is_gone_on_with(trained, caplog):
    run = trained
    starts = RunFolder(run.folder).info["starts"]
    starts[-1]["versions"]["torch"] = "1.0"
    RunFolder(run.folder).write_info(finished=False, starts=starts, stopped="Stopped by SIGTERM")
    again = textmill.train("tiny.py", [*SHORT, "trainer.activation_checkpointing=true"])
    assert again.folder == run.folder
    config = yaml.safe_load((run.folder / "config.yaml").read_text(encoding="utf-8"))
    assert config["settings"]["trainer"]["activation_checkpointing"] is True
    assert "This run goes on under other versions (torch 1.0 -> " in caplog.text
    info = RunFolder(run.folder).info
    assert len(info["starts"]) == 2
    assert info["finished"] is True
    assert "stopped" not in info
    with pytest.raises(PlanError, match=r"it is trainer\.activation_checkpointing\."):
        textmill.train("tiny.py", [*SHORT, "model.activation_checkpointing=true"])


def test_a_recipes_own_randomness_is_the_seeds(folder):
    edit(
        folder / "tiny.py",
        'train_data = TextPairs.Config(path=Path("train.tsv"), max_tokens=None, batch_size=4)',
        "import random\n\n\ndef train_data(path: Path = Path('train.tsv')):\n"
        "    lines = path.read_text().splitlines()\n    random.shuffle(lines)\n"
        "    pairs = [line.split('\\t') for line in lines]\n"
        "    return [dict(source=s, target=t) for s, t in pairs]\n\n",
    )
    edit(folder / "tiny.py", 'like("train_data", path=Path("valid.tsv"), shuffle=False)', "None")
    edit(folder / "tiny.py", 'like("train_data", path=Path("test.tsv"), shuffle=False)', "None")
    first, second = (
        [line.get("loss") for line in textmill.train("tiny.py", SHORT, run_dir=name).history]
        for name in ("a", "b")
    )
    assert first == second


# -- what a run keeps of itself


def test_a_script_keeps_its_local_modules(folder):
    (folder / "parts").mkdir()
    for path in ("steps.py", "parts/recipe.py"):
        (folder / path).write_text("HEADS = 2\n", encoding="utf-8")
    edit(
        folder / "tiny.py",
        "from textmill import like",
        "from steps import HEADS\nfrom parts.recipe import HEADS as H\nfrom textmill import like",
    )
    edit(folder / "tiny.py", "num_heads=2", "num_heads=HEADS or H")
    run = textmill.train("tiny.py", SHORT).folder
    for path in ("steps.py", "parts/recipe.py"):
        assert (run / path).read_text(encoding="utf-8") == "HEADS = 2\n"
    assert (run / "recipe.py").read_bytes() == (folder / "tiny.py").read_bytes()
    assert textmill.load(run)("the cat").text is not None
    assert textmill.train(run, allow_code=True).folder == run


def test_a_local_module_called_recipe_is_refused_before_the_run(folder):
    """The run folder keeps the script under that name: one of the two would be lost."""
    edit(
        folder / "tiny.py",
        "from textmill import like",
        "from recipe import N\nfrom textmill import like",
    )
    (folder / "recipe.py").write_text("N = 2\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"tiny\.py imports recipe\.py"):
        textmill.train("tiny.py", SHORT)
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("error", ["ValueError('mine')", "KeyboardInterrupt"])
@pytest.mark.parametrize("run_dir", [None, "some/where/run"])
def test_an_error_of_the_recipe_leaves_no_folder(folder, error, run_dir):
    before = {path.name for path in folder.iterdir()}
    edit(folder / "tiny.py", "\ntask = ", f"\n\ndef callbacks():\n    raise {error}\n\n\ntask = ")
    with pytest.raises((ValueError, KeyboardInterrupt)):
        textmill.train("tiny.py", run_dir=run_dir)
    assert {p.name for p in folder.iterdir()} - {"__pycache__", ".textmill"} == before


def test_a_script_called_recipe_is_its_own_copy(folder):
    (folder / "tiny.py").rename(folder / "recipe.py")
    run = textmill.train("recipe.py", SHORT).folder
    assert textmill.train(run, allow_code=True).folder == run


def test_the_bad_rows_of_all_data_are_listed_at_once(folder):
    for name in ("train", "valid"):
        add(folder / f"{name}.tsv", "only one column\n")
    with pytest.raises(DataError) as failure:
        textmill.train("tiny.py", SHORT, run_dir="r")
    assert "train_data.max_bad_rows=1" in str(failure.value)
    assert "valid_data.max_bad_rows=1" in str(failure.value)
    listed = (folder / "r" / "bad_rows.jsonl").read_text().splitlines()
    assert [json.loads(line)["file"] for line in listed] == ["train.tsv", "valid.tsv"]
    textmill.train("tiny.py", [*SHORT, "train_data.max_bad_rows=1"], run_dir="r")
    assert (folder / "r" / "bad_rows.jsonl").read_bytes().count(b"\n") == 2
    write_recipe(folder)
    textmill.train("tiny.py", SHORT, run_dir="s")
    assert not (folder / "s" / "bad_rows.jsonl").exists()


def test_the_history_is_a_line_for_each_report_with_flat_values(tmp_path):
    run = textmill.Run(made_run(tmp_path / "run"))
    (run.folder / "metrics.jsonl").write_text(
        '{"split": "train", "step": 1, "epoch": 0.1, "loss": "NaN", "time": {"elapsed": 2.5}}\n'
        '{"split": "valid", "step": 1, "epoch": 0.1, "loss": 3.0, "label/a/f1": 0.5}\n'
    )
    first, second = run.history
    assert math.isnan(first.pop("loss"))
    assert first == {"split": "train", "seconds": 2.5, "step": 1, "epoch": 0.1}
    assert (second["label/a/f1"], second["seconds"]) == (0.5, None)
    assert isinstance(second["step"], int)
    (run.folder / "metrics.jsonl").unlink()
    assert run.history == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format_version": 1}', "does not say the 'recipe' of the run."),
        ('{"format_version": 1, "recipe": 3}', "'recipe' must be a str, found a int."),
        ('{"format_version": 2}', "has format_version 2, and this textmill reads 1. Train anew."),
        ("[" * 100_000, "is not the JSON a run writes"),
        ('"' + "x" * (16 << 20), ": 16,777,217 bytes are more than the 16,777,216 allowed."),
    ],
)  # fmt: skip
def test_what_a_run_did_not_write_is_refused(tmp_path, content, message):
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as failure:
        _ = RunFolder(tmp_path).info
    assert str(failure.value).startswith(str(tmp_path / "run.json"))
    assert message in str(failure.value)

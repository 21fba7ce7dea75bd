"""What a run keeps of itself, and when a command is refused to go on with it."""

import json
from pathlib import Path

import pytest
import yaml

import textmill
from tests.runs.tiny import write_recipe
from textmill.checkpoint.run_seal import RunSeal, sealed_config
from textmill.errors import DataError, PlanError, UserError
from textmill.run_folder.folder import RunFolder
from textmill.text import train_sentencepiece

SHORT = ["trainer.max_steps=2"]
WRITES = '    (xp.folder / "notes.txt").write_text("mine")\n    return ()'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_a_script_named_by_a_relative_path_keeps_its_local_modules(folder):
    (folder / "steps.py").write_text("HEADS = 2\n", encoding="utf-8")
    edit(
        folder / "tiny.py",
        "from textmill import like",
        "from steps import HEADS\nfrom textmill import like",
    )
    edit(folder / "tiny.py", "num_heads=2", "num_heads=HEADS")
    run = textmill.train("tiny.py", SHORT)
    assert (run.folder / "steps.py").read_text(encoding="utf-8") == "HEADS = 2\n"


def test_a_local_module_called_recipe_is_refused_before_the_run(folder):
    """The run folder keeps the script under that name: one of the two would be lost."""
    edit(
        folder / "tiny.py",
        "from textmill import like",
        "from recipe import N\nfrom textmill import like",
    )
    (folder / "recipe.py").write_text("N = 2\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        textmill.train("tiny.py", SHORT)
    assert str(caught.value) == (
        "tiny.py imports recipe.py, but the run folder keeps the script itself as recipe.py, "
        "beside its local modules. Give that module another name."
    )
    assert not (folder / "runs").exists()


def test_an_edited_script_is_another_run_and_says_so(folder, caplog):
    first = textmill.train("tiny.py", SHORT).folder
    (folder / "tiny.py").write_bytes((folder / "tiny.py").read_bytes() + b"# a comment\n")
    with pytest.raises(UserError, match=f"tiny.py changed since {first} was trained"):
        textmill.train("tiny.py", SHORT, run_dir=first)
    second = textmill.train("tiny.py", SHORT).folder
    assert second != first
    assert (
        f"tiny.py changed since {first} was trained. This is another run. To go on with that one: "
        f"textmill.train('{first}', allow_code=True)"
    ) in caplog.messages
    caplog.clear()
    assert textmill.train("tiny.py", SHORT).folder == second
    again = textmill.train(first, ["trainer.max_steps=3"], allow_code=True)
    assert (again.folder, again.result["steps"]) == (first, 3)
    assert "changed since" not in caplog.text


@pytest.mark.parametrize("path", ["recipe/__init__.py", "parts/recipe.py"])
def test_packages_of_that_name_and_modules_in_other_folders_are_kept(folder, path):
    module = ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")
    (folder / path).parent.mkdir()
    (folder / path).write_text("HEADS = 2\n", encoding="utf-8")
    edit(
        folder / "tiny.py",
        "from textmill import like",
        f"from {module} import HEADS\nfrom textmill import like",
    )
    edit(folder / "tiny.py", "num_heads=2", "num_heads=HEADS")
    run = textmill.train("tiny.py", SHORT).folder
    assert (run / path).read_text(encoding="utf-8") == "HEADS = 2\n"
    assert (run / "recipe.py").read_bytes() == (folder / "tiny.py").read_bytes()
    assert textmill.load(run)("the cat").text is not None
    assert textmill.train(run, allow_code=True).folder == run


def test_a_script_called_recipe_is_its_own_copy(folder):
    (folder / "tiny.py").rename(folder / "recipe.py")
    run = textmill.train("recipe.py", SHORT).folder
    assert textmill.train(run, allow_code=True).folder == run


def test_every_start_is_kept_and_an_end_takes_back_what_a_stop_said(folder):
    run = textmill.train("tiny.py", SHORT)
    RunFolder(run.folder).write_info(finished=False, stopped="Stopped by SIGTERM")
    textmill.train("tiny.py", SHORT)
    info = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    assert len(info["starts"]) == 2
    assert info["finished"] is True
    assert "stopped" not in info


@pytest.mark.parametrize("refuses", ["data", "trainer"])
def test_a_finished_run_that_cannot_be_gone_on_with_stays_finished(folder, refuses):
    run = textmill.train("tiny.py", SHORT).folder
    before = (run / "run.json").read_bytes()
    words = ["trainer.max_steps=4"]
    if refuses == "data":
        (folder / "valid.tsv").rename(folder / "away.tsv")
    else:
        words.append("trainer.save_modules=[encoders]")
    with pytest.raises((UserError, DataError)):
        textmill.train(run, words, allow_code=True)
    assert (run / "run.json").read_bytes() == before
    if refuses == "data":
        (folder / "away.tsv").rename(folder / "valid.tsv")
    assert textmill.train(run, words[:1], allow_code=True).result["steps"] == 4
    (change,) = RunFolder(run).info["changes"]
    assert change["step"] == 2
    assert set(change["settings"]) == {"trainer.max_steps"}


def test_other_versions_are_said(folder, caplog):
    run = textmill.train("tiny.py", SHORT)
    starts = RunFolder(run.folder).info["starts"]
    starts[-1]["versions"]["torch"] = "1.0"
    RunFolder(run.folder).write_info(finished=False, starts=starts)
    textmill.train("tiny.py", SHORT)
    assert "This run goes on under other versions (torch 1.0 -> " in caplog.text


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
    logs = []
    for name in ("a", "b"):
        run = textmill.train("tiny.py", SHORT, run_dir=name)
        rows = [json.loads(line) for line in lines_of(run.folder / "metrics.jsonl")]
        logs.append([row["loss"] for row in rows])
    assert logs[0] == logs[1]


def test_the_bad_rows_of_all_data_are_listed_at_once(folder):
    for name in ("train", "valid"):
        with (folder / f"{name}.tsv").open("a", encoding="utf-8") as file:
            file.write("only one column\n")
    with pytest.raises(DataError) as failure:
        textmill.train("tiny.py", SHORT, run_dir="r")
    assert "train_data.max_bad_rows=1" in str(failure.value)
    assert "valid_data.max_bad_rows=1" in str(failure.value)
    assert str(failure.value).endswith("All bad rows are in r/bad_rows.jsonl.")
    listed = [json.loads(line)["file"] for line in lines_of(folder / "r" / "bad_rows.jsonl")]
    assert listed == ["train.tsv", "valid.tsv"]
    textmill.train("tiny.py", [*SHORT, "train_data.max_bad_rows=1"], run_dir="r")
    assert (folder / "r" / "bad_rows.jsonl").read_bytes().count(b"\n") == 2
    write_recipe(folder)
    textmill.train("tiny.py", SHORT, run_dir="s")
    assert not (folder / "s" / "bad_rows.jsonl").exists()


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
    other = text.replace("cat", "cow").splitlines() * 2
    train_sentencepiece(other, folder / "spm.model", vocab_size=44)
    with pytest.raises(UserError) as failure:
        textmill.train("tiny.py", SHORT)
    assert str(failure.value) == (
        f"the text processor is not the one {run.folder} was trained with: "
        "text/tokenizer/sentencepiece.model of step-00000002 differ from what the tokenizer is "
        "now; its training text or its file changed. Restore what it was, or train anew: the same "
        "call with again=True."
    )


def test_a_built_size_that_is_another_is_refused(folder):
    run = textmill.train("tiny.py", SHORT)
    seal, path = RunSeal.read(run.folder), run.folder / "config.yaml"
    assert seal is not None
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["built"]["module"]["vocabulary_size"] = 45
    path.write_bytes(sealed_config(yaml.safe_dump(config), run=seal.run, code=seal.code))
    RunFolder(run.folder).write_info(finished=False)
    with pytest.raises(UserError) as failure:
        textmill.train("tiny.py", SHORT)
    assert str(failure.value) == (
        f"{run.folder} was built otherwise: module.vocabulary_size was 45, is 44. "
        "Restore what it was, or train anew: the same call with again=True."
    )


def test_how_a_model_is_run_may_be_another_when_it_is_gone_on_with(folder):
    run = textmill.train("tiny.py", SHORT)
    RunFolder(run.folder).write_info(finished=False)
    again = textmill.train("tiny.py", [*SHORT, "trainer.activation_checkpointing=true"])
    assert again.folder == run.folder
    config = yaml.safe_load((run.folder / "config.yaml").read_text(encoding="utf-8"))
    assert config["settings"]["trainer"]["activation_checkpointing"] is True


def test_who_sets_it_of_the_model_is_told_the_setting(folder):
    with pytest.raises(PlanError) as failure:
        textmill.train("tiny.py", [*SHORT, "model.activation_checkpointing=true"])
    assert "In textmill it is trainer.activation_checkpointing." in str(failure.value)


def test_lengths_of_time_are_compared_as_times(folder):
    textmill.train("tiny.py", [*SHORT, "trainer.max_time=5m"])
    with pytest.raises(UserError) as failure:
        textmill.train("tiny.py", [*SHORT, "trainer.max_time=15m"])
    assert "To go on with it: textmill.train('runs/tiny/" in str(failure.value)


def test_again_with_a_run_dir_takes_the_next_free_one(folder):
    assert textmill.train("tiny.py", SHORT, run_dir="r").folder == Path("r")
    assert textmill.train("tiny.py", SHORT, run_dir="r", again=True).folder == Path("r-2")


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
    with (folder / "train.tsv").open("a") as file:
        file.write("tea\tdu the\n")  # other data, too, as nothing was learnt from the former
    run = textmill.train("tiny.py", SHORT, run_dir="r")
    assert run.folder == Path("r")
    info = RunFolder(Path("r")).info
    assert info["key"] != failed
    assert info["finished"]
    assert len(info["starts"]) == 1
    edit(folder / "tiny.py", "lr=2e-2", "lr=1e-2")
    with pytest.raises(UserError, match="r holds another run"):
        textmill.train("tiny.py", SHORT, run_dir="r")


def test_going_on_elsewhere_is_refused(folder):
    textmill.train("tiny.py", SHORT, run_dir="r")
    with pytest.raises(UserError) as failure:
        textmill.train("r", ["trainer.max_steps=3"], run_dir="other", allow_code=True)
    assert str(failure.value) == (
        "r is a run, which continues in its own folder, so run_dir=other cannot be. "
        "Leave one of them out, or train anew there with again=True."
    )


@pytest.mark.parametrize("word", ["initialize=nowhere", "save_modules=[encodr]"])
def test_what_is_refused_before_the_run_leaves_no_folder(folder, word):
    with pytest.raises(UserError):
        textmill.train("tiny.py", [*SHORT, f"trainer.{word}"], run_dir="mine")
    assert not Path("mine").exists()
    Path("mine").mkdir()
    with pytest.raises(UserError):
        textmill.train("tiny.py", [*SHORT, f"trainer.{word}"], run_dir="mine")
    assert Path("mine").is_dir()  # it was there before
    assert textmill.train("tiny.py", SHORT, run_dir="mine").result["steps"] == 2


def test_what_is_refused_leaves_what_others_wrote(folder):
    edit(folder / "tiny.py", "\ntask = ", "\n\ndef callbacks(xp):\n" + WRITES + "\n\ntask = ")
    with pytest.raises(UserError):
        textmill.train("tiny.py", [*SHORT, "trainer.initialize=nowhere"], run_dir="mine")
    assert {path.name for path in Path("mine").iterdir()} == {"notes.txt", "lock", "log.txt"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format_version": 1}', "does not say the 'recipe' of the run."),
        ('{"format_version": 1, "recipe": "a"}', "does not say the 'key' of the run."),
        ('{"format_version": 1, "recipe": 3}', "'recipe' must be a str, found a int."),
        ('{"format_version": 1, "length": "x"}', "'length' must be a dict, found a str."),
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

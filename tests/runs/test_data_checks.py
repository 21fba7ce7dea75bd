"""A command whose files were edited since its run: never the old run's result in silence."""

import json

import pytest

import textmill
from tests.runs.tiny import write_recipe
from textmill.errors import DataError, UserError
from textmill.run_folder.folder import RunFolder

SHORT = ["trainer.max_steps=2"]

WORDS = [
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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text("ham\tok see you\nspam\twin it now\n" * 3)
    (tmp_path / "phrases.tsv").write_text("verb\tsee\nverb\twin\n")
    (tmp_path / "vectors.txt").write_text("see 0.5 1\nwin 1 0.5\n")
    return tmp_path


def add(path, line):
    path.write_text(path.read_text() + line)


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_a_command_with_edited_data_trains_another_run_beside_the_old_one(folder, caplog, name):
    old = textmill.train("tiny.py", SHORT)
    add(folder / f"{name}.tsv", "the cat\tle chat\n")
    kept = {path: path.read_bytes() for path in old.folder.rglob("*") if path.is_file()}
    new = textmill.train("tiny.py", SHORT)
    assert new.folder.name == f"{old.folder.name}-2"
    assert caplog.messages.count(
        f"{name}_data changed since {old.folder} was finished: the files have other content. With "
        f"these it is another run: {new.folder}"
    )
    assert {path: path.read_bytes() for path in kept} == kept
    caplog.clear()
    assert textmill.train("tiny.py", SHORT).folder == new.folder
    assert not caplog.messages
    (folder / f"{name}.tsv").write_text((folder / f"{name}.tsv").read_text()[:-16])
    assert textmill.train("tiny.py", SHORT).folder == old.folder, "the file is what it was"


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("vectors.txt", "ok 1 1\n", "model.embedding.vectors"),
        ("phrases.tsv", "verb\tok\n", "dictionary.path"),
        ("train.tsv", "eggs\tok\n", "train_data and valid_data"),
    ],
)
def test_every_file_that_settings_name_is_compared(labels, caplog, file, line, said):
    old = textmill.train("classification/docnn/local", WORDS).folder
    assert textmill.train("classification/docnn/local", WORDS).folder == old
    add(labels / file, line)
    new = textmill.train("classification/docnn/local", WORDS).folder
    assert new.name == f"{old.name}-2"
    assert f"{said} changed since {old} was finished" in caplog.text


WATCHED = """
class Log(Callback):
    def __init__(self, path): self.path = path
    def step(self, progress): self.path.write_text(f"{self.path.read_text()}{progress.steps} ")

def callbacks(log: Path = Path("steps.log")): return [Log(log)]
"""


def test_a_file_that_a_callback_writes_is_none_that_the_run_has_read(folder):
    add(folder / "tiny.py", f"\nfrom textmill.training import Callback\n{WATCHED}")
    (folder / "steps.log").touch()
    first = textmill.train("tiny.py", SHORT)
    assert (folder / "steps.log").read_text() == "1 2 "
    assert textmill.train("tiny.py", SHORT).folder == first.folder
    assert (folder / "steps.log").read_text() == "1 2 "


def test_rows_in_a_list_are_compared_though_no_setting_names_their_file(folder, caplog):
    text = (folder / "tiny.py").read_text(encoding="utf-8")
    start, end = text.index("train_data = "), text.index("test_data = ")
    text = text[:start] + ROWS + text[end:].replace('like("train_data"', 'like("valid_data"')
    (folder / "tiny.py").write_text(text, encoding="utf-8")
    old = textmill.train("tiny.py", SHORT).folder
    assert textmill.train("tiny.py", SHORT).folder == old
    add(folder / "train.tsv", "the cat\tle chat\n")
    assert textmill.train("tiny.py", SHORT).folder.name == f"{old.name}-2"
    assert f"train_data changed since {old} was finished" in caplog.text


def test_a_run_that_was_begun_with_and_went_on_is_other_weights(folder, caplog):
    first = textmill.train("tiny.py", SHORT).folder
    words = [*SHORT, f"trainer.initialize={first}", "trainer.seed=2"]
    second = textmill.train("tiny.py", words).folder
    assert textmill.train("tiny.py", words).folder == second
    textmill.train(first, ["trainer.max_steps=4"], allow_code=True)
    best = json.loads((first / "checkpoints" / "best.json").read_text())
    assert best["step"] > 2, "else there is nothing to tell"
    assert textmill.train("tiny.py", words).folder.name == f"{second.name}-2"
    assert f"trainer.initialize changed since {second} was finished" in caplog.text


@pytest.mark.parametrize("words", [{"run_dir": "mine"}, {}])
def test_a_run_that_is_named_is_refused(folder, words):
    run = textmill.train("tiny.py", SHORT, run_dir="mine").folder
    add(folder / "train.tsv", "the cat\tle chat\n")
    recipe = "tiny.py" if words else run
    with pytest.raises(UserError) as caught:
        textmill.train(recipe, SHORT, allow_code=True, **words)
    assert str(caught.value) == (
        "train_data changed since mine was finished: the files have other content. With these it "
        "is another run: the same call with again=True trains it beside the old one. The result "
        "of the old one: textmill.train('mine')"
    )
    assert textmill.train(run).result == textmill.train("mine").result
    again = textmill.train("tiny.py", SHORT, run_dir="mine", again=True)
    assert again.folder.name == "mine-2"


def test_data_that_is_gone_is_said_not_to_be_compared(folder, caplog):
    old = textmill.train("tiny.py", SHORT)
    (folder / "valid.tsv").unlink()
    assert textmill.train("tiny.py", SHORT) == old
    assert caplog.messages[-1] == (
        f"Not compared with what {old.folder} has read: there is no valid_data.path (valid.tsv)."
    )


def test_data_that_became_bad_is_refused_and_nothing_is_written(folder):
    old = textmill.train("tiny.py", SHORT).folder
    add(folder / "train.tsv", "the cat\n")
    with pytest.raises(DataError, match="1 of 27 rows is bad"):
        textmill.train("tiny.py", SHORT)
    assert not (old / "bad_rows.jsonl").exists()
    assert [*old.parent.iterdir()] == [old]


def test_a_run_of_the_same_data_is_found_beside_an_unfinished_one(folder):
    """An unfinished run of other data refuses to go on; a finished one of this data is the run."""
    add(
        folder / "tiny.py",
        "from textmill.training import Callback\nfrom textmill.errors import UserError\n"
        "class Stops(Callback):\n    def step(self, progress):\n"
        "        if Path('stop').exists():\n            raise UserError('stopped')\n\n"
        "def callbacks():\n    return [Stops()]\n",
    )
    (folder / "stop").touch()
    with pytest.raises(UserError):
        textmill.train("tiny.py", SHORT)
    (folder / "stop").unlink()
    (first,) = (folder / "runs" / "tiny").iterdir()
    add(folder / "train.tsv", "the cat\tle chat\n")
    with pytest.raises(
        UserError, match=r"train_data changed since .* was started: .* again=True\.$"
    ):
        textmill.train("tiny.py", SHORT)
    again = textmill.train("tiny.py", SHORT, again=True)
    assert textmill.train("tiny.py", SHORT) == again
    assert not RunFolder(first).finished

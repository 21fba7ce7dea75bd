"""Nothing outside a run folder is written or deleted, whatever links a stranger put into it."""

import re
import shutil
import sys
from pathlib import Path

import pytest

import textmill
from tests.hostile.folder import snapshot
from tests.runs.made_runs import made_run, steps_of
from tests.trained_run import copy_of, edited, train_script
from textmill.cli.main import main
from textmill.errors import StorageError
from textmill.run_folder.folder import WRITTEN_FOLDERS, RunFolder
from textmill.runs.export import export
from textmill.runtime.disk import outward_links
from textmill.runtime.lock import Lock

GOES_ON = ["trainer.max_steps=6"]


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A run that can be gone on with: its data stay where they are."""
    return train_script(tmp_path_factory.mktemp("begun"), words=("reporters.html=true",))


@pytest.fixture
def run(begun, tmp_path) -> Path:
    return copy_of(begun, tmp_path / "run")


def elsewhere(run: Path, name: str) -> Path:
    """Moves a part of a run out of it, and puts a link in its place."""
    outside = run.parent / "elsewhere" / name
    outside.parent.mkdir(parents=True)
    if (run / name).exists():
        shutil.move(run / name, outside)
    else:
        outside.mkdir(parents=True)
    (run / name).symlink_to(outside)
    return outside


def unchanged(folder: Path) -> tuple[dict, dict]:
    contents = {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return snapshot(folder), contents


FOLDER, FILE = "is a link to {}, which is not in", "cannot be written: it is a symbolic link"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *[(name, FOLDER) for name in ("checkpoints", "predictions", "wandb/files")],
        *[(name, FILE) for name in ("metrics.jsonl", "log.txt", "lock")],
    ],
)
def test_what_is_a_link_elsewhere_is_not_written_through(run, name, said):
    (run / name).parent.mkdir(exist_ok=True)
    outside = elsewhere(run, name)
    before = unchanged(outside.parent)
    with pytest.raises(StorageError, match=f"{run / name} {said.format(outside)}"):
        textmill.train(run, GOES_ON, allow_code=True)
    assert unchanged(outside.parent) == before


@pytest.mark.parametrize("name", ["run.json", "recipe.py", "report.html"])
def test_a_file_that_is_written_whole_takes_the_place_of_a_link(run, name):
    outside = elsewhere(run, name)
    before = unchanged(outside.parent)
    if name == "report.html":
        assert main(["runs", "report", str(run)]) == 0
    else:
        textmill.train(run, GOES_ON, allow_code=True)
    assert unchanged(outside.parent) == before
    assert (run / name).is_file()
    assert not (run / name).is_symlink()


def test_an_export_is_not_written_through_a_link(run):
    outside = elsewhere(run, "export")
    with pytest.raises(StorageError, match="nothing is written or deleted there"):
        export(run, "ctranslate2")
    assert list(outside.iterdir()) == []


def test_a_project_with_an_environment_may_be_a_run_folder(run):
    """Links of hidden folders are a person's own; those that textmill would rename are not."""
    (run / ".venv" / "bin").mkdir(parents=True)
    (run / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (run / ".git").symlink_to(run.parent)
    assert outward_links(run, WRITTEN_FOLDERS) == []
    moved = run / ".checkpoints.old-1"
    moved.symlink_to(run.parent)
    (run / "Modules").symlink_to(run.parent)  # of another case, which is the same on some disks
    assert outward_links(run, WRITTEN_FOLDERS) == [moved, run / "Modules"]


def test_a_persons_own_links_stop_nothing_and_are_not_followed(run, tmp_path, capsys):
    outside = tmp_path / "big disk"
    (outside / "deep").mkdir(parents=True)
    (outside / "paper.txt").write_text("mine")
    (run / "notes.txt").symlink_to(outside / "gone.txt")
    (run / "data").symlink_to(outside)
    (run / "figures").mkdir()
    (run / "figures" / "paper.txt").symlink_to(outside / "paper.txt")
    before = unchanged(outside)
    assert textmill.train(run, GOES_ON, allow_code=True).result["steps"] == 6
    assert unchanged(outside) == before
    assert (run / "data").is_symlink()
    assert main(["runs", "prune", str(run), "--whole-runs", "--yes"]) == 0
    assert not run.exists(), capsys.readouterr()
    assert unchanged(outside) == before


def test_code_is_not_written_through_a_linked_folder(run, tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (run / "parts").symlink_to(outside)
    with pytest.raises(StorageError) as refused:
        RunFolder(run).write_sources(
            {"recipe.py": b"HEADS = 2\n", "parts/heads.py": b"HEADS = 2\n"}
        )
    assert str(refused.value).startswith(f"{run / 'parts'} is a link to {outside}, which is not in")
    assert list(outside.iterdir()) == []


def test_prune_deletes_nothing_through_a_link(tmp_path, capsys):
    other = made_run(tmp_path / "other" / "unfinished", finished=False)
    run = made_run(tmp_path / "runs" / "finished")
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").symlink_to(other / "checkpoints")
    with Lock(other):
        assert main(["runs", "prune", str(tmp_path / "runs"), "--keep", "0", "--yes"]) == 0
    assert capsys.readouterr().out == (
        f"stays    {run}: checkpoints is a link to {other / 'checkpoints'}\nNothing to delete.\n"
    )
    assert steps_of(other) == [10, 20, 30]


def test_a_run_folder_on_another_disk_is_gone_on_with(run, tmp_path):
    """A person's own link to the whole of it, and links that stay in it, are fine."""
    disk = tmp_path / "big disk"
    disk.mkdir()
    shutil.move(run, disk / "run")
    (tmp_path / "runs").symlink_to(disk)
    (disk / "run" / "latest").symlink_to("checkpoints")
    (tmp_path / "notes.md").write_text("mine")
    (disk / "run" / "notes.md").symlink_to(tmp_path / "notes.md")
    done = textmill.train(tmp_path / "runs" / "run", GOES_ON, allow_code=True)
    assert done.result["steps"] == 6
    assert (disk / "run" / "checkpoints" / "step-00000006").is_dir()


REGISTERED = "classification/averaging/local"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory) -> Path:
    """A run whose recipe is none of a script's: its settings are all in the folder."""
    folder = tmp_path_factory.mktemp("experiment")
    rows = [f"{label}\t{word} here\n" for label, word in (("a", "ham"), ("b", "spam")) * 20]
    for name in ("train", "valid"):
        (folder / f"{name}.tsv").write_text("".join(rows))
    words = [f"{name}_data.path={folder / name}.tsv" for name in ("train", "valid")]
    words += ["tokenizer.type=fitted", "tokenizer.kind=bpe", "trainer.max_steps=2"]
    words += [f"tokenizer.cache_dir={folder / 'own'}"]
    words += ["reporters.console=false"]
    return textmill.train(REGISTERED, words, run_dir=folder / "run").folder


def test_a_run_does_not_say_where_a_cache_is(experiment, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = edited(copy_of(experiment, tmp_path / "run"), str(experiment.parent / "own"), "/no/such")
    assert main(["train", str(run), "trainer.max_steps=4"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "not taken over" in line]
    assert re.fullmatch(
        f"{re.escape(str(run / 'config.yaml'))}:\\d+:\\d+: tokenizer.cache_dir=/no/such is not "
        "taken over: a run folder does not say where files are written. To write there, set it: "
        "tokenizer.cache_dir=/no/such",
        line,
    )
    assert list((tmp_path / ".textmill" / "tokenizers").glob("bpe-*.json"))
    word = f"tokenizer.cache_dir={tmp_path / 'mine'}"
    assert main(["train", str(run), "trainer.max_steps=5", word]) == 0
    assert "not taken over" not in capsys.readouterr().err
    assert list((tmp_path / "mine" / "tokenizers").glob("bpe-*.json"))

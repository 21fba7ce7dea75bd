"""Nothing outside a run folder is written or deleted, whatever links a stranger put into it."""

import os
import shutil
from pathlib import Path

import pytest

import weft
from tests.hostile.folder import snapshot
from tests.recipes.made_runs import made_run, steps_of
from tests.trained_run import copy_of, train_script
from weft.cli.main import main
from weft.errors import StorageError, WeftError
from weft.recipes.export import export
from weft.runtime.lock import Lock

GOES_ON = ["trainer.max_steps=6"]


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A run that can be gone on with: its data stay where they are."""
    return train_script(tmp_path_factory.mktemp("begun"))


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


@pytest.mark.parametrize("name", ["checkpoints", "predictions", "export", "modules", "wandb/files"])
def test_a_folder_that_is_a_link_elsewhere_is_not_written_through(run, name):
    (run / name).parent.mkdir(exist_ok=True)
    outside = elsewhere(run, name)
    before = unchanged(outside.parent)
    with pytest.raises(StorageError) as refused:
        weft.train(run, GOES_ON, allow_code=True)
    assert str(refused.value) == (
        f"{run / name} is a link to {outside}, which is not in {run}: nothing is written or "
        "deleted there. Put the folder itself in its place; the whole of "
        f"{run} may be a link to another disk."
    )
    assert unchanged(outside.parent) == before


@pytest.mark.parametrize("link", ["symbolic", "hard", "pipe"])
@pytest.mark.parametrize("name", ["metrics.jsonl", "log.txt", "lock"])
def test_a_file_that_is_a_link_is_not_written_through(run, name, link):
    outside = run.parent / "elsewhere" / name
    outside.parent.mkdir()
    shutil.copy(run / name, outside)
    (run / name).unlink()
    if link == "symbolic":
        (run / name).symlink_to(outside)
    elif link == "hard":
        os.link(outside, run / name)
    else:
        os.mkfifo(run / name)
    before = unchanged(outside.parent)
    with pytest.raises(StorageError) as refused:
        weft.train(run, GOES_ON, allow_code=True)
    reason = {
        "symbolic": "it is a symbolic link",
        "hard": "it is a hard link, the same file as one of another name",
        "pipe": "it is no regular file",
    }[link]
    assert str(refused.value).startswith(f"{run / name} cannot be written: {reason}. ")
    assert str(refused.value).endswith(
        "Nothing is written through a link: put a file of its own there, then start again."
    )
    assert unchanged(outside.parent) == before


@pytest.mark.parametrize("name", ["run.json", "recipe.py", "report.html"])
def test_a_file_that_is_written_whole_takes_the_place_of_a_link(run, name):
    outside = run.parent / "elsewhere" / name
    outside.parent.mkdir()
    shutil.move(run / name, outside)
    (run / name).symlink_to(outside)
    before = unchanged(outside.parent)
    if name == "report.html":
        assert main(["runs", "report", str(run)]) == 0
    else:
        weft.train(run, GOES_ON, allow_code=True)
    assert unchanged(outside.parent) == before
    assert (run / name).is_file()
    assert not (run / name).is_symlink()


def test_an_export_is_not_written_through_a_link(run):
    outside = elsewhere(run, "export")
    with pytest.raises(StorageError, match="nothing is written or deleted there"):
        export(run, "ctranslate2")
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


def test_a_link_that_comes_after_the_plan_stops_a_prune(tmp_path):
    from weft.recipes.prune import plan_prune, prune

    other = made_run(tmp_path / "other", finished=False)
    run = made_run(tmp_path / "runs" / "finished")
    plan = plan_prune(tmp_path / "runs", keep=0)
    assert plan.doomed
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").symlink_to(other / "checkpoints")
    with pytest.raises(WeftError, match="nothing is written or deleted there"):
        prune(plan)
    assert steps_of(other) == [10, 20, 30]


def test_a_run_folder_on_another_disk_is_gone_on_with(run, tmp_path):
    """A person's own link to the whole of it, and links that stay in it, are fine."""
    disk = tmp_path / "big disk"
    disk.mkdir()
    shutil.move(run, disk / "run")
    (tmp_path / "runs").symlink_to(disk)
    (disk / "run" / "latest").symlink_to("checkpoints")
    done = weft.train(tmp_path / "runs" / "run", GOES_ON, allow_code=True)
    assert done.result["steps"] == 6
    assert (disk / "run" / "checkpoints" / "step-00000006").is_dir()

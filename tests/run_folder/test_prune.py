"""Pruning deletes what was asked for, and never the best, an open run or one in use."""

import shutil
from datetime import datetime

from tests.runs.made_runs import aged, made_run, steps_of
from textmill.checkpoint.store import Checkpoints
from textmill.cli.main import main
from textmill.errors import StorageError
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.prune import age, plan_prune, prune
from textmill.runtime.lock import Lock


def test_the_best_and_the_newest_stay(tmp_path):
    run = made_run(tmp_path / "runs" / "a" / "k")
    plan = plan_prune(tmp_path / "runs")
    assert [item.path.name for item in plan.deletions] == ["step-00000010"]
    size = sum(p.stat().st_size for p in (run / "checkpoints" / "step-00000010").rglob("*.*"))
    assert plan.size == plan.deletions[0].size == size
    assert prune(plan) == size
    assert steps_of(run) == [20, 30]
    assert main(["runs", "verify", str(run)]) == 0


def test_with_keep_0_the_last_points_to_the_best(tmp_path):
    run = made_run(tmp_path / "run")
    prune(plan_prune(run, keep=0))
    assert steps_of(run) == [20]
    assert Checkpoints(run / "checkpoints").last().name == "step-00000020"
    assert main(["runs", "verify", str(run)]) == 0


def test_an_unfinished_run_is_not_touched(tmp_path):
    run = made_run(tmp_path / "run", finished=False)
    plan = plan_prune(tmp_path, keep=0, whole_runs=True)
    assert plan.deletions == ()
    assert plan.kept == {run: "not finished"}


def test_a_run_in_use_is_not_touched_and_its_lock_is_as_it_was(tmp_path):
    run = made_run(tmp_path / "run")
    with Lock(run):
        owner = (run / "lock").read_text()
        (why,) = plan_prune(tmp_path).kept.values()
        assert why == f"in use by {owner.strip()}"
        assert (run / "lock").read_text() == owner
    assert plan_prune(tmp_path).kept == {}


def test_a_run_gone_on_with_after_the_plan_is_not_touched(tmp_path):
    run = made_run(tmp_path / "run")
    plan = plan_prune(tmp_path)
    RunFolder(run).write_info(finished=False)
    assert prune(plan) == 0
    assert steps_of(run) == [10, 20, 30]


def test_only_old_runs(tmp_path):
    now = datetime.now().astimezone()
    old = aged(made_run(tmp_path / "old"), 31, now.timestamp())
    young = aged(made_run(tmp_path / "young"), 29, now.timestamp())
    plan = plan_prune(tmp_path, older_than=age("30d"), now=now)
    assert {item.run for item in plan.deletions} == {old}
    assert plan.kept == {young: "younger"}


def test_whole_runs(tmp_path):
    run = made_run(tmp_path / "runs" / "a" / "k")
    prune(plan_prune(tmp_path, whole_runs=True))
    assert not run.exists()


def test_where_the_best_cannot_be_told_nothing_goes(tmp_path):
    run = made_run(tmp_path / "run")
    (run / "checkpoints" / "best.json").write_text("{}")
    (why,) = plan_prune(tmp_path).kept.values()
    assert why.startswith("its best checkpoint cannot be told: best.json")
    (run / "checkpoints" / "best.json").unlink()
    (why,) = plan_prune(tmp_path).kept.values()
    assert why == (
        "its best checkpoint cannot be told: best.json is missing, and run.json names a best one"
    )
    RunFolder(run).write_info(result={"steps": 30})
    shutil.rmtree(run / "checkpoints" / "step-00000030")  # what last.json points to
    (why,) = plan_prune(tmp_path).kept.values()
    assert why == (
        "its best checkpoint cannot be told: neither best.json nor last.json points to one that "
        "is there"
    )


def test_damaged_records_and_links_are_left_alone(tmp_path):
    outside = made_run(tmp_path / "outside")
    root = tmp_path / "runs"
    damaged = made_run(root / "damaged")
    (damaged / "run.json").write_text("[")
    (root / "link").symlink_to(outside)
    plan = plan_prune(root, keep=0, whole_runs=True)
    assert plan.deletions == ()
    assert any(why.startswith("unreadable: ") for why in plan.kept.values())


def test_a_disk_that_fails_deletes_no_half(tmp_path, failing_disk):
    run = made_run(tmp_path / "run")
    plan = plan_prune(tmp_path, keep=0)
    for k in range(1, 20):
        with failing_disk(k) as disk:
            try:
                prune(plan)
            except StorageError:
                assert 20 in steps_of(run)
                assert main(["runs", "verify", str(run)]) == 0
                plan = plan_prune(tmp_path, keep=0)
                continue
        assert disk.failed is None
        break
    assert k > 3
    assert steps_of(run) == [20]


def test_the_command_shows_and_asks(tmp_path, capsys, monkeypatch):
    run = made_run(tmp_path / "run")
    words = ["runs", "prune", str(tmp_path)]
    assert main([*words, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out == (
        f"deletes  {run}/checkpoints/step-00000010 (0.0 MB)\n"
        "It would free 1 folder, 0.0 MB; nothing was deleted.\n"
    )
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "error: It would free 1 folder, 0.0 MB. Nothing was deleted, as there is no terminal to "
        "ask on: add --yes to delete, or --dry-run to look.\n"
    )
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "")
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("Nothing was deleted.\n")
    assert steps_of(run) == [10, 20, 30]
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("Freed 0.0 MB.\n")
    assert steps_of(run) == [20, 30]
    assert main([*words, "--yes"]) == 0
    assert capsys.readouterr().out == "Nothing to delete.\n"


def test_what_the_command_refuses(tmp_path, capsys):
    assert main(["runs", "prune", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == (
        f"error: There is no folder {tmp_path}/none; wanted the folder that runs are in.\n"
    )
    assert main(["runs", "prune", str(tmp_path), "--keep", "-1"]) == 2
    assert capsys.readouterr().err == "error: --keep must be 0 or more, but is -1.\n"


def test_a_run_with_another_in_its_folder_stays_whole(tmp_path):
    outer = made_run(tmp_path / "outer")
    inner = made_run(outer / "inner")
    plan = plan_prune(tmp_path, whole_runs=True)
    assert [item.path for item in plan.deletions] == [inner]
    assert plan.kept == {outer: "another run lies in its folder"}


def left_over(folder, name, process=2**22 + 1):
    """What a process that was killed left: the ids of processes end below that number."""
    path = folder / f".{name}.tmp-{process}"
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(bytes(1000))
    return path


def test_what_a_killed_prune_or_export_left_goes(tmp_path, capsys):
    run = made_run(tmp_path / "runs" / "a" / "0123456789ab", steps=(20,))
    made = [
        left_over(run / "checkpoints", "step-00000010"),
        left_over(run / "export", "ctranslate2"),
    ]
    (run / "checkpoints" / "note.tmp-1").write_text("mine")
    hidden = made_run(tmp_path / "runs" / "a" / "mine")
    hidden = hidden.rename(hidden.with_name(f".mine.tmp-{2**22 + 1}"))
    assert main(["runs", "list", str(tmp_path)]) == 0
    assert ".mine" not in capsys.readouterr().out
    assert main(["runs", "prune", str(tmp_path), "--dry-run"]) == 0
    assert all(path.exists() for path in made)
    assert main(["runs", "prune", str(tmp_path), "--yes"]) == 0
    out = capsys.readouterr().out
    assert all(f"deletes  {path} (" in out for path in made)
    assert [path for path in made if path.exists()] == []
    assert (steps_of(run), hidden.exists()) == ([20], True)
    assert (run / "checkpoints" / "note.tmp-1").exists()
    assert main(["runs", "prune", str(tmp_path), "--yes"]) == 0
    assert capsys.readouterr().out == "Nothing to delete.\n"

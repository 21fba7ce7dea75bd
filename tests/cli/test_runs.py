"""``textmill runs`` without an action, and ``textmill runs list``."""

import json
import os
import shutil
from datetime import datetime
from pathlib import Path

from tests.runs.made_runs import aged, made_run
from textmill.cli.main import main
from textmill.run_folder.folder import remember_place


def test_without_an_action_the_runs_are_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    assert capsys.readouterr().out == "No runs in runs.\n"
    folder = tmp_path / "runs" / "demo" / "0123"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    listed = []
    for words in (["runs"], ["runs", "list"], ["runs", "list", "runs"]):
        assert main(words) == 0
        listed.append(capsys.readouterr().out)
    assert "runs/demo/0123" in listed[0]
    assert listed[1:] == [listed[0]] * 2


def test_a_line_says_what_and_how_far_and_how_large_a_run_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    now = datetime(2026, 3, 4, 5, 6).timestamp()
    ended = aged(made_run(tmp_path / "one" / "a"), 0, now)
    (ended / "predictions").mkdir()
    (ended / "predictions" / "p.jsonl").write_bytes(bytes(1_250_000))
    aged(made_run(tmp_path / "two" / "b", steps=(10, 2000), best=10, finished=False), 2, now)
    aged(made_run(tmp_path / "two" / "c", steps=(), best=None, finished=False, failed="?"), 1, now)
    (tmp_path / "two" / "d").mkdir()
    (tmp_path / "two" / "d" / "run.json").write_text("{}")
    os.utime(tmp_path / "two" / "d" / "run.json", (now, now))
    assert main(["runs", "list", "one", "two", "two/b", "none"]) == 0
    said, *lines = capsys.readouterr().out.splitlines()
    assert said == "No runs in none."
    assert [line.split("  ")[0] for line in lines] == ["run", "one/a", "two/b", "two/c", "two/d"]
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    assert cells == [
        ["run", "recipe", "state", "steps", "last written", "MB", "best", "settings"],
        ["one/a", "tiny/made", "finished", "30", "2026-03-04 05:06", "1.3", "bleu 28.50"],
        ["two/b", "tiny/made", "not finished", "2,000", "2026-03-02 05:06", "0.0"],
        ["two/c", "tiny/made", "failed", "-", "2026-03-03 05:06", "0.0"],
        [
            "two/d", "-", "unreadable", "-", "2026-03-04 05:06", "0.0",
            "two/d/run.json has no format_version, and this textmill reads 1. Train anew.",
        ],
    ]  # fmt: skip


def test_runs_of_a_recipe_stand_together_the_best_first_with_what_differs(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name, recipe, value, better, lr in (
        ("a", "one", 0.7, "higher", 0.1),
        ("b", "two", 3.0, "lower", 0.1),
        ("c", "one", 0.9, "higher", 0.2),
        ("d", "two", 2.0, "lower", 0.1),
        ("e", "one", float("nan"), "higher", 0.1),
    ):
        folder = made_run(tmp_path / "runs" / name, lr=lr)
        info = json.loads((folder / "run.json").read_text())
        info |= {"recipe": recipe, "selected_by": {"metric": "x", "better": better}}
        info["result"]["best"] = {"step": 3, "x": "NaN" if value != value else value}
        (folder / "run.json").write_text(json.dumps(info))
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [f"runs/{name}" for name in "caedb"]
    assert [line.split("  ")[-1].strip() for line in lines[:3]] == [
        "optimizer.lr=0.2", "optimizer.lr=0.1", "optimizer.lr=0.1",
    ]  # fmt: skip
    assert "optimizer" not in "".join(lines[3:])
    assert main(["runs", "list", "--sort", "name"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [f"runs/{name}" for name in "abcde"]


def test_runs_elsewhere_are_found_again_until_they_are_gone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("stars", "runs/here", "gone"):
        made_run(tmp_path / name)
        remember_place(Path(name))
        remember_place(Path(name))
    shutil.rmtree("gone")
    assert Path(".textmill/run_places.txt").read_text() == "stars\ngone\n"
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["runs/here", "stars"]
    assert main(["runs", "list", "none"]) == 0
    assert capsys.readouterr().out == "No runs in none.\n"

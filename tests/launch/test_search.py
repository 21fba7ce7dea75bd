"""A search: what is proposed, pruned, gone on with after a kill, and refused."""

import json
import logging
import re
import sys
from pathlib import Path

import pytest

from tests.launch.grids import quick
from tests.launch.test_grid import Fake, FakeLauncher
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.launch.cells import Axis, Cell, GridWords, Named
from textmill.launch.grid import FIRST, Grid, OptunaSearch
from textmill.runs.study import JOURNAL

AXES = GridWords.read(
    ["lr=log(1e-5,1e-2)", "drop=uniform(0,0.5)", "layers=int(1,6)", "kind=choice(a,b)", "dim=4,8"],
    search=True,
).axes


def place_in(folder):
    """Each proposal as a cell; its folder has a name made of it."""

    def place(chosen):
        found = folder / "runs" / re.sub(r"[^\w.-]+", "_", "_".join(chosen))
        done = (found / "run.json").exists() and json.loads((found / "run.json").read_text())
        state = "finished" if done and done["finished"] else "open"
        return Cell(chosen, chosen, found, state)

    return place


def write_run(cell, values, *, finished, better="lower"):
    """What a run says of itself while it evaluates, and when it has ended."""
    cell.folder.mkdir(parents=True, exist_ok=True)
    (cell.folder / "config.yaml").write_text("settings: {}\n")
    info = {
        "format_version": 1, "recipe": "tiny", "key": "0123456789ab",
        "selected_by": {"metric": "f", "better": better}, "finished": finished,
    }  # fmt: skip
    best = (min if better == "lower" else max)(values)
    if finished:
        info["result"] = {"steps": 9, "best": {"step": 9, "f": best}}
    (cell.folder / "run.json").write_text(json.dumps(info))
    lines = [json.dumps({"split": "valid", "step": n, "f": v}) for n, v in enumerate(values, 1)]
    (cell.folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))


def run_all(search, value_of):
    """Takes and ends every cell; gives their words."""
    seen = []
    while cell := search.take():
        write_run(cell, [value_of(cell)], finished=True)
        cell.state = "finished"
        search.ended(cell)
        seen.append(cell.chosen)
    return seen


def states(search):
    return [trial.state.name for trial in search._study.trials]


def test_what_is_proposed_is_in_its_space_and_the_same_each_time(tmp_path):
    seen = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        search = OptunaSearch(AXES, tmp_path / name, place_in(tmp_path / name), 12)
        seen.append(run_all(search, lambda cell: abs(float(cell.values[0]) - 1e-3)))
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 12
    values = [[word.partition("=")[2] for word in words] for words in seen[0]]
    assert all(1e-5 <= float(lr) <= 1e-2 and len(lr) < 10 for lr, *_ in values)
    assert all(0 <= float(drop) <= 0.5 for _, drop, *_ in values)
    assert {layers for _, _, layers, *_ in values} <= set("123456")
    assert {kind for *_, kind, _ in values} == {"a", "b"}
    assert {dim for *_, dim in values} == {"4", "8"}


def test_a_search_that_was_killed_goes_on_with_the_open_trial(tmp_path):
    place = place_in(tmp_path)
    whole = OptunaSearch(AXES, tmp_path, place, 3)
    first = whole.take()
    write_run(first, [0.5], finished=True)
    first.state = "finished"
    whole.ended(first)
    second = whole.take()
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"op_code": 6, "half')  # a kill in the middle of a line

    again = OptunaSearch(AXES, tmp_path, place, 3)
    assert [cell.state for cell in again.cells] == ["finished", "open"]
    assert again.take().chosen == second.chosen
    assert states(again) == ["COMPLETE", "RUNNING"]
    write_run(second, [0.25], finished=True)  # its process had ended when the driver was killed

    third = OptunaSearch(AXES, tmp_path, place, 3)
    assert third.take().chosen not in (first.chosen, second.chosen)
    assert states(third) == ["COMPLETE", "COMPLETE", "RUNNING"]
    assert third._study.study.best_value == 0.25
    assert third.take() is None


def test_a_trial_that_a_kill_left_without_all_its_settings_is_over(tmp_path):
    search = OptunaSearch(AXES, tmp_path, place_in(tmp_path), 2)
    search._study.study.ask().suggest_float("lr", 1e-5, 1e-2, log=True)
    again = OptunaSearch(AXES, tmp_path, place_in(tmp_path), 2)
    assert len(again.take().chosen) == len(AXES)
    assert again.take() is None


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_a_cell_worse_than_the_median_is_pruned_from_its_second_evaluation(tmp_path, better):
    sign = 1 if better == "lower" else -1
    search = OptunaSearch(AXES, tmp_path, place_in(tmp_path), FIRST + 2)
    for number in range(FIRST):
        cell = search.take()
        for seen in (1, 2, 3):
            write_run(cell, [sign * (2 + number)] * seen, finished=seen == 3, better=better)
            assert search.hopeless(cell) == ""
        cell.state = "finished"
        search.ended(cell)
    good, bad = search.take(), search.take()
    for cell, value in ((good, 1), (bad, 99)):
        write_run(cell, [sign * value], finished=False, better=better)
        assert search.hopeless(cell) == ""  # the first evaluation
        write_run(cell, [sign * value] * 2, finished=False, better=better)
    assert search.hopeless(good) == ""
    why = search.hopeless(bad)
    assert why == f"f {99.0 * sign:.2f} at step 2 is worse than the median so far"
    bad.state, bad.reason = "pruned", why
    search.ended(bad)
    assert states(search) == ["COMPLETE"] * FIRST + ["RUNNING", "PRUNED"]
    again = OptunaSearch(AXES, tmp_path, place_in(tmp_path), FIRST + 2)
    assert [cell.state for cell in again.cells][-2:] == ["open", "pruned"]
    assert again.cells[-1].reason == why


class Pruning(FakeLauncher):
    """Cells that measure ever the same, the later the worse, and end after three evaluations."""

    jobs = 1

    def start(self, words, log, name):
        job = Measures(words[words.index("--run-dir") + 1], len(self.started))
        self.started.append(job)
        return job


class Measures(Fake):
    def __init__(self, folder, number):
        super().__init__(folder, None)
        self.run, self.number, self.seen = Cell((), (), Path(folder)), number, 0

    def poll(self):
        if self.code is None:
            self.seen += 1
            write_run(self.run, [float(self.number)] * self.seen, finished=self.seen == 3)
            self.code = 0 if self.seen == 3 else None
        return self.code


def test_the_driver_stops_what_the_search_gives_up_and_it_counts_as_ended(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    search = OptunaSearch(AXES, tmp_path, place_in(tmp_path), FIRST + 1)
    launcher = Pruning({})
    Grid(Named("tiny.py"), search, launcher, tmp_path / "grid").run()
    assert [job.stopped for job in launcher.started] == [False] * FIRST + [True]
    assert [cell.state for cell in search.cells] == ["finished"] * FIRST + ["pruned"]
    assert f"[{FIRST + 1}/{FIRST + 1}]" in caplog.text
    assert "pruned: f 5.000 at step 2 is worse than the median so far" in caplog.text


def test_a_cell_that_was_killed_is_open_and_one_that_failed_is_not(tmp_path):
    search = OptunaSearch(AXES, tmp_path, place_in(tmp_path), 2)
    for killed in (True, False):
        cell = search.take()
        cell.state, cell.reason, cell.killed = "failed", "why", killed
        search.ended(cell)
    assert states(search) == ["RUNNING", "FAIL"]
    again = OptunaSearch(AXES, tmp_path, place_in(tmp_path), 2)
    assert [cell.state for cell in again.cells] == ["open", "failed"]
    assert again.cells[1].reason == "why"


def test_a_proposal_of_before_is_the_same_cell(tmp_path):
    axes = (Axis("kind", ("a", "b")),)
    search = OptunaSearch(axes, tmp_path, place_in(tmp_path), 6)
    assert len(run_all(search, lambda cell: 1.0)) == len(search.cells) == 2
    assert states(search) == ["COMPLETE"] * 6


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("lr=log(0,1)", "wanted two numbers, the smaller one first and above 0."),
        ("lr=uniform(2,1)", "wanted two numbers, the smaller one first."),
        ("lr=uniform(1)", "wanted two numbers, the smaller one first."),
        ("n=int(1,2.5)", "wanted two whole numbers, the smaller one first."),
        ("a=choice()", "wanted values with commas between."),
    ],
)
def test_a_space_that_is_none_is_refused(word, message):
    with pytest.raises(UserError) as error:
        GridWords.read([word], search=True)
    assert str(error.value) == f"'{word}': {message}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lr=log(1,2)"], "'lr=log(1,2)' is a space to search in. Add --search optuna --trials N."),
        (["lr=1,2", "--search", "optuna"], "a search wants its length: --trials 30."),
        (["lr=1,2", "--trials", "3"], "--trials is for a search. Add --search optuna, or leave it"),
        (["--search", "optuna", "--trials", "3", "--seeds", "2"], "--seeds is for a grid."),
        (
            ["lr=log(1,2)", "valid_data=null", "--search", "optuna", "--trials", "3"],
            "a search compares runs by trainer.selection.metric, which is measured on valid_data",
        ),
        (
            ["lr=log(1e-3,1e-2)", "model.dropout=uniform(0,7)", "--search=optuna", "--trials=3"],
            "1 of 2 cells cannot be trained; nothing was started.\n  optimizer.lr=1e-2 model",
        ),
    ],
)  # fmt: skip
def test_a_search_that_cannot_be_is_refused(monkeypatch, tmp_path, capfd, words, message):
    quick(monkeypatch, tmp_path / "grid")
    assert main(["grid", "tiny.py", *words]) == 2
    assert f"error: {message}" in capfd.readouterr().err


def test_the_extra_is_named_where_the_package_is_missing(monkeypatch, tmp_path, capfd):
    quick(monkeypatch, tmp_path / "grid")
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["grid", "tiny.py", "lr=1,2", "--search", "optuna", "--trials", "3"]) == 2
    assert "pip install 'textmill[optuna]'\n" in capfd.readouterr().err

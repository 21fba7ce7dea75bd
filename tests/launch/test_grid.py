"""A grid from its command to its table: checked first, gone on with, each cell finished once."""

import csv
import io
import itertools
import json
import logging
import os
import shutil
import signal
import subprocess
from contextlib import redirect_stdout

import pytest

import textmill
from tests.launch.grids import SHORT, grid_folder, in_process, runs_of
from tests.runs.made_runs import made_run
from tests.waiting import wait_until
from tests.warm_textmill import warm_programs
from textmill.cli.main import main
from textmill.errors import RunStoppedError
from textmill.launch.cells import Cell, GridWords, Named
from textmill.launch.grid import Cells, Grid, identity
from textmill.launch.launcher import Local, LocalJob
from textmill.runtime.lock import Lock, owner_of

LR = "optimizer.lr=1e-2,2e-2"
GRID = ["grid", "tiny.py", LR, "--seeds", "2", *SHORT]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return in_process(monkeypatch, tmp_path / "grid")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A grid of four cells, and what it printed on stdout."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        folder = in_process(patch, tmp_path_factory.mktemp("trained") / "grid")
        assert main(GRID) == 0
    return folder, out.getvalue()


@pytest.fixture
def copy(trained, monkeypatch, tmp_path):
    """The trained grid, in a folder of the test's own; its cells are not checked again."""
    monkeypatch.setattr("textmill.launch.grid.check_first", lambda *_: "")
    shutil.copytree(trained[0], tmp_path / "grid", symlinks=True)
    return in_process(monkeypatch, tmp_path / "grid")


def table(folder, name):
    with (grid_folder(folder) / name).open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_table_has_mean_and_deviation_over_the_seeds(trained):
    folder, _ = trained
    cells = table(folder, "cells.tsv")
    assert [(cell["optimizer.lr"], cell["seed"], cell["state"]) for cell in cells] == [
        (lr, seed, "finished") for lr in ("1e-2", "2e-2") for seed in "12"
    ]
    for cell in cells:
        info = json.loads((folder / cell["run"] / "run.json").read_text())
        assert float(cell["loss"]) == info["result"]["best"]["loss"]
        assert float(cell["test loss"]) == info["result"]["test"]["loss"]
    lines = table(folder, "table.tsv")
    assert len(lines) == 2
    for line, name in itertools.product(lines, ("loss", "test loss")):
        first, second = (
            float(cell[name]) for cell in cells if cell["optimizer.lr"] == line["optimizer.lr"]
        )
        assert float(line[name]) == pytest.approx((first + second) / 2)
        assert float(line[f"{name} deviation"]) == pytest.approx(abs(first - second) / 2**0.5)
    assert float(lines[0]["loss"]) <= float(lines[1]["loss"])


def test_the_best_run_is_named_and_loads(trained):
    folder, printed = trained
    lines = printed.splitlines()
    header = "optimizer.lr state loss loss deviation test loss test loss deviation seeds run"
    assert lines[0].split() == header.split()
    first = table(folder, "table.tsv")[0]
    best = min(
        (cell for cell in table(folder, "cells.tsv")
         if cell["optimizer.lr"] == first["optimizer.lr"]),
        key=lambda cell: float(cell["loss"]),
    )  # fmt: skip
    assert f"run: {best['run']}" in lines
    chosen = f"optimizer.lr={best['optimizer.lr']}"
    assert any(line.startswith(f"best settings: {chosen}: loss ") for line in lines)
    assert any(line.startswith(f"best: {chosen} trainer.seed={best['seed']}: ") for line in lines)
    assert textmill.load(folder / best["run"])("the cat sees tea")
    page = (grid_folder(folder) / "report.html").read_text()
    assert all(f"<td>{lr}</td>" in page for lr in ("1e-2", "2e-2"))


def test_a_finished_grid_prints_its_table_and_starts_nothing(copy, trained, capfd):
    times = {run: (run / "run.json").stat().st_mtime_ns for run in runs_of(copy)}
    assert len(times) == 4
    assert main(GRID) == 0
    printed = capfd.readouterr()
    assert printed.out == trained[1]
    assert "4 cells, 4 of them ended before" in printed.err
    assert {run: (run / "run.json").stat().st_mtime_ns for run in runs_of(copy)} == times


def test_values_are_added_to_the_same_grid(copy, capfd):
    times = {run: (run / "run.json").stat().st_mtime_ns for run in runs_of(copy)}
    assert main([*GRID[:2], f"{LR},3e-2", *GRID[3:]]) == 0
    assert "6 cells, 4 of them ended before" in capfd.readouterr().err
    assert {run: (run / "run.json").stat().st_mtime_ns for run in times} == times
    assert len(runs_of(copy)) == 6
    assert len(table(copy, "table.tsv")) == 3  # it is the same grid's


@pytest.mark.slow
def test_more_steps_go_on_with_each_cell(copy, capfd):
    longer = [*GRID[:5], "trainer.max_steps=6", *SHORT[1:]]
    assert GRID[5] == "trainer.max_steps=4"
    assert main(longer) == 0
    assert "4 cells, 0 of them ended before" in capfd.readouterr().err
    for run in runs_of(copy):
        info = json.loads((run / "run.json").read_text())
        assert (info["result"]["steps"], len(info["starts"]), len(info["changes"])) == (6, 2, 1)
    assert len(runs_of(copy)) == 4
    assert {cell["step"] for cell in table(copy, "cells.tsv")} <= {"2", "4", "6"}  # the same grid's
    assert main(longer) == 0
    assert "4 cells, 4 of them ended before" in capfd.readouterr().err
    assert main(GRID) == 0  # runs of their own: nothing is trained backwards
    assert " is longer already: it has 6 steps (trainer.max_steps=4)." in capfd.readouterr().err
    assert len(runs_of(copy)) == 8


def test_the_name_of_a_grid_is_that_of_its_settings():
    """Whatever they are called, and however long cells are; not so that of a search."""

    def name(*words, searches=False):
        asked = GridWords.read(words).in_full({"lr": "optimizer.lr"})
        return identity(Named("tiny.py"), asked, searches)

    short = name("optimizer.lr=1,2", "model.dim=3", "trainer.max_steps=4")
    assert name("model.dim=3", "lr=1,2,3", "trainer.max_epochs=4") == short
    assert name("model.dim=4", "lr=1,2") != short
    assert name("lr=1,2", "trainer.max_steps=4", searches=True) != name("lr=1,2", searches=True)


def test_everything_wrong_is_told_before_anything_starts(folder, capfd):
    command = ["grid", "tiny.py", "optimizer.lr=1e-2,abc", "model.dropout=0,7", *SHORT]
    assert main(command) == 2
    err = capfd.readouterr().err
    assert "3 of 4 cells cannot be trained; nothing was started." in err
    assert "command line: model.dropout=7: model.dropout must be" in err
    assert err.count("command line: optimizer.lr=abc: optimizer.lr: wanted float") == 1
    assert not (folder / "runs").exists()
    # What only building and reading shows is told of the first cell.
    (folder / "valid.tsv").unlink()
    assert main(["grid", "tiny.py", LR, *SHORT]) == 2
    err = capfd.readouterr().err
    assert "optimizer.lr=1e-2 cannot be trained; nothing was started.\n  valid_data" in err
    assert err.count("there is no file valid.tsv") == 1
    assert not (folder / "runs").exists()


def test_two_cells_that_are_one_run_are_refused(folder, capfd):
    assert main(["grid", "tiny.py", "trainer.max_steps=4,6"]) == 2
    assert "trainer.max_steps=6:\n    this is the same run as that of" in capfd.readouterr().err
    assert main(["grid", "tiny.py", "trainer.max_steps=4"]) == 2
    assert "nothing varies. Give a setting several values" in capfd.readouterr().err


def test_a_run_is_no_recipe_of_a_grid(folder, capfd):
    made_run(folder / "one")
    assert main(["grid", "one", LR]) == 2
    assert "one is a run, which textmill train continues." in capfd.readouterr().err


def test_a_cell_that_fails_is_told_at_once_and_tried_again_by_the_same_command(folder, capfd):
    with (folder / "tiny.py").open("a") as file:
        file.write(
            "from textmill.training import Callback\n\n"
            "class Fails(Callback):\n"
            "    def step(self, now):\n"
            "        if now.steps == 3 and not Path('mended').exists():\n"
            "            raise ValueError('no third step')\n\n"
            "def callbacks(xp):\n"
            "    return [Fails()] if '2e-2' in ' '.join(xp.overrides) else []\n"
        )
    command = ["grid", "tiny.py", LR, *SHORT, "trainer.save_every=2", "--jobs", "1"]
    assert main(command) == 1
    printed = capfd.readouterr()
    assert "optimizer.lr=2e-2 failed: ValueError: no third step\n  raised at" in printed.err
    assert f"  its command: textmill train tiny.py {' '.join(SHORT)}" in printed.err
    log = printed.err.partition("  its log: ")[2].splitlines()[0]
    assert "no third step" in (folder / log).read_text()
    assert "1 of 2 cells are not finished; the same command goes on with them" in printed.out
    assert "failed" in (grid_folder(folder) / "table.tsv").read_text()
    assert "no third step" in (grid_folder(folder) / "report.html").read_text()

    (folder / "mended").touch()
    assert main(command) == 0
    assert "2 cells, 1 of them ended before" in capfd.readouterr().err


@pytest.mark.slow
def test_of_data_that_changed_all_cells_are_other_runs(copy, capfd):
    one = runs_of(copy)[0]
    info = json.loads((one / "run.json").read_text())
    (one / "run.json").write_text(json.dumps({**info, "finished": False}))
    with (copy / "train.tsv").open("a") as file:
        file.write("a bird sees bread\tun oiseau voit du pain\n")
    assert main(GRID) == 0
    said = f"train_data changed since runs/tiny/{one.name} was started"
    assert said in capfd.readouterr().err
    assert len(runs_of(copy)) == 8


class Fake(LocalJob):
    """A process that ends when it is told to."""

    def __init__(self, cell: Cell, code: int | None) -> None:
        self.cell, self.code, self.stopped = cell, code, False
        self.accelerator = None

    def poll(self):
        return self.code

    def stop(self):
        self.stopped, self.code = True, 143

    def kill(self):
        self.code = -9


class FakeLauncher:
    """Starts no process; cells end as the test says, each the next time it is looked at."""

    jobs, threads = 2, 1

    def __init__(self, codes):
        self.codes, self.started = codes, []

    def start(self, words, log, name):
        name = words[words.index("--run-dir") + 1].rpartition("/")[2]
        log.write_text(f"error: {name} is wrong.\n")
        self.started.append(Fake(name, self.codes.get(name)))
        return self.started[-1]


def cells_in(folder, *names):
    return [Cell((f"lr={name}",), (f"lr={name}",), folder / name) for name in names]


def test_fail_fast_lets_those_at_work_save_and_starts_no_other(tmp_path):
    launcher, cells = FakeLauncher({"b": 1}), cells_in(tmp_path, "a", "b", "c")
    Grid(Named("tiny.py"), Cells(cells), launcher, tmp_path / "grid", fail_fast=True).run()
    assert [(job.cell, job.stopped) for job in launcher.started] == [("a", True), ("b", False)]
    assert [cell.state for cell in cells] == ["stopped", "failed", "open"]
    assert cells[1].reason == "b is wrong."
    assert cells[0].reason == "a cell failed (--fail-fast)"


def test_a_cell_that_another_process_trains_is_waited_for(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    (tmp_path / "a").mkdir()
    launcher, cells = FakeLauncher({"a": 1}), cells_in(tmp_path, "a")
    grid = Grid(Named("tiny.py"), Cells(cells), launcher, tmp_path / "grid")
    grid.logs.mkdir(parents=True)
    with Lock(tmp_path / "a"):
        grid.start(cells[0])
        grid.look()
        assert grid.at_work == cells
    assert launcher.started == []
    assert f":{os.getpid()} trains it already; it is waited for." in caplog.text
    grid.look()  # it has ended without finishing: the cell is this grid's now
    assert [job.cell for job in launcher.started] == ["a"]


def test_one_driver_at_a_time(copy, capfd):
    with Lock(grid_folder(copy)):
        assert main(GRID) == 1
    said = capfd.readouterr().err
    assert f":{os.getpid()} already (runs/tiny/grid-" in said
    assert "Wait for it to end or stop it." in said


def test_the_cores_are_shared(monkeypatch, tmp_path):
    monkeypatch.setattr("textmill.launch.launcher.usable_cores", lambda: 8)
    assert (Local(device="cpu").jobs, Local(device="cpu").threads) == (8, 1)
    assert (Local(3, device="cpu").jobs, Local(3, device="cpu").threads) == (3, 2)
    assert Local(device="cuda:1").jobs == 1
    two = Local(device="cpu", commands=2)
    assert (two.jobs, two.threads) == (2, 4)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("textmill.launch.launcher.program", lambda: ["sh", "-c"])
    local = Local()
    shown = 'echo "$CUDA_VISIBLE_DEVICES $OMP_NUM_THREADS"; sleep 0.5'
    jobs = [local.start([shown], tmp_path / str(number)) for number in range(2)]
    assert [job.process.wait() for job in jobs] == [0, 0]
    assert [(tmp_path / name).read_text() for name in "01"] == ["4 4\n", "6 4\n"]


def test_a_signal_stops_what_is_at_work_and_nothing_else_is_started(tmp_path):
    launcher, cells = FakeLauncher({"a": 1}), cells_in(tmp_path, "a", "b", "c", "d")
    shown = []

    def show(line):
        shown.append(line)
        if len(launcher.started) == 3:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(RunStoppedError) as error:
        Grid(Named("tiny.py"), Cells(cells), launcher, tmp_path / "grid", show=show).run()
    assert error.value.exit_code == 143
    assert str(error.value).startswith("Stopped by SIGTERM: 1 of 4 cells have ended, and those at")
    assert [job.stopped for job in launcher.started] == [False, True, True]
    assert [cell.state for cell in cells] == ["failed", "stopped", "stopped", "open"]
    assert "1 of 4 cells ended · 1 failed · 2 at work" in shown


@pytest.mark.timeout(120)
def test_a_driver_that_is_killed_leaves_its_cells_to_the_next(copy, capfd, tmp_path):
    """Those of the killed driver are waited for, and none is trained twice."""
    for run in runs_of(copy)[:1]:
        shutil.rmtree(run)
        (run / "checkpoints").mkdir(parents=True)  # begun: it is not checked again
    environment = {**os.environ, "PATH": f"{warm_programs()}{os.pathsep}{os.environ['PATH']}"}
    driver = subprocess.Popen([str(warm_programs() / "textmill"), *GRID], env=environment)
    wait_until(lambda: any(map(owner_of, (copy / "runs" / "tiny").glob("[!g]*"))))
    driver.kill()
    driver.wait()
    assert main(GRID) == 0
    assert "4 cells, 3 of them ended before" in capfd.readouterr().err
    starts = [json.loads((run / "run.json").read_text())["starts"] for run in runs_of(copy)]
    assert [len(each) for each in starts] == [1, 1, 1, 1]

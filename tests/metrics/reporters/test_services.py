"""Reporters that hand values to a service, which never ends a run."""

import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.metrics.reporters.services import READ
from tests.trained_run import train_script
from textmill.cli.main import main
from textmill.errors import MissingExtraError, UserError
from textmill.metrics.reporters.reporter import Reporter, Reporters, RunInfo
from textmill.recipes import registries
from textmill.runtime.devices import Experiment


@pytest.fixture(params=sorted(READ))
def name(request, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    return request.param


ONE = pytest.mark.parametrize("name", ["tensorboard"], indirect=True)
"""For what the base of all services does."""
ONE_QUICKLY = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "tensorboard" else pytest.mark.slow)
        for name in sorted(READ)
    ],
    indirect=True,
)


def build(name, folder):
    xp = Experiment(folder=folder, recipe="tiny.py", key="0123456789ab")
    return registries.reporters.get(name).Config().build(xp=xp)


def started(name, folder, *, step=0, state=None):
    reporter = build(name, folder)
    if state is not None:
        reporter.load_state_dict(state)
    reporter.start(RunInfo(step=step))
    return reporter


KILLED = """
import json, sys, time
from pathlib import Path
from textmill.recipes import registries
from textmill.metrics.reporters.reporter import RunInfo
from textmill.runtime.devices import Experiment
xp = Experiment(folder=Path(sys.argv[2]))
reporter = registries.reporters.get(sys.argv[1]).Config().build(xp=xp)
reporter.start(RunInfo())
for step in (10, 20, 30):
    reporter.report("train", {"step": step}, {"loss": 100.0 / step})
    reporter.report("valid", {"step": step}, {"loss": 200.0 / step})
    if step == 20:
        state = reporter.state_dict()
time.sleep(2)  # a service may send a moment later
print(json.dumps(state), file=sys.stderr)
print("ready", file=sys.stderr, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@ONE_QUICKLY
def test_a_killed_run_goes_on_in_the_same_run(name, tmp_path):
    # Without the service of this process, which other tests may have started: it outlives the kill.
    alone = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    command = [sys.executable, "-c", KILLED, name, str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=alone)
    lines = list(iter(process.stderr.readline, "ready\n"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    time.sleep(1)
    resumed = started(name, tmp_path, step=20, state=json.loads(lines[-1]))
    for step in (30, 40):
        resumed.report("train", {"step": step}, {"loss": 100.0 / step})
        resumed.report("valid", {"step": step}, {"loss": 200.0 / step})
    resumed.end({})
    resumed.close()
    values = READ[name](tmp_path, resumed.run)
    assert list(values) == ["train/loss", "valid/loss"]
    steps = {(step, round(float(value), 4)) for step, value in values["train/loss"]}
    first = 30 if name == "wandb" else 10  # it had written nothing yet
    assert sorted(steps) == [(step, round(100.0 / step, 4)) for step in range(first, 50, 10)]
    if name == "tensorboard":  # and each once
        assert [step for step, _ in values["valid/loss"]] == [10, 20, 30, 40]


@ONE_QUICKLY
def test_values_that_are_no_numbers_arrive(name, tmp_path):
    reporter = started(name, tmp_path)
    reporter.report("valid", {"step": 1}, {"a": math.nan, "b": math.inf, "c": 1e30})
    reporter.close()
    values = READ[name](tmp_path, reporter.run)
    assert [step for steps in values.values() for step, _ in steps] == [1, 1, 1]
    assert "nan" in values["valid/a"][0][1].lower()
    assert "inf" in values["valid/b"][0][1].lower()
    assert float(values["valid/c"][0][1]) == pytest.approx(1e30)


@ONE
def test_without_the_package_nothing_starts(name, tmp_path, monkeypatch, capsys):
    found = importlib.util.find_spec
    absent = lambda wanted, *more: None if wanted == name else found(wanted, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", absent)
    missing = f"pip install 'textmill[{name}]'"
    with pytest.raises(MissingExtraError) as error:
        build(name, tmp_path)
    assert missing in str(error.value)
    words = ["trainer.max_steps=1", f"reporters.also=[{name}]", "--run-dir", str(tmp_path / "run")]
    assert main(["train", "translation/demo", *words]) == 2
    assert missing in capsys.readouterr().err
    assert not (tmp_path / "run" / "checkpoints").exists()


@ONE
def test_a_service_that_fails_is_warned_of_once_and_left_out(name, tmp_path, monkeypatch, caplog):
    reporter = started(name, tmp_path)
    reporter.report("valid", {"step": 1}, {"loss": 1.0})
    calls = []

    def fail(*args):
        calls.append(args)
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(reporter, "log", fail)
    for step in (2, 3):
        reporter.report("valid", {"step": step}, {"loss": float(step)})
    reporter.end({})
    reporter.close()
    assert len(calls) == 1
    (message,) = [m for m in caplog.messages if m.startswith(f"{reporter.service} failed")]
    assert message.endswith("no route to host")


def test_mlflow_must_know_where_to(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI"):
        build("mlflow", tmp_path)


@pytest.mark.slow
def test_mlflow_gets_thousands_of_values_and_names_that_it_takes(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    mlflow = build("mlflow", tmp_path)
    mlflow.start(RunInfo())
    mlflow.report("valid", {"step": 1}, {f"label ({i})": 0.5 for i in range(1_234)})
    mlflow.close()
    assert caplog.messages == []
    values = READ["mlflow"](tmp_path, mlflow.run)
    assert len(values) == 1_234
    assert values["valid/label _7_"] == [(1, "0.5")]


@ONE_QUICKLY
def test_a_real_run(name, tmp_path):
    folder = train_script(tmp_path, words=(f"reporters.also=[{name}]",))
    if name == "mlflow":
        (settings,) = tmp_path.glob("mlruns/*/*/artifacts/settings.json")
        assert json.loads(settings.read_text())["optimizer"]["lr"] == 3e-3
        values = READ[name](tmp_path, settings.parents[1].name)
    elif name == "trackio":
        import trackio

        runs = trackio.Api().runs("textmill")
        (run,) = [one for one in runs if "optimizer" in (one.config or {})]
        assert run.config["optimizer"]["lr"] == 3e-3
        values = READ[name](folder, run.name)
    else:
        values = READ[name](folder, "*")
    assert [step for step, _ in values["valid/loss"]] == [2, 4]
    assert [step for step, _ in values["train/lr"]] == [2, 4]


def test_tensorboard_forgets_what_a_run_took_back_and_shows_rates(tmp_path):
    reporter = started("tensorboard", tmp_path)
    rates = {"elapsed": 3.0, "steps_per_second": 7.5}
    reporter.report("train", {"step": 1, "time": rates}, {"loss": 1.0})
    state = reporter.state_dict()
    reporter.report("valid", {"step": 2}, {"loss": 2.0})
    reader = EventAccumulator(str(tmp_path))
    reader.Reload()
    assert [(e.step, e.value) for e in reader.Scalars("valid/loss")] == [(2, 2.0)]
    time.sleep(1.1)  # it names its files by the second
    reporter.load_state_dict(state)
    reporter.report("valid", {"step": 2}, {"loss": 20.0})
    reader.Reload()
    assert [(e.step, e.value) for e in reader.Scalars("valid/loss")] == [(2, 20.0)]
    assert [(e.step, e.value) for e in reader.Scalars("time/steps_per_second")] == [(1, 7.5)]
    assert "time/elapsed" not in reader.Tags()["scalars"]
    reporter.close()


def test_each_reporter_is_closed_whatever_another_one_raises():
    closed = []

    class Failing(Reporter):
        def __init__(self, name):
            self.name = name

        def report(self, split, progress, values):
            pass

        def close(self):
            closed.append(self.name)
            raise OSError(self.name)

    with pytest.raises(OSError, match="second"):
        Reporters([Failing("first"), Failing("second")]).close()
    assert closed == ["first", "second"]

"""Reporters that hand values to a service: each once, whatever happened to the run."""

import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.metrics.reporters.services import mlflow_values, trackio_values, wandb_values
from tests.trained_run import train_script
from textmill.cli.main import main
from textmill.errors import MissingExtraError, UserError
from textmill.metrics.reporters.reporter import Reporters, RunInfo
from textmill.recipes import registries
from textmill.runtime.run_context import Experiment

READ = {"wandb": wandb_values, "mlflow": mlflow_values, "trackio": trackio_values}


@pytest.fixture(params=sorted(READ))
def name(request, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the store that needs no server
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    return request.param


def build(name, folder):
    xp = Experiment(folder=folder, recipe="tiny.py", key="0123456789ab")
    return registries.reporters.get(name).Config().build(xp=xp)


KILLED = """
import json, sys, time
from pathlib import Path
from textmill.recipes import registries
from textmill.metrics.reporters.reporter import RunInfo
from textmill.runtime.run_context import Experiment
from textmill.metrics.reporters import Reporters
xp = Experiment(folder=Path(sys.argv[2]))
names = ("jsonl", sys.argv[1])
reporter = Reporters([registries.reporters.get(name).Config().build(xp=xp) for name in names])
reporter.start(RunInfo())
for step in (10, 20, 30):
    reporter.report("train", {"step": step}, {"loss": 100.0 / step})
    reporter.report("valid", {"step": step}, {"loss": 200.0 / step})
    if step == 20:
        state = reporter.state_dict()
print(json.dumps(state))
print("ready", flush=True)
time.sleep(60)
"""


def test_a_killed_run_goes_on_without_loss_or_repetition(name, tmp_path):
    # Without the service of this process, which other tests may have started: it outlives the kill.
    alone = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    command = [sys.executable, "-c", KILLED, name, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=alone)
    state = json.loads(process.stdout.readline())
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    time.sleep(1)
    resumed = Reporters([build("jsonl", tmp_path), build(name, tmp_path)])
    resumed.load_state_dict(state)
    resumed.start(RunInfo(step=20))
    for step in (30, 40):
        resumed.report("train", {"step": step}, {"loss": 100.0 / step})
        resumed.report("valid", {"step": step}, {"loss": 200.0 / step})
    resumed.end({})
    resumed.close()
    assert READ[name](tmp_path) == {
        "train/loss": [(step, repr(100.0 / step)) for step in (10, 20, 30, 40)],
        "valid/loss": [(step, repr(200.0 / step)) for step in (10, 20, 30, 40)],
    }


def test_values_that_are_no_numbers_arrive(name, tmp_path):
    reporter = build(name, tmp_path)
    reporter.report("valid", {"step": 1}, {"a": math.nan, "b": math.inf, "c": 1e300})
    reporter.close()
    found = READ[name](tmp_path)
    assert [step for values in found.values() for step, _ in values] == [1, 1, 1]
    assert "nan" in found["valid/a"][0][1].lower()
    assert "inf" in found["valid/b"][0][1].lower()
    assert float(found["valid/c"][0][1]) == 1e300


def test_a_line_that_a_crash_cut_off_is_sent_again(name, tmp_path):
    first = build(name, tmp_path)
    first.report("valid", {"step": 1}, {"loss": 1.0})
    first.close()
    file = tmp_path / f"{name}.jsonl"
    lines = file.read_bytes()
    file.write_bytes(lines + b'{"split": "va')
    time.sleep(1.1)  # wandb names its folders by the second
    again = build(name, tmp_path)
    again.start(RunInfo(step=1))
    again.report("valid", {"step": 2}, {"loss": 2.0})
    again.close()
    written = [json.loads(line) for line in file.read_text().splitlines()]
    assert written[-2].pop("digest")
    assert written[-2:] == [{"split": "valid", "step": 2}, {"closed": False}]
    assert READ[name](tmp_path) == {"valid/loss": [(1, "1.0"), (2, "2.0")]}


def test_without_the_package_nothing_starts(name, tmp_path, monkeypatch, capsys):
    found = importlib.util.find_spec
    absent = lambda wanted, *more: None if wanted == name else found(wanted, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", absent)
    missing = (
        f"The reporter '{name}' needs the package '{name}', which is not installed. "
        f"Install it with: pip install 'textmill[{name}]'"
    )
    with pytest.raises(MissingExtraError) as error:
        build(name, tmp_path)
    assert str(error.value) == missing
    words = ["trainer.max_steps=1", f"reporters.also=[{name}]", "--run-dir", str(tmp_path / "run")]
    assert main(["train", "translation/demo", *words]) == 2
    assert missing in capsys.readouterr().err
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_mlflow_must_know_where_to(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(UserError) as error:
        build("mlflow", tmp_path)
    assert str(error.value) == (
        "The reporter 'mlflow' does not know where to report to. Set MLFLOW_TRACKING_URI, "
        "or the setting tracking_uri of the reporter, to the server: http://host:5000"
    )


def test_more_values_than_mlflow_takes_at_once_are_handed_over_in_parts(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    reporter = build("mlflow", tmp_path)
    reporter.start(RunInfo())
    sizes = []
    monkeypatch.setattr(
        reporter._client, "log_batch", lambda _, metrics: sizes.append(len(metrics))
    )
    reporter.report("valid", {"step": 1}, {f"label {i}": 0.5 for i in range(2_345)})
    reporter.close()
    assert sizes == [1_000, 1_000, 345]


def test_names_that_mlflow_refuses_are_mended(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    reporter = build("mlflow", tmp_path)
    reporter.report("valid", {"step": 1}, {"bleu (13a)": 1.0})
    reporter.close()
    assert mlflow_values(tmp_path) == {"valid/bleu _13a_": [(1, "1.0")]}


def test_a_real_run(name, tmp_path, monkeypatch):
    run = train_script(tmp_path, words=(f"reporters.also=[{name}]",))
    if name == "mlflow":
        found = mlflow_values(tmp_path)
        (settings,) = tmp_path.glob("mlruns/*/*/artifacts/settings.json")
        assert json.loads(settings.read_text())["optimizer"]["lr"] == 3e-3
    else:
        found = READ[name](run)
    if name == "trackio":
        import trackio

        title = json.loads((run / "trackio.jsonl").read_text().splitlines()[0])["run"]
        (there,) = [one for one in trackio.Api().runs("textmill") if one.name == title]
        assert there.config["optimizer"]["lr"] == 3e-3
    assert [step for step, _ in found["valid/loss"]] == [2, 4]
    assert [step for step, _ in found["train/lr"]] == [2, 4]


def test_a_run_that_goes_back_has_its_new_values_there_too(name, tmp_path):
    reporter = build(name, tmp_path)
    reporter.report("valid", {"step": 1}, {"loss": 1.0})
    state = reporter.state_dict()
    for step in (2, 3):
        reporter.report("valid", {"step": step}, {"loss": float(step)})
    reporter.load_state_dict(state)
    for step in (2, 3):
        reporter.report("valid", {"step": step}, {"loss": 10.0 * step})
    reporter.close()
    found = READ[name](tmp_path)["valid/loss"]
    assert sorted(found) == [(1, "1.0"), (2, "2.0"), (2, "20.0"), (3, "3.0"), (3, "30.0")]


def test_what_trackio_prints_goes_to_the_log(tmp_path, capsys, caplog):
    with caplog.at_level("DEBUG", "textmill"):
        reporter = build("trackio", tmp_path)
        reporter.report("valid", {"step": 1}, {"loss": 1.0})
        reporter.end({})
        reporter.close()
    assert capsys.readouterr() == ("", "")
    assert any(
        line.startswith("trackio: Created new run: tiny.py 0123") for line in caplog.messages
    )

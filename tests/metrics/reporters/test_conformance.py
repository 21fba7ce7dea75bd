"""What holds for every reporter. A new one is found here by its registration."""

import io
import json
import time

import pytest

from tests.metrics.reporters.services import READ
from textmill.config.component import runtime_parameters
from textmill.metrics.reporters.reporter import Reporter, Reporters, RunInfo
from textmill.metrics.reporters.services import ServiceReporter
from textmill.recipes import registries
from textmill.runtime.devices import Experiment

TRAIN = {"loss": 3.25, "lr": 1e-4, "padding": 0.02}
VALID = {"loss": float("nan"), "perplexity": float("inf"), "bleu": 28.337}
ROWS = [{"row": i, "source": f"s{i}", "prediction": f"p{i} ?"} for i in range(50)]


def progress(step, **time):
    return {"step": step, "total": 40, "epoch": step / 10, "examples": step * 8, "time": time}


OFFLINE = {"wandb": {"mode": "offline"}, "mlflow": {"tracking_uri": "file:{folder}/mlruns"}}


def build(name, folder):
    words = {key: text.format(folder=folder) for key, text in OFFLINE.get(name, {}).items()}
    config = registries.reporters.get(name).Config(**words)
    given = {"xp": Experiment(folder=folder), "stream": io.StringIO()}
    wanted = runtime_parameters(config)
    return config.build(**{k: v for k, v in given.items() if k in wanted})


def steps(reporter, first, last, *, pace):
    for step in range(first, last + 1, 10):
        reporter.tick(progress(step, elapsed=pace * step))
        reporter.report("train", progress(step, elapsed=pace * step, steps_per_second=pace), TRAIN)
        reporter.report("valid", progress(step, elapsed=pace * step), VALID)
        reporter.examples("valid", progress(step), iter(ROWS))


def written(reporter, folder):
    """All that was written, as its readers see it, without what the clock decides."""
    if isinstance(reporter, ServiceReporter):  # values of steps taken again may be there twice
        values = READ[reporter.package](folder, reporter.run)
        return {name: sorted(set(steps)) for name, steps in values.items()}
    return files(folder)


def files(folder):
    """The JSON lines that were written, without what the clock decides."""
    found = {}
    for path in sorted(folder.rglob("*.jsonl")):
        lines = [
            json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()
        ]
        found[str(path.relative_to(folder))] = [
            {key: value for key, value in line.items() if key != "time"} for line in lines
        ]
    return found


@pytest.fixture(params=registries.reporters.names())
def name(request):
    return str(request.param)


def whole(name, folder):
    folder.mkdir()
    reporter = build(name, folder)
    reporter.start(RunInfo())
    steps(reporter, 10, 40, pace=1.0)
    reporter.end({"step": 40})
    reporter.close()
    return written(reporter, folder)


@pytest.mark.parametrize("orderly", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_resumed_run_writes_what_an_undisturbed_one_writes(name, tmp_path, orderly):
    if name == "wandb" and not orderly:
        pytest.skip("one process cannot open a run twice; test_services.py kills another process")
    expected = whole(name, tmp_path / "whole")
    folder = tmp_path / "resumed"
    folder.mkdir()
    killed = build(name, folder)
    killed.start(RunInfo())
    steps(killed, 10, 20, pace=2.0)
    state = json.loads(json.dumps(killed.state_dict(), allow_nan=False))
    steps(killed, 30, 40, pace=2.0)  # after the checkpoint: to be taken back
    if orderly:
        killed.close()
    if name in ("tensorboard", "wandb"):
        time.sleep(1.1)  # they name their files by the second
    resumed = build(name, folder)
    resumed.load_state_dict(state)
    resumed.start(RunInfo(step=20))
    steps(resumed, 30, 40, pace=3.0)
    resumed.end({"step": 40})
    resumed.close()
    killed.close()
    assert written(resumed, folder) == expected


def test_a_start_without_a_checkpoint_leaves_nothing_of_the_killed_one(name, tmp_path):
    expected = whole(name, tmp_path / "whole")
    folder = tmp_path / "again"
    folder.mkdir()
    killed = build(name, folder)
    killed.start(RunInfo())
    steps(killed, 10, 20, pace=1.0)
    killed.close()
    if name == "tensorboard":
        time.sleep(1.1)  # it names its files by the second
    again = build(name, folder)
    again.start(RunInfo())
    steps(again, 10, 40, pace=1.0)
    again.end({"step": 40})
    again.close()
    assert written(again, folder) == expected


def test_building_one_writes_nothing(name, tmp_path):
    reporter = build(name, tmp_path)
    reporter.close()
    reporter.close()
    assert not list(tmp_path.iterdir())


def test_no_setting_is_in_the_key_of_a_run(name):
    from dataclasses import fields

    for field in fields(registries.reporters.get(name).Config):
        assert field.metadata.get("in_key") is False, field.name


def test_a_progress_with_only_a_step_is_enough(name, tmp_path):
    reporter = build(name, tmp_path)
    reporter.start(RunInfo())
    reporter.tick({"step": 1})
    reporter.report("train", {"step": 1}, {"loss": 1.0})
    reporter.report("test", {"step": 1}, {})
    reporter.examples("test", {"step": 1}, [])
    reporter.end({})
    reporter.close()


def test_several_reporters_act_as_one(tmp_path):
    class Count(Reporter):
        """One of a user's own, which needs one method."""

        seen = 0

        def report(self, split, progress, values):
            self.seen += 1

    names, own = registries.reporters.names(), [Count(), Count()]
    together = Reporters([*own, *(build(name, tmp_path) for name in names)])
    together.start(RunInfo())
    steps(together, 10, 20, pace=1.0)
    state = together.state_dict()
    assert list(state) == ["Count", "Count-2", *names]
    assert own[0].seen == 4
    steps(together, 30, 40, pace=1.0)
    together.load_state_dict({"jsonl": state["jsonl"], "removed since": {}})
    together.close()
    lines = files(tmp_path)
    assert [line["step"] for line in lines["metrics.jsonl"]] == [10, 10, 20, 20]
    assert len(lines["predictions/valid-step-00000040.jsonl"]) == len(ROWS)

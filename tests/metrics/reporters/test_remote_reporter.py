"""A service that fails never ends a run, and gets later what it did not take."""

import json
import logging
from contextlib import closing

import pytest

from textmill.config.component import Config as BaseConfig
from textmill.errors import RunError, UserError
from textmill.metrics.reporters import Reporter, Reporters, RunInfo
from textmill.metrics.reporters import remote_reporter as module
from textmill.metrics.reporters.jsonl import JsonLines
from textmill.metrics.reporters.remote_reporter import RemoteReporter
from textmill.metrics.reporters.services import WAITS, Mlflow, Wandb
from textmill.runtime.run_context import Experiment


class Service(RemoteReporter):
    """Keeps what it is given in a list that outlives it."""

    class Config(BaseConfig):
        """It has no settings."""

    service, package, file = "The service", "json", "service.jsonl"

    def __init__(self, config, *, xp, has):
        super().__init__(config, xp=xp)
        self.has, self.broken, self.tries = has, None, 0

    def fail(self):
        self.tries += 1
        if self.broken:
            raise self.broken

    def _begin(self, info, known):
        self.fail()
        return known or "one"

    def _send(self, step, values):
        self.fail()
        self.has.append((step, dict(values)))

    def _finish(self, *, complete):
        self.fail()


class Gathering(Service):
    gathers = True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "clock", clock)
    return clock


def reporters(folder, has, kind=Service):
    xp = Experiment(folder=folder)
    service = kind.Config().build(xp=xp, has=has)
    return service, Reporters([JsonLines.Config().build(xp=xp), service])


def report(reporter, *steps, value=1.0):
    for step in steps:
        reporter.report("valid", {"step": step}, {"loss": value * step})


def taken(*steps, value=1.0):
    return [(step, {"valid/loss": value * step}) for step in steps]


def test_a_failure_is_said_once_and_the_run_goes_on(tmp_path, caplog, clock):
    has = []
    service, together = reporters(tmp_path, has)
    together.start(RunInfo())
    report(together, 1)
    service.broken = ConnectionError("no route\nto host")
    with caplog.at_level(logging.WARNING, "textmill"):
        report(together, 2, 3)
        clock.now += 61
        report(together, 4)
    assert caplog.messages == [
        "The service did not take the values of valid at step 2: no route to host. The run goes "
        "on. What it does not take is tried again later, and is in metrics.jsonl in any case."
    ]
    assert service.tries == 5  # the start, step 1, one try, and after the pause that and another
    assert has == taken(1)
    service.broken = None
    report(together, 5)
    assert has == taken(1)
    clock.now += 61
    report(together, 6)
    together.end({})
    together.close()
    assert has == taken(1, 2, 3, 4, 5, 6)


def refusing(service, *steps):
    """The service does not take the values of these steps, whatever is tried."""
    send = service._send

    def refuse(step, values):
        if step in steps:
            service.tries += 1
            raise ValueError("too large")
        send(step, values)

    service._send = refuse


def test_what_is_never_taken_does_not_hold_up_the_rest(tmp_path, caplog, clock):
    has = []
    service, together = reporters(tmp_path, has)
    together.start(RunInfo())
    refusing(service, 2, 5, 6)
    report(together, 1, 2)
    clock.now += 61
    report(together, 3)
    assert has == taken(1, 3)
    report(together, 4)
    assert has == taken(1, 3, 4)
    report(together, 5, 6)
    clock.now += 61
    report(together, 7)  # 5 and 6 are tried and refused: the service may be away
    assert has == taken(1, 3, 4)
    clock.now += 61
    report(together, 8)  # 5 and 7 are tried, 6 and 8
    assert has == taken(1, 3, 4, 7, 8)
    together.end({})
    together.close()
    assert caplog.messages[:2] == [
        "The service did not take the values of valid at step 2: too large. The run goes on. What "
        "it does not take is tried again later, and is in metrics.jsonl in any case.",
        "The service did not take the values of valid at step 2, but took later ones: too "
        "large. They are set aside, and are in metrics.jsonl in any case.",
    ]


def test_what_was_set_aside_is_tried_again_when_the_run_is_resumed(tmp_path, caplog, clock):
    has = []
    service, together = reporters(tmp_path, has)
    together.start(RunInfo())
    refusing(service, 2)
    report(together, 1, 2)
    clock.now += 61
    report(together, 3)
    together.end({})
    together.close()
    assert caplog.messages[2:] == [
        "1 reports are not at The service; they are in metrics.jsonl, and are handed over when "
        "the run is resumed."
    ]
    _, again = reporters(tmp_path, has)
    again.start(RunInfo(step=3))
    again.close()
    assert has == taken(1, 3, 2)


def test_a_try_that_took_long_is_not_repeated_soon(tmp_path, clock):
    service, together = reporters(tmp_path, [])
    together.start(RunInfo())
    service.broken, fail = TimeoutError(), service.fail

    def slowly():
        clock.now += 30
        fail()

    service.fail = slowly
    report(together, 1)
    clock.now += 299
    report(together, 2)
    assert service.tries == 2
    clock.now += 1
    report(together, 3)
    assert service.tries == 4  # of step 1 again, and of a later one
    service.fail = fail
    together.close()


@pytest.mark.parametrize("kind", [Service, Gathering])
def test_what_was_not_taken_is_taken_at_the_end_or_when_the_run_is_resumed(
    tmp_path, caplog, clock, kind
):
    has = []
    service, together = reporters(tmp_path, has, kind)
    together.start(RunInfo())
    report(together, 1)
    service.broken = ConnectionError("away.")
    report(together, 2, 3)
    state = json.loads(json.dumps(together.state_dict()))
    service.broken = None
    together.end({})
    together.close()
    assert has == taken(1, 2, 3)
    del has[1:]
    (tmp_path / "service.jsonl").write_text(
        '{"run": "one"}\n{"split": "valid", "step": 1}\n{"closed": false}\n'
    )
    _, again = reporters(tmp_path, has, kind)
    again.load_state_dict(state)
    again.start(RunInfo(step=3))
    report(again, 4)
    again.close()
    assert has == taken(1, 2, 3, 4)


def test_what_is_not_taken_in_the_end_is_counted(tmp_path, caplog, clock):
    service, together = reporters(tmp_path, [])
    together.start(RunInfo())
    report(together, 1)
    service.broken = OSError("away")
    report(together, 2, 3)
    together.end({})
    together.close()
    assert caplog.messages[1:] == [
        "2 reports are not at The service; they are in metrics.jsonl, and are handed over when "
        "the run is resumed."
    ]
    assert '"closed"' not in (tmp_path / "service.jsonl").read_text()


def test_a_failing_end_does_not_hide_the_error_that_ended_the_run(tmp_path, caplog):
    service, together = reporters(tmp_path, [])
    together.start(RunInfo())
    service.broken = RuntimeError("gone")
    with pytest.raises(ZeroDivisionError), closing(together):
        _ = 1 / 0
    assert caplog.messages == [
        "The service did not take the end of the run: gone. The run goes on. What it does not "
        "take is tried again later, and is in metrics.jsonl in any case."
    ]


def test_a_run_that_goes_back_hands_over_what_replaces_its_values_only(tmp_path):
    has = []
    service, together = reporters(tmp_path, has)
    together.start(RunInfo())
    report(together, 1, 2)
    state = json.loads(json.dumps(together.state_dict()))
    report(together, 3, 4)
    together.load_state_dict(state)
    assert service.shift == 2
    report(together, 3, value=3.0)
    report(together, 4)  # by chance as before
    together.close()
    assert has == [*taken(1, 2, 3, 4), *taken(3, value=3.0)]
    again, _ = reporters(tmp_path, has)
    again.start(RunInfo())
    assert again.shift == 2
    report(again, 3, value=3.0)
    again.close()
    assert len(has) == 5


def test_what_waits_is_dropped_when_the_run_goes_back(tmp_path):
    has = []
    service, together = reporters(tmp_path, has)
    together.start(RunInfo())
    report(together, 1)
    state = together.state_dict()
    service.broken = OSError("away")
    report(together, 2)
    together.load_state_dict(state)
    service.broken = None
    together.end({})
    together.close()
    assert has == taken(1)


def test_a_damaged_line_is_passed_over(tmp_path):
    (tmp_path / "service.jsonl").write_text('{"run": "one"}\nnot json\n[1]\n')
    service, _ = reporters(tmp_path, [])
    service.start(RunInfo())
    service.close()


@pytest.mark.parametrize("kind", [Wandb, Mlflow])
def test_a_service_that_takes_no_run_ends_its_start(tmp_path, monkeypatch, kind):
    tried = []

    def refuse(*_, **__):
        tried.append(1)
        raise ValueError("the name is in use" if kind is Wandb else "no such experiment")

    monkeypatch.setattr("wandb.init", refuse)
    monkeypatch.setattr("mlflow.tracking.MlflowClient.__init__", refuse)
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    with pytest.raises(RunError) as error:
        kind.Config().build(xp=Experiment(folder=tmp_path)).start(RunInfo())
    why = "the name is in use" if kind is Wandb else "no such experiment"
    assert str(error.value) == (
        f"{kind.service} takes no run: {why}. Mend that, or start without the reporter "
        f"{kind.service.lower() if kind is Mlflow else 'wandb'}; the values are in metrics.jsonl "
        "in any case."
    )
    assert slept == (list(WAITS) if kind is Wandb else [])
    assert len(tried) == len(slept) + 1


def test_an_error_of_textmills_own_is_not_explained_twice(tmp_path):
    service, _ = reporters(tmp_path, [])
    service.broken = UserError("Set the project.")
    with pytest.raises(UserError, match=r"^Set the project\.$"):
        service.start(RunInfo())


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

import signal
import subprocess
import sys
import time

import pytest

from textmill.runtime.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_remembered_and_handlers_come_back(number):
    before = signal.getsignal(number)
    with StopSignals() as stop:
        assert stop.received is None
        signal.raise_signal(number)
        assert stop.received == number
    assert signal.getsignal(number) is before


def test_the_second_interrupt_raises():
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert stop.received == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_forked_worker_dies_of_sigterm_and_ignores_sigint():
    code = """
import os, signal, time
from textmill.runtime.signals import StopSignals
with StopSignals() as stop:
    child = os.fork()
    if child == 0:
        print("up", flush=True)
        time.sleep(1)
        time.sleep(60)
        os._exit(3)
    time.sleep(0.3)
    os.kill(child, signal.SIGINT)
    time.sleep(0.1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status), stop.received)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "up\n15 None\n"


CHILD = """
import os, pathlib, signal, time
from textmill.errors import RunStoppedError
from textmill.runtime.signals import StopSignals, stop_without_parent
stop_without_parent()
try:
    with StopSignals():
        raise RunStoppedError(signal.SIGTERM, "saved")
except RunStoppedError:
    pathlib.Path("stopped").touch()
    time.sleep(3)  # the watch looks once a second
    pathlib.Path("written").touch()
"""


def test_a_stopped_run_without_its_parent_has_time_to_write_down_its_end(tmp_path):
    starts = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {CHILD!r}]).wait()"
    parent = subprocess.Popen([sys.executable, "-c", starts], cwd=tmp_path)
    until = time.monotonic() + 60
    while not (tmp_path / "stopped").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    while not (tmp_path / "written").exists():
        assert time.monotonic() < until
        time.sleep(0.05)

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from textmill.errors import InUseError
from textmill.runtime.lock import Lock, owner_of

HOLD = """
import sys, os
from pathlib import Path
from textmill.runtime.lock import Lock
with Lock(Path(sys.argv[1])):
    if len(sys.argv) > 2 and os.fork() == 0:
        import time
        print("locked", flush=True)
        time.sleep(60)
    if len(sys.argv) == 2:
        print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(folder, *extra):
    """Another process that holds the lock of a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *extra],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "locked\n"
    with process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_second_process_is_told_who_works_here(tmp_path):
    with held(tmp_path) as process:
        with pytest.raises(InUseError) as caught, Lock(tmp_path):
            pass
        assert str(caught.value) == (
            f"{tmp_path} is in use by {socket.gethostname()}:{process.pid}. Wait for it to end or "
            f"stop it, or choose another folder with run_dir."
        )
    with Lock(tmp_path):  # killed: the lock is free, the file is stale
        assert (tmp_path / "lock").read_text() == f"{socket.gethostname()}:{os.getpid()}\n"


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    with held(tmp_path, "fork") as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with Lock(tmp_path):
            pass


def test_a_lock_file_that_is_deleted_lets_nobody_in(tmp_path):
    with held(tmp_path) as process:
        assert owner_of(tmp_path) == f"{socket.gethostname()}:{process.pid}"
        (tmp_path / "lock").unlink()
        assert owner_of(tmp_path) == "another process"
        with pytest.raises(InUseError, match="is in use by another process"), Lock(tmp_path):
            pass
        os.mkfifo(tmp_path / "new")
        (tmp_path / "new").replace(tmp_path / "lock")
        assert owner_of(tmp_path) == "another process"  # and a pipe does not hang
    assert owner_of(tmp_path) is None

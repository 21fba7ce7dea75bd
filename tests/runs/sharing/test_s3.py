"""Push and pull with ``s3fs`` against moto's server; skipped where these packages are not.

``pip install 'moto[server]' s3fs``, then ``pytest -m "" tests/runs/sharing/test_s3.py``.
"""

import os
import shutil
from pathlib import Path

import pytest

import textmill
from tests.runs.sharing.test_push_and_pull import TEXT, killed_when
from textmill.cli.main import main
from textmill.runs.sharing.pushed import LISTED, UNDER_WAY, Pushed

pytestmark = pytest.mark.slow
LARGE = "pretrained/large.bin"


@pytest.fixture
def bucket(monkeypatch):
    server = pytest.importorskip("moto.server", reason="needs moto[server]")
    s3fs = pytest.importorskip("s3fs")
    made = server.ThreadedMotoServer(port=0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem()
    files.mkdir("models")
    yield files
    made.stop()


def test_s3_has_the_whole_or_nothing_and_goes_on(bucket, run, tmp_path, capsys):
    (run / "pretrained").mkdir()
    (run / LARGE).write_bytes(os.urandom(1 << 20) * 60)
    place, out = "s3://models/topics", tmp_path / "pulled"
    there = f"models/topics/{UNDER_WAY}"

    def has_begun():
        bucket.invalidate_cache()
        try:
            return len(Pushed.from_bytes(bucket.cat_file(there)).files) > 3
        except FileNotFoundError:
            return False

    assert killed_when(["push", str(run), place], has_begun, pause=0.2)
    bucket.invalidate_cache()
    assert not bucket.exists(f"models/topics/{LISTED}")
    assert main(["pull", place, str(out)]) == 1
    assert "has not ended" in capsys.readouterr().err
    assert main(["push", str(run), place]) == 0
    half = tmp_path / ".pulled.part" / LARGE
    asked = ["pull", place, str(out)]
    assert killed_when(asked, lambda: half.exists() and half.stat().st_size > 1 << 23)
    assert not out.exists()
    assert main(asked) == 0
    assert textmill.load(out)(TEXT) == textmill.load(run)(TEXT)
    bucket.pipe_file(f"models/topics/{LARGE}", b"cut")
    shutil.rmtree(out)
    assert main(asked) == 1
    assert "is not as it was pushed" in capsys.readouterr().err
    assert not Path(out).exists()
    assert main(["pull", "s3://models/never", str(out)]) == 1
    assert main(["push", str(run), "s3://no-bucket/x"]) == 1
    assert "no such place" in capsys.readouterr().err

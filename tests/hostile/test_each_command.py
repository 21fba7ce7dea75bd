"""Folders of strangers, and every command that takes one: refused with the reason, or no matter.

Nothing runs, nothing is written elsewhere, no bug is called one, and a command that answers gives
the answer of the folder as it was. Each has a second of CPU and 256 MB besides its imports.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.each_command import EXPORT, RUN, RUN_PAYLOADS
from tests.hostile.payloads_export import EXPORT_PAYLOADS
from tests.hostile.small_run import small_run
from tests.trained_run import library_run
from textmill.runs.export import export

ROOT = Path(__file__).parents[2]
QUICK = 10
"""In a quick run of the tests, each of so many payloads meets one command."""


def pairs(payloads, commands, *, every):
    """Each payload with one command, the commands in turn; of the slow run, with all."""
    turns = [*commands]
    if every:
        return [(command, payload) for command in turns for payload in payloads]
    chosen = [*payloads][::QUICK]
    return [(turns[i % len(turns)], payload) for i, payload in enumerate(chosen)]


def findings(base, kind, tried):
    """What a process of its own found, a line each."""
    asked = json.dumps({"base": str(base), "kind": kind, "tried": tried})
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.each_command"],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(base, kind, tried):
    found = findings(base, kind, tried)
    good, others = (
        [each for each in found if (each["payload"] is None) is is_good]
        for is_good in (True, False)
    )
    assert len(others) == len(tried)
    assert all(each["code"] == 0 for each in good), good
    wrong = [
        f"{each['command']}, {each['payload']}: {'; '.join(each['problems'])}\n"
        f"    {each.get('said', '')[-400:]}"
        for each in others
        if each["problems"]
    ]
    assert not wrong, f"{len(wrong)} of {len(others)}:\n" + "\n".join(wrong)
    assert sum(each["code"] != 0 for each in others) > len(others) / 4


@pytest.fixture(scope="module", params=["onnx", "ctranslate2"])
def exported(request, tmp_path_factory):
    run = {"onnx": small_run, "ctranslate2": library_run}[request.param]()
    out = tmp_path_factory.mktemp("exported") / "out"
    return export(run, request.param, out=out).folder


def test_there_are_enough_kinds():
    assert len(RUN_PAYLOADS) >= 300
    assert len(EXPORT_PAYLOADS) >= 150


def test_a_run_of_a_stranger():
    check(library_run(), "run", pairs(RUN_PAYLOADS, RUN, every=False))


@pytest.mark.slow
@pytest.mark.parametrize("command", RUN)
def test_every_run_of_a_stranger(command):
    check(library_run(), "run", pairs(RUN_PAYLOADS, [command], every=True))


def test_an_export_of_a_stranger(exported):
    check(exported, "export", pairs(EXPORT_PAYLOADS, EXPORT, every=False))


@pytest.mark.slow
@pytest.mark.parametrize("command", EXPORT)
def test_every_export_of_a_stranger(exported, command):
    check(exported, "export", pairs(EXPORT_PAYLOADS, [command], every=True))

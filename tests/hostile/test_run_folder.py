"""Run folders from a stranger: an error of ours or a harmless answer, and never anything else.

Each payload changes a copy of a trained run as an attacker would, digests recomputed. Loading it
must execute nothing, write nothing, and end within a second and little memory.
"""

import re
import resource
import time
from contextlib import suppress

import pytest

import tests.hostile.payloads_checkpoint
import tests.hostile.payloads_settings
import tests.hostile.payloads_text  # noqa: F401  # each adds its payloads
import textmill
from tests.hostile.folder import PAYLOADS, module_says, reseal, snapshot, task_says
from tests.trained_run import edited, library_run
from textmill.errors import TextmillError

SECONDS = 1.0
"""Of CPU: the machine's other work does not count."""
MEGABYTES = 256

HARMLESS = {
    "modules that shadow the library's",
    "module: feed-forward",  # every block has its own in the record, and that one counts
    "module: offset",
    "config: a recipe elsewhere",  # never looked at: the module and the task are the library's
    "best.json: above",
    "best.json: absolute",
    "best.json: NUL",
    "best.json: missing",
    "best.json: a link",
    "last.json: above",
    "last.json: absolute",
    "last.json: NUL",
    "last.json: missing",
    "last.json: a link",
    "run.json: a pipe",
    "run.json: surrogates",
    "task: length huge",
    "task: length added",
    "task: source length",
    "task: smoothing NaN",
}
"""Payloads that may load: what they say changes nothing, or only the next line of a log."""


MEANT = re.compile(r"^manifest: (a name|deep|larger|many)")
"""Payloads that a digest may refuse; any other has to be refused for what it says."""


def test_there_are_enough_payloads():
    assert len(PAYLOADS) >= 150
    assert set(PAYLOADS) >= HARMLESS


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """The first load imports torch and all of textmill; that is not what is timed."""
    textmill.load(library_run())("Go.")


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_hostile_folder_does_nothing(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PAYLOADS[name](run)
    if (run / "config.yaml").is_file():
        with suppress(ValueError):  # what is no text has no seal
            edited(run)
    before = snapshot(tmp_path)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        predictor = textmill.load(run)
    except TextmillError as error:
        seconds = time.process_time() - start
        message = str(error)
        assert 20 < len(message) < 5_000, message
        assert MEANT.search(name) or not re.search("sha256|digest", message), message
    else:
        seconds = time.process_time() - start
        assert name in HARMLESS, f"{name} was loaded"
        assert isinstance(predictor("Go.").text, str)
        long = list(predictor.stream(["The cat sleeps. " * 40]))
        assert len(long) == 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert seconds < SECONDS
    assert grown < MEGABYTES, f"{grown:.0f} MB"
    assert snapshot(tmp_path) == before
    assert not list(tmp_path.rglob("CANARY"))


def test_a_resealed_folder_is_good(run, caplog):
    """The control: what the payloads do besides their change is not what is refused."""
    expected = textmill.load(run)("Go.")
    reseal(run)
    module_says(run, "dropout: 0.1")
    task_says(run, "beam_size: 1")
    edited(run)
    assert textmill.load(run)("Go.") == expected
    assert caplog.messages == []


DATA = {
    "an import path": "type: '@os.system'",
    "a dotted path": "type: os.system",
    "a task": "type: translation",
    "a tokenizer": "type: multilingual",
    "a device": "path: /dev/zero",
    "a folder": "path: /etc",
    "a home": "path: ~/x",
    "NUL": 'path: "a\\0b"',
    "a huge budget": "max_tokens: 1" + "0" * 5000,
    "a column elsewhere": "columns: {source: 99999999999, target: 0}",
    "no columns": "columns: []",
}


@pytest.mark.parametrize("name", DATA)
def test_hostile_data_settings_are_refused_by_an_evaluation(run, name, tmp_path):
    line = DATA[name]
    (tmp_path / "dev.tsv").write_text("Go.\tVa !\n")
    settings = {"type": "text_pairs", "path": str(tmp_path / "dev.tsv")}
    key, _, value = line.partition(": ")
    text = "".join(f"    {k}: {v}\n" for k, v in {**settings, key: value}.items())
    path = run / "config.yaml"
    top, _, rest = path.read_text().partition("  valid_data:\n")
    after = rest.partition("  trainer:\n")[2]
    path.write_text(f"{top}  valid_data:\n{text}  trainer:\n{after}")
    edited(run)
    before = snapshot(tmp_path)
    with pytest.raises(TextmillError):
        textmill.evaluate(run)
    assert snapshot(tmp_path) == before

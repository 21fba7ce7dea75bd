"""Run folders and exports of strangers: refused with the reason, or no matter.

Nothing in them runs, nothing is written or deleted, and what answers answers as if untouched.
"""

import re
import shutil
from contextlib import suppress

import pytest

import textmill
import textmill.exported
import textmill.serving.server
from tests.hostile.folder import reseal, snapshot
from tests.hostile.payloads import EXPORTS, RUNS, sets
from tests.hostile.small_run import small_run
from tests.trained_run import copy_of, edited, library_run
from textmill.cli.main import main
from textmill.errors import TextmillError
from textmill.runs.export import export

HARMLESS = re.compile(r"modules that shadow|(best|last)\.json: ")
"""Of these a run answers as ever: nothing is asked of what they change."""
UNREAD = ("a module that shadows", "a pickle more", "the manifest has answers of code")
"""Of these an export answers as ever; the last is not read where CTranslate2 searches."""
MEANT = re.compile(r"^manifest: (a name|deep|files)")
"""Payloads that a digest may refuse; any other is refused for what it says."""


def unharmed(folder, before):
    assert snapshot(folder) == before
    assert not list(folder.rglob("CANARY"))


def sealed(run):
    if (run / "config.yaml").is_file():
        with suppress(ValueError):  # what is no text has no seal
            edited(run)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_does_nothing_of_its_own(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RUNS[name](run)
    sealed(run)
    before = snapshot(tmp_path)
    if HARMLESS.search(name):
        assert textmill.load(run)("Go.") == textmill.load(library_run())("Go.")
    else:
        with pytest.raises(TextmillError) as refused:
            textmill.load(run)
        message = str(refused.value)
        assert 20 < len(message) < 5_000, message
        assert MEANT.search(name) or not re.search("sha256|digest", message), message
    unharmed(tmp_path, before)


def test_a_resealed_run_is_good(run, caplog):
    """The control: what the payloads do besides their lie is not what is refused."""
    expected = textmill.load(run)("Go.")
    reseal(run)
    sets(run, "module", "dropout: 0.1")
    sets(run, "task", "beam_size: 1")
    edited(run)
    assert textmill.load(run)("Go.") == expected
    assert caplog.messages == []


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """An export of each kind, with a text of its task and the answer."""
    out = tmp_path_factory.mktemp("exports")
    made = {
        "onnx": (export(small_run(), "onnx", out=out / "onnx").folder, "a b ham"),
        "ctranslate2": (export(library_run(), "ctranslate2", out=out / "ct2").folder, "Go."),
    }
    return {
        kind: (folder, text, textmill.exported.load(folder, device="cpu", threads=1)(text))
        for kind, (folder, text) in made.items()
    }


@pytest.mark.parametrize("kind", ["onnx", "ctranslate2"])
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_does_nothing_of_its_own(exports, kind, name, tmp_path, monkeypatch):
    base, text, answer = exports[kind]
    monkeypatch.chdir(tmp_path)
    folder = copy_of(base, tmp_path / "export")
    EXPORTS[name](folder)
    before = snapshot(tmp_path)
    try:
        found = textmill.exported.load(folder, device="cpu", threads=1)(text)
    except TextmillError as refused:
        found = refused
    if isinstance(found, TextmillError):
        assert 20 < len(str(found)) < 5_000
    else:
        assert name in UNREAD
        assert found == answer
    unharmed(tmp_path, before)


COMMANDS = (
    "predict it rows.txt",
    "evaluate it valid_data.path=dev.tsv",
    "export it --format ctranslate2",
    "serve it --port 0",
    "runs verify it",
    "runs list .",
    "runs compare it it",
    "train it trainer.max_steps=6",
)


@pytest.mark.parametrize(
    "name",
    [
        "manifest: a name above",
        "a link: text",
        "model.safetensors is a pickle",
        "state.json is deep",
        "config.yaml: a call",
        "config.yaml: what a terminal obeys",
        "module: type: '@os.system'",
        "run.json: deep",
        "text.json names code",
    ],
)
def test_every_command_refuses_it_in_words(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(textmill.serving.server, "serve", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.txt").write_text("Go.\n")
    (tmp_path / "dev.tsv").write_text("Go.\tVa !\n")
    for command in COMMANDS:
        run = tmp_path / "it"
        shutil.rmtree(run, ignore_errors=True)
        RUNS[name](copy_of(library_run(), run))
        sealed(run)
        before = snapshot(tmp_path)
        code = main(command.split())
        said = "".join(capsys.readouterr())
        assert code in (0, 1, 2), f"{command}: {said}"
        assert "--debug" not in said
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", said)
        assert not list(tmp_path.rglob("CANARY"))
        if not command.startswith("train"):  # which may keep a log of what it refuses
            assert snapshot(tmp_path) == before, command
        for outside in tmp_path.glob("outside*"):
            shutil.rmtree(outside)
    assert code, "a run of a stranger is not gone on with"


DATA = {
    "an import path": ("type", "'@os.system'"),
    "a task": ("type", "translation"),
    "a device": ("path", "/dev/zero"),
    "a folder": ("path", "/etc"),
    "NUL": ("path", '"a\\0b"'),
    "a huge budget": ("max_tokens", "1" + "0" * 5000),
    "a column elsewhere": ("columns", "{source: 99999999999, target: 0}"),
}


@pytest.mark.parametrize("name", DATA)
def test_settings_of_data_are_refused_by_an_evaluation(run, name, tmp_path):
    (tmp_path / "dev.tsv").write_text("Go.\tVa !\n")
    settings = {"type": "text_pairs", "path": str(tmp_path / "dev.tsv"), **dict([DATA[name]])}
    text = "".join(f"    {key}: {value}\n" for key, value in settings.items())
    path = run / "config.yaml"
    top, _, rest = path.read_text().partition("  valid_data:\n")
    after = rest.partition("  trainer:\n")[2]
    path.write_text(f"{top}  valid_data:\n{text}  trainer:\n{after}")
    edited(run)
    before = snapshot(tmp_path)
    with pytest.raises(TextmillError):
        textmill.evaluate(run)
    unharmed(tmp_path, before)

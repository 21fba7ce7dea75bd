"""An export is verified before it is opened; a changed one is refused and not run."""

import hashlib
import json
import os
import sys
from types import SimpleNamespace

import pytest
import torch

import textmill
from tests.trained_run import PAIRS, library_run
from textmill.cli.main import main
from textmill.errors import DataError, MissingExtraError, UserError
from textmill.exported import load
from textmill.exported.formats import ExportFormat
from textmill.exported.manifest import MANIFEST, ExportError, seal_folder
from textmill.exported.seq2seq import Search
from textmill.models.decoding import Decoding

TEXTS = [
    *(source for source, _ in PAIRS), "", "   ", "👩‍👩‍👧‍👦", "漢字仮名交じり文",
    "a\tb", "<pad> <s> </s>",
]  # fmt: skip


@pytest.fixture(scope="module")
def model(exported):
    return load(exported, device="cpu", threads=1)


@pytest.fixture(scope="module")
def predictor():
    return textmill.load(library_run())


def test_odd_texts_are_answered_as_the_run_does(model, predictor):
    ours, theirs = model(TEXTS), predictor(TEXTS)
    assert [a.text for a in ours] == [a.text for a in theirs]
    assert [a.score for a in ours] == pytest.approx([a.score for a in theirs], abs=1e-5)
    assert type(ours[0]) is type(theirs[0])
    assert model([]) == []


def test_a_stream_has_an_error_row_in_its_place(model, predictor):
    rows = ["Go.", "x" * 10_000, {"text": "Go."}, {"source": "Go.", "prefix": "Va " * 99}, "\ud800"]
    found = list(model.stream([*rows, "Go."], size=2))
    assert found[0] == found[-1] == next(predictor.stream(["Go."]))
    wanted = [
        "longer than the 64 tokens",
        "'source' is missing",
        "has 297 tokens",
        "surrogate pair",
    ]
    assert all(map(str.__contains__, [row["error"] for row in found[1:-1]], wanted))
    with pytest.raises(DataError, match=r"^Row 1, column 'source': has \d+ tokens; .* at most 64"):
        model(["Go.", "The cat sleeps. " * 100])


@pytest.mark.parametrize(
    ("a", "b", "longest"), [(2.0, 10, 64), (0.3, 1, 5), (1e9, 7, 30), (0, 99, 9)]
)
def test_limits_are_as_in_decoding(a, b, longest):
    ours = Search(max_length=longest, max_length_a=a, max_length_b=b)
    lengths = torch.arange(1, 200)
    theirs = Decoding(max_length_a=a, max_length_b=b).limits(
        torch.zeros(199, 1), lengths, longest=longest
    )
    assert [ours.limit(n) for n in lengths.tolist()] == theirs.tolist()


def test_the_extra_that_brings_what_runs_a_graph_is_named(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingExtraError, match=r"'ctranslate2', .*'textmill\[exported\]'"):
        load(exported)


def test_an_export_has_no_checkpoint_to_choose(exported, capsys):
    assert main(["predict", str(exported), "--checkpoint", "last"]) == 2
    assert "which holds one checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content"), [("rows.tsv", "Go.\n"), ("rows.jsonl", '{"source": "Go."}\n')]
)
def test_an_export_of_a_run_without_files_of_columns_reads_what_its_model_reads(
    folder, tmp_path, capsys, name, content, monkeypatch
):
    resealed(folder, source={"recipe": "tiny", "key": "", "checkpoint": ""})
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(content)
    assert main(["predict", str(folder), name, "--json", "--device", "cpu"]) == 0
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert line["source"] == "Go."


def test_what_is_no_device_or_no_export_is_refused(exported, tmp_path):
    with pytest.raises(UserError, match=r"CTranslate2 runs on cpu or cuda; .* mps"):
        load(exported, device="mps")
    with pytest.raises(UserError, match=r"is no export: it has no export\.json"):
        load(tmp_path)


# --- a hostile hand -----------------------------------------------------------------------------


def flip(path, place=100):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def resealed(folder, **facts):
    """The manifest with other facts and a digest that fits: what a stranger can write."""
    path = folder / MANIFEST
    content = json.loads(path.read_bytes())
    del content["digest"]
    content |= facts
    body = json.dumps(content, indent=1).encode().removesuffix(b"\n}")
    digest = hashlib.sha256(body).hexdigest()
    path.write_bytes(body + f',\n "digest": "{digest}"\n}}\n'.encode())


def replaced(path, make):
    path.unlink()
    make(path)


GOOD = {"size": 1, "sha256": "0" * 64}
BIN, TEXT = "graph/model.bin", "text/text.json"
DAMAGES = {
    "a byte of the graph": (lambda f: flip(f / BIN), f"{BIN}: sha256 differs ("),
    "a byte of the manifest": (lambda f: flip(f / MANIFEST), "its own digest does not fit"),
    "a file missing": (lambda f: (f / "graph/config.json").unlink(), "graph/config.json: missing"),
    "a longer file": (lambda f: (f / TEXT).write_bytes(b" " * 999), f"{TEXT}: 999 bytes instead"),
    "a foreign file": (lambda f: (f / "graph/more.json").touch(), "'graph/more.json': not listed"),
    "a link": (lambda f: replaced(f / BIN, lambda p: p.symlink_to("/etc")), "a symbolic link"),
    "a pipe": (lambda f: replaced(f / BIN, os.mkfifo), f"{BIN}: not a regular file"),
    "a huge manifest": (
        lambda f: (f / MANIFEST).write_bytes(b" " * (1 << 20) + b"{}"),
        "1,048,578",
    ),
    "another format": (lambda f: resealed(f, format_version=2), "has format_version 2, and this"),
    "a path outside": (
        lambda f: resealed(f, files={"../secret": GOOD}),
        "'../secret' is not a name",
    ),
    "an unknown key": (lambda f: resealed(f, code="import os"), "missing or unknown: code"),
    "no mapping": (lambda f: resealed(f, search=[]), "export.json: 'search' must be a mapping"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_was_changed_is_refused(folder, name, monkeypatch):
    damage, error = DAMAGES[name]
    damage(folder)
    monkeypatch.setattr(ExportFormat, "open", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(ExportError) as caught:
        load(folder)
    assert str(caught.value).startswith(f"{folder} is no export that can be used: ")
    assert error in str(caught.value)


@pytest.mark.parametrize("part", ["search", "answers"])
def test_a_search_that_is_described_otherwise_is_refused(folder, part):
    resealed(folder, **{part: {"code": "x"}})
    with pytest.raises(ExportError, match=rf"{MANIFEST}: .*'code'"):
        load(folder, device="cpu", threads=1)


def test_a_graph_of_another_program_is_refused(folder):
    resealed(folder, graph="tflite")
    with pytest.raises(ExportError, match=r"runs graphs of ctranslate2, onnx, not 'tflite'\.$"):
        load(folder)


def test_a_graph_that_gives_what_is_no_id_is_an_error(exported, monkeypatch):
    model = load(exported, device="cpu", threads=1)
    found = SimpleNamespace(hypotheses=[["no id"]], scores=[-1.0])
    waiting = SimpleNamespace(result=lambda: found)
    graph = SimpleNamespace(translate_batch=lambda sources, **_: [waiting] * len(sources))
    monkeypatch.setattr(model.graph, "program", graph)
    with pytest.raises(ExportError, match=r"^CTranslate2 cannot answer with this graph: .*'no id'"):
        model("Go.")


def test_a_graph_that_was_cut_by_a_stranger_is_an_error(folder):
    path = folder / "graph/model.bin"
    path.write_bytes(path.read_bytes()[:2_000])
    facts = json.loads((folder / MANIFEST).read_bytes())
    (folder / MANIFEST).unlink()
    del facts["digest"], facts["format_version"], facts["files"]
    seal_folder(folder, facts)
    with pytest.raises(ExportError, match="CTranslate2 cannot use this graph: "):
        load(folder)

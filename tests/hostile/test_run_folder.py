"""Run folders from a stranger: an error of ours or a harmless answer, and never anything else.

Each payload changes a copy of a trained run as an attacker would, digests recomputed. Loading it
must execute nothing, write nothing, and end within a second and little memory.
"""

import hashlib
import json
import os
import re
import resource
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from tests.trained_run import library_run
from weft.checkpoint.manifest import seal
from weft.errors import WeftError

SECONDS = 1.0
"""Of CPU: the machine's other work does not count."""
MEGABYTES = 256

Payload = Callable[[Path], None]
PAYLOADS: dict[str, Payload] = {}


def payload(name: str) -> Callable[[Payload], Payload]:
    def add(change: Payload) -> Payload:
        assert name not in PAYLOADS, name
        PAYLOADS[name] = change
        return change

    return add


def many(prefix: str, cases: dict[str, str], change: Callable[[Path, str], None]) -> None:
    for name, content in cases.items():
        payload(f"{prefix}: {name}")(lambda run, content=content: change(run, content))


# -- what an attacker does to a folder


def steps(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("step-*"))


def reseal(run: Path) -> None:
    """Recomputes every digest, so that only what a file says can give it away."""
    for step in steps(run):
        manifest = json.loads((step / "manifest.json").read_text())
        manifest.pop("digest")
        for name in list(manifest["files"]):
            path = step / name
            if path.is_file():
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                manifest["files"][name] = {"size": path.stat().st_size, "sha256": digest}
        (step / "manifest.json").write_bytes(seal(manifest))
    repoint(run)


def repoint(run: Path) -> None:
    """Points best and last to their folders' manifests as they are now."""
    for name in ("best.json", "last.json"):
        path = run / "checkpoints" / name
        pointer = json.loads(path.read_text())
        pointer.pop("digest")
        data = (run / "checkpoints" / pointer["folder"] / "manifest.json").read_bytes()
        pointer["manifest_sha256"] = hashlib.sha256(data).hexdigest()
        path.write_bytes(seal(pointer))


def in_each(run: Path, file: str, content: bytes | Callable[[bytes], bytes]) -> None:
    for step in steps(run):
        path = step / file
        path.write_bytes(content(path.read_bytes()) if callable(content) else content)
    reseal(run)


def built(run: Path, old: str, new: str) -> None:
    """Changes the record that the model is rebuilt from."""
    path = run / "config.yaml"
    settings, mark, record = path.read_text().partition("\nbuilt:")
    assert old in record
    path.write_text(settings + mark + record.replace(old, new))


def module_says(run: Path, line: str) -> None:
    """Changes one setting of the rebuilt module, all where it stands."""
    name = line.partition(":")[0]
    path = run / "config.yaml"
    top, mark, record = path.read_text().partition("\n  module:")
    lines = record.splitlines()
    at = next(i for i, text in enumerate(lines) if text.startswith(f"    {name}:"))
    lines[at] = f"    {line}"
    path.write_text(top + mark + "\n".join(lines) + "\n")


def block_says(run: Path, line: str) -> None:
    """Changes the first setting of that name in a block of the rebuilt module."""
    name = line.partition(":")[0]
    path = run / "config.yaml"
    top, mark, record = path.read_text().partition("\n  module:")
    before, blocks, record = record.partition("\n    encoder:")
    lines = record.splitlines()
    at = next(i for i, text in enumerate(lines) if text.strip().startswith(f"{name}:"))
    indent = len(lines[at]) - len(lines[at].lstrip())
    lines[at] = " " * indent + line
    path.write_text(top + mark + before + blocks + "\n".join(lines) + "\n")


def task_says(run: Path, line: str) -> None:
    name = line.partition(":")[0]
    path = run / "config.yaml"
    top, mark, record = path.read_text().rpartition("\n  task:")
    lines = record.splitlines()
    at = next(i for i, text in enumerate(lines) if text.strip().startswith(f"{name}:"))
    indent = len(lines[at]) - len(lines[at].lstrip())
    lines[at] = " " * indent + line
    path.write_text(top + mark + "\n".join(lines) + "\n")


# -- config.yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)
CANARY_CODE = "open('CANARY', 'w').write('x')"
CONFIGS = {
    "aliases that grow": BOMB,
    "an alias to itself": "built: &a {module: *a}\n",
    "merge keys": "a: &a {type: transformer}\nbuilt: {module: {<<: *a}}\n",
    "python/object/apply": f'built: !!python/object/apply:builtins.exec ["{CANARY_CODE}"]\n',
    "python/object/new": "built: !!python/object/new:os.system ['touch CANARY']\n",
    "python/name": "built: {module: {type: !!python/name:os.system ''}}\n",
    "python/module": "built: !!python/module:antigravity ''\n",
    "a binary tag": "built: {module: {type: !!binary dHJhbnNmb3JtZXI=}}\n",
    "nested lists": "built: " + "[" * 100_000,
    "nested mappings": "built: " + "{a: " * 100_000,
    "nested blocks": "\n".join(" " * i + "a:" for i in range(1000)),
    "larger than a file of settings": "a: " + "x" * 2_000_000,
    "many keys": "".join(f"k{i}: {i}\n" for i in range(50_000)),
    "empty": "",
    "a word": "transformer",
    "a list": "- built\n",
    "two documents": "built: {}\n---\nbuilt: {}\n",
    "a key twice": "built: {}\nbuilt: {}\n",
    "no built": "recipe: recipe.py\n",
    "built is a word": "built: '@os.system'\n",
    "built is null": "built: null\n",
    "module is an import path": "built: {module: '@os.system', task: {type: translation}}\n",
    "module is a list": "built: {module: [1, 2], task: {type: translation}}\n",
    "type is a list": "built: {module: {type: [a]}, task: {type: translation}}\n",
    "type is a mapping": "built: {module: {type: {type: x}}, task: {type: translation}}\n",
    "type is null": "built: {module: {type: null}, task: {type: translation}}\n",
    "NUL": "built: \0\n",
    "carriage returns and escapes": 'built: "\\x1b[2J\\r"\n',
}


def write_config(run: Path, content: str) -> None:
    (run / "config.yaml").write_text(content)


many("config", CONFIGS, write_config)
TYPES = {
    "import path": "'@os.system'",
    "dotted path": "os.system",
    "a task": "translation",
    "a data set": "text_pairs",
    "unknown": "transformerx",
    "a path": "../../x.py",
    "long": "x" * 100_000,
}
many("type of the module", TYPES, lambda run, kind: module_says(run, f"type: {kind}"))
many("type of the task", TYPES | {"a task": "transformer"}, lambda r, k: task_says(r, f"type: {k}"))
SIZES = {
    "vocabulary": "vocabulary_size: 1000000000000",
    "width": "dim: 1000000000",
    "width of a few gigabytes": "dim: 1000000",
    "layers": "num_encoder_layers: 1000000000",
    "feed-forward": "ffn_dim: 1000000000000",
    "length": "max_length: 1000000000000",
    "length of a few gigabytes": "max_length: 50000000",
    "offset": "position_offset: 1000000000000",
    "negative offset": "position_offset: -100000",
    "heads": "num_heads: 1000000000",
    "no heads": "num_heads: 0",
    "negative width": "dim: -16",
    "odd width": "dim: 7",
    "more digits than are read": "dim: " + "9" * 10_000,
    "NaN": "dropout: .nan",
    "infinite": "dropout: .inf",
    "NaN for a number": "dim: .nan",
    "text": "dim: wide",
    "an import path": "activation: '@os.system'",
    "a list": "dim: [16]",
    "null": "dim: null",
    "other padding": "pad_idx: 7",
    "another width": "dim: 32",
    "fewer layers": "num_decoder_layers: 2",
    "unknown setting": "dim: 16\n    __class__: os.system",
}
many("module", SIZES, module_says)
BLOCKS = {
    "feed-forward": "ffn_dim: 1000000000000",
    "feed-forward of a few gigabytes": "ffn_dim: 100000000",
    "another feed-forward": "ffn_dim: 48",
    "offset": "offset: 1000000000000",
    "negative offset": "offset: -1",
    "heads": "num_heads: 1000000000",
    "no heads": "num_heads: 0",
    "heads of keys": "num_kv_heads: 1",
    "NaN": "dropout: .nan",
    "no eps": "eps: 0",
    "norms elsewhere": "norm_order: post",
    "an import path": "type: '@os.system'",
    "a dotted path": "type: os.system",
    "a block of another concept": "type: rms_norm",
    "an unknown block": "type: rotaryx",
    "unknown setting": "ffn_dim: 32\n        __class__: os.system",
}
many("block", BLOCKS, block_says)
TASKS = {
    "beam": "beam_size: 1000000000",
    "n-best": "n_best: 1000000000",
    "length penalty NaN": "length_penalty: .nan",
    "length NaN": "max_length_a: .nan",
    "length infinite": "max_length_a: .inf",
    "length huge": "max_length_a: 1.0e+300",
    "length added": "max_length_b: 1000000000000000000",
    "source length": "max_source_length: 1000000000000",
    "source length negative": "max_source_length: -1",
    "smoothing NaN": "label_smoothing: .nan",
}
many("task", TASKS, task_says)


@payload("config: a pipe")
def _(run: Path) -> None:
    (run / "config.yaml").unlink()
    os.mkfifo(run / "config.yaml")


@payload("config: a link to a device")
def _(run: Path) -> None:
    (run / "config.yaml").unlink()
    (run / "config.yaml").symlink_to("/dev/zero")


@payload("config: a folder")
def _(run: Path) -> None:
    (run / "config.yaml").unlink()
    (run / "config.yaml").mkdir()


@payload("config: not text")
def _(run: Path) -> None:
    (run / "config.yaml").write_bytes(b"\xff\xfe\x00built")


@payload("config: a recipe elsewhere")
def _(run: Path) -> None:
    path = run / "config.yaml"
    path.write_text(path.read_text().replace("recipe: recipe.py", "recipe: ../../x.py"))


@payload("modules that shadow the library's")
def _(run: Path) -> None:
    for name in ("torch", "yaml", "weft", "sitecustomize", "sentencepiece"):
        (run / f"{name}.py").write_text(CANARY_CODE)
    (run / "recipe.py").write_text(CANARY_CODE)


# -- run.json

many(
    "run.json",
    {
        "another format": '{"format": 99}',
        "not JSON": "{",
        "deep": "[" * 100_000,
        "deep mapping": '{"format": 1, "a": ' + '{"a": ' * 100_000,
        "a list": "[1]",
        "a digit bomb": '{"format": ' + "9" * 100_000 + "}",
        "NaN": '{"format": NaN}',
        "surrogates": '{"format": 1, "recipe": "\\ud800"}',
        "huge": '{"format": 1, "a": "' + "x" * (20 << 20) + '"}',
    },
    lambda run, content: (run / "run.json").write_text(content) and None,
)


@payload("run.json: a pipe")
def _(run: Path) -> None:
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")


# -- manifest, pointers, folders


def manifest_says(**changes) -> Payload:
    def change(run: Path) -> None:
        for step in steps(run):
            manifest = json.loads((step / "manifest.json").read_text())
            manifest.pop("digest")
            for key, value in changes.items():
                manifest[key] = value(manifest[key]) if callable(value) else value
            (step / "manifest.json").write_bytes(seal(manifest))
        repoint(run)

    return change


ENTRY = {"size": 4, "sha256": "0" * 64}
for _name, _file in {
    "above": "../../../x",
    "absolute": "/etc/passwd",
    "above from inside": "text/../../../x",
    "backslashes": "..\\x",
    "NUL": "text/\0",
    "long": "x" * 5000,
}.items():
    payload(f"manifest: a name {_name}")(
        manifest_says(files=lambda files, file=_file: {**files, file: ENTRY})
    )
payload("manifest: no files")(manifest_says(files={}))
payload("manifest: files are a list")(manifest_says(files=[1]))
payload("manifest: many files")(manifest_says(files={f"f{i}": ENTRY for i in range(20_000)}))
payload("manifest: a negative step")(manifest_says(step=-1))
payload("manifest: a huge serial")(manifest_says(serial=10**400))
payload("manifest: another format")(manifest_says(format=[1]))
payload("manifest: a huge size")(
    manifest_says(
        files=lambda files: {k: {**v, "size": 10**18} for k, v in files.items()},
    )
)


@payload("manifest: deep")
def _(run: Path) -> None:
    for step in steps(run):
        (step / "manifest.json").write_bytes(b"[" * 1_000_000)


@payload("manifest: larger than allowed")
def _(run: Path) -> None:
    for step in steps(run):
        with (step / "manifest.json").open("wb") as file:
            file.truncate(10 << 30)


for _pointer in ("best.json", "last.json"):
    for _name, _folder in {
        "above": "../../outside",
        "absolute": "/etc",
        "NUL": "step-00000004\0",
        "missing": "step-99999999",
    }.items():

        @payload(f"{_pointer}: {_name}")
        def _(run: Path, pointer: str = _pointer, folder: str = _folder) -> None:
            path = run / "checkpoints" / pointer
            content = json.loads(path.read_text())
            content.pop("digest")
            path.write_bytes(seal({**content, "folder": folder}))

    @payload(f"{_pointer}: a link")
    def _(run: Path, pointer: str = _pointer) -> None:
        path = run / "checkpoints" / pointer
        path.unlink()
        path.symlink_to("/etc/passwd")


def link_out(file: str) -> Payload:
    """The file is as it was, but lies outside the run and is linked to."""

    def change(run: Path) -> None:
        for step in steps(run):
            outside = run.parent / f"outside-{step.name}-{Path(file).name}"
            shutil.move(step / file, outside)
            (step / file).symlink_to(outside)

    return change


for _file in ("model.safetensors", "state.json", "manifest.json", "text", "text/text.json"):
    payload(f"a link out: {_file}")(link_out(_file))
for _file in ("text/tokenizer", "text/tokenizer/sentencepiece.model"):
    payload(f"a link out: {_file}")(link_out(_file))


@payload("a checkpoint that is a link")
def _(run: Path) -> None:
    for step in steps(run):
        outside = run.parent / f"outside-{step.name}"
        shutil.move(step, outside)
        step.symlink_to(outside)


@payload("a pipe for weights")
def _(run: Path) -> None:
    for step in steps(run):
        (step / "model.safetensors").unlink()
        os.mkfifo(step / "model.safetensors")


# -- weights


def with_header(header: bytes, data: bytes = b"\0" * 64, size: int | None = None) -> Payload:
    content = struct.pack("<Q", len(header) if size is None else size) + header + data
    return lambda run: in_each(run, "model.safetensors", content)


def tensor(**entry) -> bytes:
    return json.dumps(
        {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], **entry}}
    ).encode()


for _name, _change in {
    "an empty file": lambda run: in_each(run, "model.safetensors", b""),
    "no tensors": with_header(b"{}", b""),
    "a header of 2**63": with_header(b"{}", size=1 << 63),
    "a header over the file": with_header(b"{}", size=1 << 20),
    "a deep header": with_header(b'{"a":' * 50_000),
    "not JSON": with_header(b"\xff\xfe"),
    "negative offsets": with_header(tensor(data_offsets=[-16, 0])),
    "offsets over the end": with_header(tensor(data_offsets=[0, 1 << 40])),
    "offsets turned round": with_header(tensor(data_offsets=[16, 0])),
    "an unknown type": with_header(tensor(dtype="PICKLE")),
    "a type of another width": with_header(tensor(dtype="F64")),
    "a shape that overflows": with_header(tensor(shape=[1 << 62, 1 << 62])),
    "a huge shape of no data": with_header(tensor(shape=[0, 1 << 62], data_offsets=[0, 0]), b""),
    "tensors that overlap": with_header(
        b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},'
        b'"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}'
    ),
    "another tensor": with_header(tensor(), b"\0" * 16),
    "a pickle": lambda run: in_each(
        run, "model.safetensors", b"\x80\x04\x95cos\nsystem\n(S'touch CANARY'\ntR."
    ),
    "half": lambda run: in_each(run, "model.safetensors", lambda data: data[: len(data) // 2]),
}.items():
    payload(f"weights: {_name}")(_change)


@payload("weights: 10 GB of nothing")
def _(run: Path) -> None:
    """A sparse file, which takes no disk; its manifest says its size."""
    for step in steps(run):
        with (step / "model.safetensors").open("r+b") as file:
            file.truncate(10 << 30)
    change = manifest_says(
        files=lambda files: {
            **files,
            "model.safetensors": {**files["model.safetensors"], "size": 10 << 30},
        }
    )
    change(run)


# -- state.json


def state_says(change: Callable[[dict], object]) -> Payload:
    def apply(data: bytes) -> bytes:
        document = json.loads(data)
        return json.dumps(change(document) or document).encode()

    return lambda run: in_each(run, "state.json", apply)


for _name, _plain in {
    "a list": [1],
    "no tensors": {},
    "an unknown tensor": {"output_weight": {"$tensor": "gone"}},
    "an unknown form": {"output_weight": {"$exec": "os.system"}},
    "a dict of unhashable keys": {"output_weight": {"$dict": [[[1], 2]]}},
    "floats": {"output_weight": {"$float": "zz"}},
}.items():
    payload(f"state.json: {_name}")(
        state_says(lambda document, plain=_plain: document["parts"].update(model=plain))
    )
payload("state.json: no parts")(state_says(lambda document: {"format": 1}))
payload("state.json: another format")(state_says(lambda document: document.update(format=2)))
payload("state.json: deep")(lambda run: in_each(run, "state.json", b'{"a":' * 200_000))
payload("state.json: a digit bomb")(
    lambda run: in_each(run, "state.json", b'{"format":' + b"9" * 1_000_000 + b"}")
)
payload("state.json: huge")(lambda run: in_each(run, "state.json", b" " * (80 << 20)))


# -- text

for _file in ("text/text.json", "text/tokenizer/tokenizer.json"):
    for _name, _content in {
        "not JSON": b"{",
        "deep": b"[" * 200_000,
        "huge": b" " * (2 << 20),
        "a list": b"[1]",
        "an import path": b'{"format":1,"type":"@os.system","settings":{}}',
        "a module's path": b'{"format":1,"type":"os.system","settings":{}}',
        "no settings": b'{"format":1,"type":"seq2seq","settings":[]}',
        "more keys": b'{"format":1,"type":"seq2seq","settings":{},"__reduce__":"x"}',
        "another format": b'{"format":2,"type":"seq2seq","settings":{}}',
    }.items():
        payload(f"{_file}: {_name}")(
            lambda run, file=_file, content=_content: in_each(run, file, content)
        )


def setting(file: str, **changes) -> Payload:
    def apply(data: bytes) -> bytes:
        content = json.loads(data)
        content["settings"].update(changes)
        return json.dumps(content).encode()

    return lambda run: in_each(run, file, apply)


_TEXT, _TOKENIZER = "text/text.json", "text/tokenizer/tokenizer.json"
payload("text: a limit below zero")(setting(_TEXT, max_source_length=-5))
payload("text: a huge limit")(setting(_TEXT, max_source_length=10**18))
payload("text: no limit")(setting(_TEXT, max_source_length=None))
payload("text: a limit of text")(setting(_TEXT, max_target_length="9" * 100))
payload("text: an unknown language")(setting(_TEXT, target_lang="../x"))
payload("text: an unknown setting")(setting(_TEXT, model="/etc/passwd"))
payload("tokenizer: a path")(setting(_TOKENIZER, model="/etc/passwd"))
payload("tokenizer: always tags")(setting(_TOKENIZER, tags="always"))
payload("tokenizer: many languages")(
    setting(_TOKENIZER, source_langs=[f"l{i}" for i in range(30_000)], tags="always")
)
payload("tokenizer: no languages")(setting(_TOKENIZER, source_langs=[]))
payload("tokenizer: numbers for languages")(setting(_TOKENIZER, source_langs=[1]))

_MODEL = "text/tokenizer/sentencepiece.model"
for _name, _bytes in {
    "empty": b"",
    "garbage": bytes(range(256)) * 64,
    "zeros": b"\0" * 4096,
    "a pickle": b"\x80\x04cos\nsystem\n(S'touch CANARY'\ntR.",
    "a length over the end": b"\x0a\xff\xff\xff\xff\x7f",
    "nested groups": b"\x0b" * 100_000,
}.items():
    payload(f"sentencepiece: {_name}")(lambda run, raw=_bytes: in_each(run, _MODEL, raw))
for _part in (0.1, 0.5, 0.9):
    payload(f"sentencepiece: the first {_part:.0%}")(
        lambda run, part=_part: in_each(run, _MODEL, lambda raw: raw[: int(len(raw) * part)])
    )


@payload("sentencepiece: 10 GB of nothing")
def _(run: Path) -> None:
    for step in steps(run):
        with (step / _MODEL).open("r+b") as file:
            file.truncate(10 << 30)
    manifest_says(
        files=lambda files: {**files, _MODEL: {**files[_MODEL], "size": 10 << 30}},
    )(run)


@payload("text: a file more")
def _(run: Path) -> None:
    for step in steps(run):
        (step / "text" / "setup.py").write_text(CANARY_CODE)


# -- the test

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


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(root, name)
            status = path.lstat()
            found[str(path)] = (status.st_mtime_ns if path.is_file() else 0, status.st_size)
    return found


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """The first load imports torch and all of weft; that is not what is timed."""
    weft.load(library_run())("Go.")


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_hostile_folder_does_nothing(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PAYLOADS[name](run)
    before = snapshot(tmp_path)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        predictor = weft.load(run)
    except WeftError as error:
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
    expected = weft.load(run)("Go.")
    reseal(run)
    module_says(run, "dropout: 0.1")
    task_says(run, "beam_size: 1")
    assert weft.load(run)("Go.") == expected
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
    before = snapshot(tmp_path)
    with pytest.raises(WeftError):
        weft.evaluate(run)
    assert snapshot(tmp_path) == before

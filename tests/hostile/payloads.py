"""One lie of each kind for each parser of a run folder and of an export, under seals that fit."""

import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.hostile.folder import entry_of, in_each, repoint, says, steps
from textmill.exported.manifest import MANIFEST
from textmill.runtime.sealed import seal

Payload = Callable[[Path], object]
CODE = "open('CANARY', 'w').write('x')"
PICKLE = b"\x80\x04\x95cos\nsystem\n(S'touch CANARY'\ntR."
LISTS = b"[" + b"[]," * (2 << 20) + b"1]"
ENTRY = {"size": 4, "sha256": "0" * 64}
NAMES = {"above": "../../../x", "absolute": "/etc/passwd", "of NUL": "text/\0"}


def manifests(run: Path, change: Callable[[dict], object]) -> None:
    for step in steps(run):
        says(step / "manifest.json", change)
    repoint(run)


def linked(run: Path, name: str) -> None:
    """The part is as it was, but lies outside the run and is linked to."""
    for step in steps(run):
        outside = run.parent / f"outside-{step.name}"
        shutil.move(step / name, outside)
        (step / name).symlink_to(outside)


def a_pipe(run: Path) -> None:
    for step in steps(run):
        (step / "model.safetensors").unlink()
        os.mkfifo(step / "model.safetensors")


CHECKPOINT: dict[str, Payload] = {
    **{
        f"manifest: a name {kind}": partial(
            manifests, change=lambda m, name=name: m["files"].update({name: ENTRY})
        )
        for kind, name in NAMES.items()
    },
    "manifest: files are a list": partial(manifests, change=lambda m: m.update(files=[1])),
    "manifest: another format": partial(manifests, change=lambda m: m.update(format_version=[1])),
    "manifest: a huge serial": partial(manifests, change=lambda m: m.update(serial=10**400)),
    "manifest: deep": lambda run: [
        (step / "manifest.json").write_bytes(b"[" * 1_000_000) for step in steps(run)
    ],
    "a link: weights": partial(linked, name="model.safetensors"),
    "a link: text": partial(linked, name="text"),
    "a link: a checkpoint": partial(linked, name="."),
    "a pipe for weights": a_pipe,
}
POINTERS: dict[str, Payload] = {
    f"{file}: {kind}": lambda run, file=file, name=name: says(
        run / "checkpoints" / file, lambda pointer: pointer.update(folder=name)
    )
    for file in ("best.json", "last.json")
    for kind, name in NAMES.items()
}

# -- weights and state


def tensor(**entry: object) -> bytes:
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], **entry}
    content = json.dumps({"a": entry}).encode()
    return struct.pack("<Q", len(content)) + content + bytes(64)


STATES: dict[str, bytes | Callable[[bytes], bytes]] = {
    "model.safetensors is empty": b"",
    "model.safetensors has offsets over the end": tensor(data_offsets=[0, 1 << 40]),
    "model.safetensors has an unknown type": tensor(dtype="PICKLE"),
    "model.safetensors has another tensor": tensor(),
    "model.safetensors is a pickle": PICKLE,
    "state.json is a list": b"[1]",
    "state.json has an unknown form": lambda data: json.dumps(
        json.loads(data) | {"parts": {"model": {"output_weight": {"$exec": "os.system"}}}}
    ).encode(),
    "state.json is deep": b'{"a":' * 200_000,
    "state.json has a number without end": b'{"format_version":' + b"9" * 1_000_000 + b"}",
    "state.json has millions of lists": LISTS,
}

# -- settings

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)
CONFIGS = {
    "aliases that grow": BOMB,
    "an alias to itself": "built: &a {module: *a}\n",
    "a call": f'built: !!python/object/apply:builtins.exec ["{CODE}"]\n',
    "nested lists": "built: " + "[" * 100_000,
    "more bytes than settings have": "a: " + "x" * 2_000_000,
    "a key twice": "built: {}\nbuilt: {}\n",
    "NUL": "built: \0\n",
    "what a terminal obeys": 'built: "\\x1b[2J\\r"\n',
}


def sets(run: Path, room: str, line: str) -> None:
    """Changes a setting of the module or the task that the run is rebuilt from."""
    path, name = run / "config.yaml", line.partition(":")[0]
    top, mark, record = path.read_text().rpartition(f"\n  {room}:")
    record, count = re.subn(rf"(?m)^(\s+){name}:.*$", rf"\g<1>{line}", record, count=1)
    assert count, name
    path.write_text(top + mark + record)


def shadows(run: Path) -> None:
    for name in ("torch", "yaml", "textmill", "sitecustomize", "sentencepiece", "recipe"):
        (run / f"{name}.py").write_text(CODE)


def device(run: Path) -> None:
    (run / "config.yaml").unlink()
    (run / "config.yaml").symlink_to("/dev/zero")


SETTINGS: dict[str, Payload] = {
    **{
        f"config.yaml: {name}": lambda run, text=text: (run / "config.yaml").write_text(text)
        for name, text in CONFIGS.items()
    },
    "config.yaml is no text": lambda run: (run / "config.yaml").write_bytes(b"\xff\xfe\x00built"),
    "config.yaml is a device": device,
    "modules that shadow": shadows,
    **{
        f"{room}: {line[:40]}": partial(sets, room=room, line=line)
        for room, line in (
            ("module", "type: '@os.system'"),
            ("module", "dim: wide"),
            ("module", "dim: 32"),
            ("module", "dim: " + "9" * 10_000),
            ("module", "dim: 16\n    __class__: os.system"),
            ("task", "type: '@os.system'"),
            ("task", "length_penalty: .nan"),
        )
    },
    **{
        f"run.json: {name}": lambda run, text=text: (run / "run.json").write_text(text)
        for name, text in {
            "another format": '{"format_version": 99}',
            "deep": '{"format_version": 1, "a": ' + '{"a": ' * 100_000,
            "huge": '{"format_version": 1, "a": "' + "x" * (20 << 20) + '"}',
            "surrogates": '{"format_version": 1, "recipe": "\\ud800"}',
        }.items()
    },
}

# -- text

DESCRIPTIONS = {
    "is deep": b"[" * 200_000,
    "is a list": b"[1]",
    "has millions of lists": LISTS,
    "names code": b'{"format_version": 1,"type":"@os.system","settings":{}}',
    "has another format": b'{"format_version": 2,"type":"seq2seq","settings":{}}',
    "has keys more": b'{"format_version": 1,"type":"seq2seq","settings":{},"__reduce__":"x"}',
    "has NaN": b'{"format_version":NaN,"type":"seq2seq","settings":{}}',
}
TOKENIZER = "text/tokenizer/tokenizer.json"


def setting(**changes: object) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        content = json.loads(data)
        return json.dumps({**content, "settings": content["settings"] | changes}).encode()

    return change


MODEL = "text/tokenizer/sentencepiece.model"
TEXTS: dict[str, tuple[str, bytes | Callable[[bytes], bytes]]] = {
    **{f"text.json {name}": ("text/text.json", data) for name, data in DESCRIPTIONS.items()},
    "text.json sets a limit below 0": ("text/text.json", setting(max_source_length=-5)),
    "text.json sets what it has not": ("text/text.json", setting(model="/etc/passwd")),
    "tokenizer.json names code": (TOKENIZER, DESCRIPTIONS["names code"]),
    "tokenizer.json sets a path": (TOKENIZER, setting(model="/etc/passwd")),
    "tokenizer.json has no languages": (TOKENIZER, setting(source_langs=[])),
    "sentencepiece.model is empty": (MODEL, b""),
    "sentencepiece.model is a pickle": (MODEL, PICKLE),
}


def more_text(run: Path) -> None:
    for step in steps(run):
        (step / "text" / "setup.py").write_text(CODE)


RUNS: dict[str, Payload] = {
    **CHECKPOINT,
    **POINTERS,
    **{
        name: partial(in_each, file=name.split()[0], content=content)
        for name, content in STATES.items()
    },
    **SETTINGS,
    **{name: partial(in_each, file=file, content=data) for name, (file, data) in TEXTS.items()},
    "a file more in the text": more_text,
}

# -- exports


def resealed(folder: Path) -> None:
    """Lists every file that is there."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != MANIFEST]
    files = {path.relative_to(folder).as_posix(): entry_of(path) for path in paths}
    says(folder / MANIFEST, lambda content: content.update(files=files))


def manifest(**facts: object) -> Payload:
    return lambda folder: says(folder / MANIFEST, lambda content: content.update(facts))


def in_file(names: str, content: bytes | Callable[[bytes], bytes]) -> Payload:
    """Other bytes in the first of these files that an export has: that depends on its kind."""

    def change(folder: Path) -> None:
        path = next(path for name in names.split("|") if (path := folder / name).exists())
        path.write_bytes(content(path.read_bytes()) if callable(content) else content)
        resealed(folder)

    return change


def deep(folder: Path) -> None:
    held: dict[str, object] = {}
    for _ in range(900):
        held = {"a": held}
    says(folder / MANIFEST, lambda content: content.update(source=held))


def more(name: str, content: bytes) -> Payload:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content)
        resealed(folder)

    return change


def linked_text(folder: Path) -> None:
    shutil.move(folder / "text", folder.parent / "outside")
    (folder / "text").symlink_to(folder.parent / "outside")


GRAPH = "graph/model.onnx|graph/model.bin"
WORDS = "text/tokenizer/sentencepiece.model|text/columns/text/tokenizer/words.txt"
EXPORTS: dict[str, Payload] = {
    **{
        f"the manifest has a name {kind}": manifest(files={name: ENTRY})
        for kind, name in NAMES.items()
    },
    "the manifest has no files": manifest(files={}),
    "the manifest has a graph of code": manifest(graph="@os.system"),
    "the manifest has a graph that is a path": manifest(graph="../../graph"),
    "the manifest has answers of code": manifest(
        answers={"forward": "@os.system", "settings": {}, "numbers": {}}
    ),
    "the manifest is deep": deep,
    "the manifest is a pickle": lambda folder: (folder / MANIFEST).write_bytes(PICKLE),
    "the manifest has millions of lists": lambda folder: (folder / MANIFEST).write_bytes(
        seal({}).replace(b"{", LISTS, 1)
    ),
    "the graph is empty": in_file(GRAPH, b""),
    "the graph is a pickle": in_file(GRAPH, PICKLE),
    **{f"text.json {name}": in_file("text/text.json", x) for name, x in DESCRIPTIONS.items()},
    "text.json sets what it has not": in_file("text/text.json", setting(path="/etc/passwd")),
    "the vocabulary is a pickle": in_file(WORDS, PICKLE),
    "a module that shadows": more("numpy.py", CODE.encode()),
    "a pickle more": more("graph/model.pkl", PICKLE),
    "a link for a folder": linked_text,
}

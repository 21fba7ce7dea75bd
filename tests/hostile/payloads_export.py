"""Payloads in an export, under a seal that fits: a stranger can write that, too."""

import json
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.folder import CANARY_CODE, Payload, entry_of
from tests.hostile.payloads_files import CONTENTS, SPECIAL
from textmill.exported.manifest import MANIFEST
from textmill.runtime.sealed import seal

EXPORT_PAYLOADS: dict[str, Payload] = {}


def says(folder: Path, change: Callable[[dict], object]) -> None:
    """Changes the manifest, and seals it again."""
    content = json.loads((folder / MANIFEST).read_text())
    content.pop("digest")
    change(content)
    (folder / MANIFEST).write_bytes(seal(content))


def resealed(folder: Path) -> None:
    """Lists every file that is there."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = {p.relative_to(folder).as_posix(): entry_of(p) for p in paths if p.name != MANIFEST}
    says(folder, lambda content: content.update(files=found))


def add(name: str, change: Callable[[Path], object], *, seals: bool = True) -> None:
    assert name not in EXPORT_PAYLOADS, name

    def payload(folder: Path) -> None:
        change(folder)
        if seals:
            resealed(folder)

    EXPORT_PAYLOADS[name] = payload


def first(folder: Path, names: str) -> Path:
    """The first file of these that an export has: which they are depends on its kind."""
    return next(path for name in names.split("|") if (path := folder / name).exists())


FILES = {
    "the graph": "graph/model.onnx|graph/model.bin",
    "text.json": "text/text.json",
    "tokenizer.json": "text/tokenizer/tokenizer.json|text/columns/text/tokenizer/tokenizer.json",
    "the vocabulary": "text/tokenizer/sentencepiece.model|text/columns/text/tokenizer/words.txt",
    "labels": "text/columns/label/column.json|graph/target_vocabulary.json",
}
for _file, _names in FILES.items():
    for _what, _change in SPECIAL.items():
        add(f"{_file} {_what}", lambda f, n=_names, c=_change: c(first(f, n)), seals=False)
    for _what, _change in CONTENTS.items():
        add(f"{_file} {_what}", lambda f, n=_names, c=_change: c(first(f, n)))
for _what, _change in {**SPECIAL, **CONTENTS}.items():
    add(f"the manifest {_what}", lambda f, c=_change: c(f / MANIFEST), seals=False)

ANOTHER_MODEL = re.compile(r"^(the vocabulary|labels) (is|of)|^a vocabulary of|^weights of")
"""Payloads that can make an export of another model, which is then what answers."""

# -- the manifest

ENTRY = {"size": 4, "sha256": "0" * 64}
FACTS: dict[str, dict[str, Any]] = {
    "no files": {"files": {}},
    "a name above": {"files": {"../../x": ENTRY}},
    "an absolute name": {"files": {"/etc/passwd": ENTRY}},
    "a name of NUL": {"files": {"text/\0": ENTRY}},
    "files that are a list": {"files": [1]},
    "many files": {"files": {f"f{i}": ENTRY for i in range(5_000)}},
    "a size below zero": {"files": {"text/text.json": {"size": -1, "sha256": "0" * 64}}},
    "a size without end": {"files": {"text/text.json": {"size": 10**80, "sha256": "0" * 64}}},
    "a digest that is none": {"files": {"text/text.json": {"size": 1, "sha256": "x"}}},
    "another format": {"format_version": 2},
    "a format that is a list": {"format_version": [[]]},
    "another graph": {"graph": "@os.system"},
    "a graph that is a path": {"graph": "../../graph"},
    "a graph that is a list": {"graph": ["onnx"]},
    "no search": {"search": None},
    "a beam of a billion": {"search": {"beam_size": 10**9}},
    "answers of a list": {"answers": [1]},
    "answers of code": {"answers": {"forward": "@os.system", "settings": {}, "numbers": {}}},
    "a source of a list": {"source": []},
    "a source of text": {"source": "@os.system"},
    "data of code": {"source": {"data": {"type": "@os.system", "format": "@os.system"}}},
    "data of a file": {"source": {"data": {"path": "/dev/zero", "type": "text_pairs"}}},
    "data of a list": {"source": {"data": [1]}},
    "columns of nothing": {"source": {"data": {"columns": None, "format": 7}}},
    "columns without end": {"source": {"data": {"columns": {"text": 10**70, "source": 10**70}}}},
    "versions of a list": {"versions": []},
    "what a terminal obeys": {"graph": "\x1b[2J\x1b]0;x\x07"},
    "code": {"code": "import os"},
}
for _name, _facts in FACTS.items():
    add(
        f"the manifest says {_name}",
        lambda f, c=_facts: says(f, lambda m: m.update(c)),
        seals=False,
    )


def deep(folder: Path) -> None:
    content = json.loads((folder / MANIFEST).read_text())
    content.pop("digest")
    held: dict[str, Any] = {}
    for _ in range(900):
        held = {"a": held}
    (folder / MANIFEST).write_bytes(seal({**content, "source": held}))


def more(name: str, content: bytes | str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


add("the manifest is deep", deep, seals=False)
add("a module that shadows", more("numpy.py", CANARY_CODE))
add("a module in the text", more("text/textmill.py", CANARY_CODE), seals=False)
add("a pickle more", more("graph/model.pkl", b"\x80\x04cos\nsystem\n(S'touch CANARY'\ntR."))
add("a folder more", lambda folder: (folder / "code").mkdir(), seals=False)
add("a link more", lambda folder: (folder / "more").symlink_to("/"), seals=False)
add("a folder that is a link", lambda f: (shutil.move(f / "text", "outside"),
    (f / "text").symlink_to(Path("outside").resolve())), seals=False)  # fmt: skip

# -- the text

TEXTS = {
    "names code": b'{"format_version": 1,"type":"@os.system","settings":{}}',
    "names a module": b'{"format_version": 1,"type":"os.system","settings":{}}',
    "names a class": b'{"format_version": 1,"type":"textmill.runs.train","settings":{}}',
    "names a path": b'{"format_version": 1,"type":"../../x","settings":{}}',
    "has a list of settings": b'{"format_version": 1,"type":"seq2seq","settings":[]}',
    "has keys more": b'{"format_version": 1,"type":"seq2seq","settings":{},"__reduce__":"x"}',
    "has a key twice": b'{"format_version": 1,"format_version": 1,"type":"seq2seq","settings":{}}',
    "has another format": b'{"format_version": 2,"type":"seq2seq","settings":{}}',
    "has NaN": b'{"format":NaN,"type":"seq2seq","settings":{}}',
    "has a number without end": b'{"format":' + b"9" * 100_000 + b"}",
    "is deep": b"[" * 200_000,
}
for _file in ("text.json", "tokenizer.json"):
    for _name, _content in TEXTS.items():
        add(
            f"{_file} {_name}",
            lambda f, n=FILES[_file], c=_content: first(f, n).write_bytes(c),
        )


def has_settings(folder: Path, names: str, **changes: Any) -> None:
    path = first(folder, names)
    content = json.loads(path.read_text())
    content["settings"].update(changes)
    path.write_text(json.dumps(content))


for _file in ("text.json", "tokenizer.json"):
    for _name, _changes in {
        "sets what it has not": {"path": "/etc/passwd"},
        "sets a length below zero": {"max_source_length": -1, "max_length": -1},
        "sets a list": {"lowercase": [], "source_lang": [], "source_langs": [[]]},
    }.items():
        add(f"{_file} {_name}", lambda f, n=FILES[_file], c=_changes: has_settings(f, n, **c))
add(
    "a vocabulary of ten million",
    lambda f: first(f, FILES["the vocabulary"]).write_bytes(
        b"".join(b"%08d\n" % i for i in range(10_000_000))
    ),
)
add(
    "a vocabulary of one word",
    lambda f: first(f, FILES["the vocabulary"]).write_bytes(b"a\n" * 2_000),
)

# -- the graph of CTranslate2; of ONNX it is no graph then


def binary(
    *variables: bytes,
    version: int = 6,
    spec: bytes = b"TransformerSpec",
    count: int | None = None,
) -> bytes:
    """A ``model.bin``."""
    told = len(variables) if count is None else count
    head = struct.pack("<I", version) + text(spec) + struct.pack("<II", 7, told)
    return head + b"".join(variables) + struct.pack("<I", 0)


def text(value: bytes) -> bytes:
    return struct.pack("<H", len(value) + 1) + value + b"\0"


def variable(
    name: bytes = b"decoder/embeddings/weight",
    shape: tuple[int, ...] = (4, 4),
    kind: int = 0,
    size: int | None = None,
) -> bytes:
    data = bytes(64)
    head = text(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    return head + struct.pack("<BI", kind, len(data) if size is None else size) + data


def weights_of(folder: Path, value: float) -> None:
    """Every 4 bytes of the last half: it is all weights."""
    path = first(folder, FILES["the graph"])
    data = path.read_bytes()
    half = len(data) // 8 * 4
    path.write_bytes(data[:half] + np.full((len(data) - half) // 4, value, "<f4").tobytes())


HUGE = (1 << 32) - 1
for _name, _content in {
    "no variables": binary(),
    "as many variables as there are numbers": binary(count=HUGE),
    "another program's": binary(variable(), spec=b"os.system"),
    "a version of tomorrow": binary(variable(), version=HUGE),
    "a version of nothing": binary(variable(), version=0),
    "a huge variable": binary(variable(shape=(HUGE, 1), size=HUGE)),
    "a variable of huge sides": binary(variable(shape=(HUGE, HUGE))),
    "a variable of 255 sides": binary(variable(shape=(1,) * 255)),
    "a variable of nothing": binary(variable(shape=(0, 0), size=0)),
    "fewer bytes than its sides": binary(variable(shape=(1 << 12, 1 << 12))),
    "an unknown kind": binary(variable(kind=255)),
    "names that are paths": binary(variable(name=b"../../../etc/passwd")),
    "a variable of that name twice": binary(variable(), variable()),
}.items():
    add(
        f"a binary graph with {_name}",
        lambda f, c=_content: first(f, FILES["the graph"]).write_bytes(c),
    )
for _part in (0.001, 0.01, 0.1, 0.9, 0.999):
    add(
        f"the first {_part:.1%} of the graph",
        lambda f, part=_part: (path := first(f, FILES["the graph"])).write_bytes(
            path.read_bytes()[: int(path.stat().st_size * part)]
        ),
    )
for _name, _value in {"NaN": float("nan"), "infinity": float("inf")}.items():
    add(f"weights of {_name}", lambda f, value=_value: weights_of(f, value))

CONFIGS = {
    "is a list": [],
    "names no marks": {},
    "names code": {"unk_token": "@os.system", "bos_token": "@x", "eos_token": "@x"},
    "has a list for a mark": {"unk_token": [], "bos_token": {}, "eos_token": 7},
    "has a huge number": {"layer_norm_epsilon": 1e300, "multi_query_attention": 7},
    "has another start": {"decoder_start_token": "x" * 100_000},
}
for _name, _config in CONFIGS.items():
    add(f"config.json {_name}", more("graph/config.json", json.dumps(_config)))
add("config.json is deep", more("graph/config.json", b"[" * 200_000))
for _name, _words in {
    "of nothing": [],
    "of numbers": [*range(60)],
    "of one word": ["a"] * 60,
    "of lists": [[]] * 60,
    "of ten million words": ["a"] * 10_000_000,
}.items():
    add(
        f"vocabularies {_name}",
        lambda f, c=_words: [
            more(f"graph/{side}_vocabulary.json", json.dumps(c))(f) for side in ("source", "target")
        ],
    )

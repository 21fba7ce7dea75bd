"""Payloads in a checkpoint: manifest, pointers, links, weights, state."""

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from tests.hostile.folder import Payload, in_each, manifest_says, payload, steps
from textmill.runtime.sealed import seal

# -- manifest, pointers, folders


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
payload("manifest: another format")(manifest_says(format_version=[1]))
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
payload("state.json: no parts")(state_says(lambda document: {"format_version": 1}))
payload("state.json: another format")(
    state_says(lambda document: document.update(format_version=2))
)
payload("state.json: deep")(lambda run: in_each(run, "state.json", b'{"a":' * 200_000))
payload("state.json: a digit bomb")(
    lambda run: in_each(run, "state.json", b'{"format_version":' + b"9" * 1_000_000 + b"}")
)
payload("state.json: huge")(lambda run: in_each(run, "state.json", b" " * (80 << 20)))
payload("state.json: 63 MB of lists")(
    lambda run: in_each(run, "state.json", b"[" + b"[]," * (21 << 20) + b"1]")
)

"""Payloads that are the same for any file: no file, another kind of file, other bytes."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.hostile.folder import CANARY_CODE, Payload, reseal, steps
from tests.trained_run import edited


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_to(target: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return change


def link_out(path: Path) -> None:
    """The file is as it was, but lies outside and is linked to."""
    outside = Path("outside", path.name)
    outside.parent.mkdir(exist_ok=True)
    shutil.move(path, outside)
    path.symlink_to(outside.resolve())


SPECIAL: dict[str, Callable[[Path], object]] = {
    "is missing": Path.unlink,
    "is a pipe": pipe,
    "is a folder": folder,
    "is a device": link_to("/dev/zero"),
    "is a link to itself": lambda path: link_to(path.name)(path),
    "is a link out": link_out,
}
"""What stands in a file's place; no digest tells of it."""
CONTENTS: dict[str, Callable[[Path], object]] = {
    "is empty": lambda path: path.write_bytes(b""),
    "is cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "is NUL": lambda path: path.write_bytes(bytes(4096)),
    "is no text": lambda path: path.write_bytes(b"\xff\xfe" * 100),
    "is a pickle": lambda path: path.write_bytes(b"\x80\x04cos\nsystem\n(S'touch CANARY'\ntR."),
    "is code": lambda path: path.write_text(CANARY_CODE),
    "is a line of 64 MiB": lambda path: path.write_bytes(b'{"a": "%s"}\n' % (b"x" * (64 << 20))),
    "is 64 MiB of lists": lambda path: path.write_bytes(b"[%s1]\n" % (b"[]," * (21 << 20))),
}
"""What it holds instead; every digest fits it."""

IN_RUN = (
    "config.yaml", "run.json", "recipe.py", "metrics.jsonl", "log.txt", "lock", "report.html",
    "predictions/valid-step-00000004.jsonl", "checkpoints/best.json", "checkpoints/last.json",
)  # fmt: skip
IN_CHECKPOINT = (
    "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json", "text/text.json",
    "text/tokenizer/tokenizer.json", "text/tokenizer/sentencepiece.model",
)  # fmt: skip


def in_checkpoints(run: Path, name: str, change: Callable[[Path], object]) -> None:
    for step in steps(run):
        change(step / name)
    if change in CONTENTS.values() and name != "manifest.json":
        reseal(run)


def in_run(run: Path, name: str, change: Callable[[Path], object]) -> None:
    change(run / name)
    if name == "config.yaml" and change in CONTENTS.values():
        with suppress(ValueError, OSError, MemoryError):  # what is no text has no seal
            edited(run)


FILE_PAYLOADS: dict[str, Payload] = {}

for _what, _change in {**SPECIAL, **CONTENTS}.items():
    for _name in IN_RUN:
        FILE_PAYLOADS[f"{_name} {_what}"] = partial(in_run, name=_name, change=_change)
    for _name in IN_CHECKPOINT:
        change = partial(in_checkpoints, name=_name, change=_change)
        FILE_PAYLOADS[f"each {_name} {_what}"] = change

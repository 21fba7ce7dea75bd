"""Writes the files of one checkpoint into a folder, each hashed while it is written."""

import json
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from textmill.checkpoint.layout import MANIFEST, STATE, tensor_file, text_folder
from textmill.checkpoint.manifest import FORMAT, Manifest
from textmill.checkpoint.parts import LARGEST_STATE, Stateful
from textmill.checkpoint.state import split_state
from textmill.checkpoint.tensors import tensors_size, write_tensors
from textmill.errors import CheckpointError
from textmill.runtime.disk import HashingFile, operations, storing
from textmill.runtime.files import MOST_ITEMS, VERSION, count_items, new_folder
from textmill.runtime.sealed import FileEntry

PART_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
"""What the name of a part must look like."""


def split_parts(
    step: int, parts: Mapping[str, Stateful | Mapping[str, Any]]
) -> tuple[dict[str, dict[str, Tensor]], bytes]:
    """The tensors of every part, or of its state, by its name; the content of ``state.json``."""
    tensors, plain = {}, {}
    for name, part in parts.items():
        if not PART_NAME.fullmatch(name):
            raise CheckpointError(
                f"A part cannot be called {name!r}: use small letters, digits, '_', '-' and '.'."
            )
        try:
            state = part if isinstance(part, Mapping) else part.state_dict()
            tensors[name], plain[name] = split_state(state)
            for key, tensor in tensors[name].items():
                tensors_size({key: tensor})
        except CheckpointError as error:
            raise CheckpointError(f"Part {name!r}: {error}") from error
    document = {VERSION: FORMAT, "step": step, "parts": plain}
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    items = count_items(text)
    if len(text) > LARGEST_STATE or items > MOST_ITEMS:
        sizes = {name: len(json.dumps(value)) for name, value in plain.items()}
        raise CheckpointError(
            f"{STATE} would have {len(text):,} bytes and {items:,} items, but at most "
            f"{LARGEST_STATE:,} and {MOST_ITEMS:,} are read again. Most is of part "
            f"{max(sizes, key=sizes.__getitem__)!r}: keep large states in tensors."
        )
    return tensors, text


def write_checkpoint(  # what stands in a checkpoint
    final: Path,
    *,
    step: int,
    serial: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    document: bytes,
    write_text: Callable[[Path], None] | None = None,
    run: str | None = None,
) -> None:
    """Writes a whole checkpoint folder, which appears under its name when it is on the disk."""
    with new_folder(final, replace=True) as folder:
        files = write_parts(folder, tensors, document)
        if write_text is not None:
            files |= write_text_processor(text_folder(folder), write_text)
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        manifest = Manifest(step=step, serial=serial, files=files, versions=versions, run=run)
        with HashingFile(folder / MANIFEST) as file:
            file.write(manifest.to_bytes())


def write_parts(
    folder: Path, tensors: Mapping[str, Mapping[str, Tensor]], document: bytes
) -> dict[str, FileEntry]:
    """Writes one safetensors file for each part with tensors, and ``state.json``."""
    files = {}
    for name, values in tensors.items():
        if values:
            path = folder / tensor_file(name)
            with HashingFile(path, needed=tensors_size(values)) as file:
                write_tensors(file, values)
            files[path.name] = FileEntry(size=file.size, sha256=file.sha256)
    with HashingFile(folder / STATE, needed=len(document)) as file:
        file.write(document)
    files[STATE] = FileEntry(size=file.size, sha256=file.sha256)
    return files


def write_text_processor(folder: Path, write_text: Callable[[Path], None]) -> dict[str, FileEntry]:
    """Lets the text processor write into a new folder, and hashes what it wrote."""
    with storing(folder):
        operations.mkdir(folder)
    write_text(folder)
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise CheckpointError(
                f"The text processor wrote {path.name}, which is not a regular file."
            )
        if path.is_file():
            name = path.relative_to(folder.parent).as_posix()
            files[name] = FileEntry.of(path)
    return files

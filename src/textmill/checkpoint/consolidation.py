"""A checkpoint in shards made plain: one file a part, as one process would have saved it."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from textmill.checkpoint.layout import MANIFEST, sharded_part, tensor_file
from textmill.checkpoint.manifest import Manifest
from textmill.checkpoint.shards import Piece, pieces_of, shards_of, whole_shape
from textmill.checkpoint.tensors import DTYPES, header, order
from textmill.checkpoint.writing import check_room
from textmill.errors import CheckpointError
from textmill.runtime.disk import HashingFile
from textmill.runtime.files import make_folder, new_folder, opened
from textmill.runtime.sealed import FileEntry

CHUNK = 4 << 20
"""Bytes that are held at once."""


def consolidate(path: Path) -> bool:
    """Puts a plain checkpoint in the place of one in shards; returns whether it was in shards.

    Every byte is verified before. The two are the same checkpoint: the run's pointers mean either.
    What is killed leaves one or the other. It takes the checkpoint's size of room, and no memory.

    Raises:
        CheckpointError: A byte is not as saved, or the shards do not fit together.
        StorageError: No room, or the disk failed.
    """
    manifest = Manifest.read(path)
    parts = sorted({part for name in manifest.files if (part := sharded_part(name))})
    if not parts:
        return False
    if problems := manifest.unusable(path):
        raise CheckpointError("; ".join(problems[:3]))
    check_room(path.parent, sum(entry.size for entry in manifest.files.values()), before=None)
    before = hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()
    with new_folder(path, replace=True) as folder:
        files = {}
        for name, entry in manifest.files.items():
            if sharded_part(name) is None:
                files[name] = _copied(path / name, folder / name)
                if files[name] != entry:
                    raise CheckpointError(f"{name}: it changed while it was read")
        for part in parts:
            shards = shards_of(part, manifest.files)
            files[tensor_file(part)] = _joined(path, manifest, shards, folder / tensor_file(part))
        with HashingFile(folder / MANIFEST) as file:
            file.write(replace(manifest, files=files, made_of=before).to_bytes())
    return True


def _joined(path: Path, manifest: Manifest, shards: Sequence[str], target: Path) -> FileEntry:
    """Writes the file of a part, of the rows in its shards."""
    pieces = pieces_of(path, manifest, shards)
    sizes = {
        name: torch.empty(whole_shape(of), dtype=DTYPES[of[0].dtype], device="meta")
        for name, of in pieces.items()
    }
    with HashingFile(target) as file:
        file.write(header(sizes))
        for name in order(sizes):
            for piece in pieces[name]:
                _copy(path, piece, file)
    return FileEntry(size=file.size, sha256=file.sha256)


def _copy(path: Path, piece: Piece, target: HashingFile) -> None:
    left = piece.row_bytes * (piece.shape[0] if piece.shape else 1)
    with opened(path / piece.file, CheckpointError) as (file, _):
        file.seek(piece.place)
        while left:
            data = file.read(min(CHUNK, left))
            if not data:
                raise CheckpointError(f"{piece.file}: it changed while it was read")
            target.write(data)
            left -= len(data)


def _copied(source: Path, target: Path) -> FileEntry:
    make_folder(target.parent, parents=True)
    with opened(source, CheckpointError) as (file, _), HashingFile(target) as copy:
        while data := file.read(CHUNK):
            copy.write(data)
    return FileEntry(size=copy.size, sha256=copy.sha256)

"""Shards: one file a rank, of the rows that it holds of each tensor of a part.

The files are those of ``torch.distributed.checkpoint``'s safetensors storage: tensors of one name
in several files, and in the header of each where it begins. They are written and read here, since
that storage has no hash and no bound, and gives a file its name before it is whole.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from textmill.checkpoint.layout import shard_file
from textmill.checkpoint.manifest import Manifest
from textmill.checkpoint.tensors import (
    DTYPES,
    OFFSETS,
    SHARDING,
    tensors_size,
    write_tensors,
)
from textmill.errors import CheckpointError
from textmill.runtime.disk import HashingFile
from textmill.runtime.files import opened, parse_json
from textmill.runtime.sealed import FileEntry, is_count

LARGEST_HEADER = 64 << 20
"""Bytes of a header; 10,000 tensors have 2 million."""


@dataclass(frozen=True, kw_only=True)
class TensorRows:
    """The rows of a tensor that one rank holds."""

    first: int
    """The first of them, from 0."""
    count: int
    """How many; may be 0."""
    shape: tuple[int, ...]
    """Of the whole tensor."""


RowsOf = Callable[[str], TensorRows | None]
"""What a rank holds of a tensor, by its name in a part; None: all of it, as every rank does."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Rows of a tensor in a file."""

    file: str
    first: int
    """The first row, from 0."""
    shape: tuple[int, ...]
    dtype: str
    """As safetensors names it."""
    place: int
    """Byte of the file where they begin."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row; of a tensor without rows, of all of it."""
        return DTYPES[self.dtype].itemsize * math.prod(self.shape[1:])


Pieces = Mapping[str, Sequence[Piece]]


def write_shards(
    folder: Path,
    parts: Mapping[str, Mapping[str, Tensor]],
    rows: Mapping[str, RowsOf],
    *,
    rank: int,
    world_size: int,
) -> dict[str, FileEntry]:
    """Writes one rank's rows of parts; what every rank holds is written by rank 0.

    Raises:
        CheckpointError: A tensor has other rows than are said.
    """
    entries = {}
    for part, tensors in parts.items():
        own, first = {}, {}
        for name, tensor in tensors.items():
            where = rows[part](name) if tensor.ndim else None
            if where is not None and tensor.shape != (where.count, *where.shape[1:]):
                raise CheckpointError(
                    f"Part {part!r}: {name!r} is {list(tensor.shape)}, which is not a share of "
                    f"{list(where.shape)}; it cannot be saved by ranks that divide the weights."
                )
            if rank == 0 if where is None else where.count:
                own[name], first[name] = tensor, 0 if where is None else where.first
        path = folder / shard_file(part, rank + 1, world_size)
        with HashingFile(path, needed=tensors_size(own)) as file:
            write_tensors(file, own, first=first)
        entries[path.name] = FileEntry(size=file.size, sha256=file.sha256)
    return entries


def shards_of(part: str, names: Collection[str]) -> list[str]:
    """The files of a part that is in shards, in order; none of one that is not.

    Raises:
        CheckpointError: One is missing.
    """
    pattern = re.compile(re.escape(part) + r"\.shard-\d{5}-of-(\d{5})\.safetensors")
    found = {name: int(match[1]) for name in names if (match := pattern.fullmatch(name))}
    if not found:
        return []
    count = max(found.values())
    wanted = [shard_file(part, number, count) for number in range(1, count + 1)]
    if missing := [name for name in wanted if name not in found]:
        raise CheckpointError(f"{missing[0]}: not in the manifest, which has other shards")
    return wanted


def pieces_of(folder: Path, manifest: Manifest, files: Sequence[str]) -> Pieces:
    """The tensors in some files of a part, each of which is verified; rows in their order.

    Raises:
        CheckpointError: A byte is not as saved; or what the files say of a tensor does not fit.
    """
    found: dict[str, list[Piece]] = {}
    for file in files:
        if problems := manifest.damage(folder, [file]):
            raise CheckpointError(problems[0])
        for name, piece in _listed(folder, file):
            found.setdefault(name, []).append(piece)
    for name, pieces in found.items():
        pieces.sort(key=lambda piece: piece.first)
        _check(name, pieces)
    return found


def read_shards(
    folder: Path, manifest: Manifest, files: Sequence[str], rows: RowsOf | None = None
) -> dict[str, Tensor]:
    """The tensors of a part, or of each the rows that a rank holds; nothing else is read of them.

    Raises:
        CheckpointError: As :func:`pieces_of`; or a tensor is of another shape than is wanted.
    """
    tensors, reads = {}, list[tuple[Piece, Tensor, int, int]]()
    for name, pieces in pieces_of(folder, manifest, files).items():
        shape = whole_shape(pieces)
        where = rows(name) if rows is not None and shape else None
        if where is not None and shape != where.shape:
            raise CheckpointError(f"{name!r} wants {list(where.shape)}, found {list(shape)}")
        first, count = (
            (0, shape[0] if shape else 1) if where is None else (where.first, where.count)
        )
        size = (count, *shape[1:]) if shape else shape
        tensors[name] = torch.empty(size, dtype=DTYPES[pieces[0].dtype])
        for piece in pieces:
            begin = max(first, piece.first)
            end = min(first + count, piece.first + (piece.shape[0] if shape else 1))
            if begin < end and tensors[name].numel():
                at = tensors[name].reshape(-1).view(torch.uint8)
                width = piece.row_bytes
                into = at[(begin - first) * width : (end - first) * width]
                reads.append((piece, into, begin, end))
    for piece, into, begin, _ in reads:
        with opened(folder / piece.file, CheckpointError) as (file, _):
            file.seek(piece.place + (begin - piece.first) * piece.row_bytes)
            if file.readinto(into.numpy().data) != len(into):
                raise CheckpointError(f"{piece.file}: it changed while it was read")
    return tensors


def whole_shape(pieces: Sequence[Piece]) -> tuple[int, ...]:
    """The shape of the tensor that pieces are of."""
    shape = pieces[-1].shape
    return (pieces[-1].first + shape[0], *shape[1:]) if shape else shape


def _listed(folder: Path, name: str) -> Iterator[tuple[str, Piece]]:
    """The tensors that the header of a file lists, all of whose bytes are theirs."""
    with opened(folder / name, CheckpointError) as (file, size):
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(LARGEST_HEADER, size - 8):
            raise CheckpointError(
                f"{name}: not a safetensors file: its header has {length:,} bytes"
            )
        header = parse_json(file.read(length), name, CheckpointError)
    refused = CheckpointError(f"{name}: its header is not one of tensors and where they begin")
    if not isinstance(header, dict):
        raise refused
    metadata, at = header.pop("__metadata__", {}), 0
    text = metadata.get(SHARDING) if isinstance(metadata, dict) else None
    sharding = parse_json(text.encode(), name, CheckpointError) if isinstance(text, str) else None
    for key, entry in sorted(header.items(), key=lambda item: _begin(item[1])):
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise refused
        shape, dtype = entry["shape"], entry["dtype"]
        if not (isinstance(shape, list) and all(map(is_count, shape)) and dtype in DTYPES):
            raise refused
        end = at + DTYPES[dtype].itemsize * math.prod(shape)
        offsets = [0] * len(shape) if sharding is None else _offsets(sharding, key)
        if entry["data_offsets"] != [at, end] or len(offsets) != len(shape) or any(offsets[1:]):
            raise refused
        place, first = 8 + length + at, offsets[0] if offsets else 0
        yield key, Piece(file=name, first=first, shape=tuple(shape), dtype=dtype, place=place)
        at = end
    if 8 + length + at != size:
        raise refused


def _begin(entry: Any) -> tuple[int, int]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if isinstance(offsets, list) and len(offsets) == 2 and all(map(is_count, offsets)):
        return offsets[0], offsets[1]
    return 0, 0


def _offsets(sharding: Any, key: str) -> list[int]:
    known = sharding.get(key) if isinstance(sharding, dict) else None
    offsets = known.get(OFFSETS) if isinstance(known, dict) else None
    return offsets if isinstance(offsets, list) and all(map(is_count, offsets)) else [-1, -1]


def _check(name: str, pieces: Sequence[Piece]) -> None:
    """Refuses pieces that do not give one tensor, each row of it once."""
    at = 0
    for piece in pieces:
        alike = (piece.dtype, piece.shape[1:]) == (pieces[0].dtype, pieces[0].shape[1:])
        if not alike or (len(pieces) > 1 and not piece.shape):
            raise CheckpointError(f"{piece.file}: {name!r} is another tensor than in other shards")
        if piece.first != at:
            what = "rows twice" if piece.first < at else "rows missing"
            raise CheckpointError(
                f"{piece.file}: {name!r} has {what}: it begins at row {piece.first}, not {at}"
            )
        at += piece.shape[0] if piece.shape else 1

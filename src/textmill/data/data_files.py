"""The files of a data set: which they are, and their rows one after the other."""

import difflib
import glob
import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textmill.data.bad_rows import KEPT, BadRow, RowCount
from textmill.data.formats.row_format import RowFormat
from textmill.data.line_blocks import FileNotes
from textmill.data.mixture import Mixture
from textmill.data.readers import Table, cached_table, read_table
from textmill.data.rows import Rows, StoredRows
from textmill.errors import StorageError, UserError

LOG = logging.getLogger("textmill")

DataPath = tuple[Path, ...] | Path
"""A file, a folder of files or of one Hugging Face data set, a pattern as ``data/part-*``, or
several of these."""

SHOWN_NAMES = 10  # files of the folder where a path's own name is like none of them


class MissingFileError(UserError):
    """A file of data that is not there."""


def data_files(path: DataPath) -> tuple[Path, ...]:
    """The files that a path means: those of a list in its order, all others by their names.

    A folder's are those directly in it whose names begin with neither a dot nor an underscore; of
    one that ``save_to_disk`` of Hugging Face ``datasets`` wrote, the files of rows.
    """
    given = [path] if isinstance(path, str | Path) else [*path]
    found = [file for one in map(Path, given) for file in _named_as(one) or [_checked(one)]]
    if not found:
        raise UserError("path: wanted a file, or several, found an empty list.")
    twice = next((file for file, count in Counter(found).items() if count > 1), None)
    if twice is not None:
        raise UserError(f"path: {twice} is there twice; each of its rows would count twice.")
    for file in found:
        try:
            with file.open("rb") as stream:
                is_empty = not stream.read(1)
        except OSError as error:
            raise UserError(f"path: {file} cannot be read: {error.strerror}.") from error
        if is_empty and len(found) > 1:
            raise UserError(
                f"path: {file}, one of {len(found)} files, is empty, as after a copy that failed. "
                "Put it back as it was, or take it out."
            )
    return tuple(found)


def first_file(path: DataPath) -> Path:
    """The first of the files; if there is none, the path as it was written."""
    first = Path(path if isinstance(path, str | Path) else next(iter(path), "."))
    return next(iter(_named_as(first)), first)


def _named_as(path: Path) -> list[Path]:
    """The files of a folder, or of a pattern; one of that very name is no pattern."""
    if (path / "dataset_dict.json").is_file():
        splits = sorted(p.name for p in path.iterdir() if p.is_dir())
        raise UserError(f"path: {path} has the splits {', '.join(splits)}: name the folder of one.")
    if (path / "dataset_info.json").is_file():
        return sorted(path.glob("data-*.arrow"))
    if path.is_dir():
        return sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
    if path.exists() or path.is_symlink() or not glob.has_magic(str(path)):
        return []
    found = map(Path, glob.glob(str(path), recursive=True))
    return sorted(file for file in found if file.is_file())


def _checked(path: Path) -> Path:
    """The path of a file that is there."""
    if path.is_file():
        return path
    if path.is_dir():
        raise UserError(f"path: the folder {path} has no files; folders in it are not read.")
    if path.exists() or path.is_symlink():
        kind = "pipe or device" if path.exists() else "broken link"
        raise UserError(f"path: wanted a file, found the {kind} {path}.")
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    name = path.relative_to(folder).parts[0] if path.parts else str(path)
    names = sorted(p.name for p in folder.iterdir())
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        there = f" Did you mean {' or '.join(repr(str(folder / n)) for n in near)}?"
    elif names:
        more = ", ..." if len(names) > SHOWN_NAMES else ""
        there = f" The folder {folder} has {', '.join(names[:SHOWN_NAMES])}{more}."
    else:
        there = f" The folder {folder} is empty."
    where = "" if path.is_absolute() else f" (the working folder is {Path.cwd()})"
    gone = "" if folder == path.parent else f" The folder {folder / name} does not exist."
    raise MissingFileError(f"path: there is no file {path}{where}.{gone}{there}")


@dataclass(frozen=True)
class ReadFiles:
    """What one pass over the files has found."""

    paths: tuple[Path, ...]
    """The files."""
    layout: RowFormat
    """How they were read."""
    tables: Sequence[Table]
    """What is in each file; the rows of all are in memory, or of all in the cache."""

    @cached_property
    def bad_rows(self) -> list[BadRow]:
        """The rows that cannot be used, of all files; of a great many the first `KEPT`."""
        return [row for table in self.tables for row in table.bad_rows][:KEPT]

    @cached_property
    def count(self) -> RowCount:
        counts = [(c.good, c.bad, c.total) for c in (table.count for table in self.tables)]
        return RowCount(*map(sum, zip(*counts, strict=True)))

    @cached_property
    def lines(self) -> list[int]:
        return [int(line) for table in self.tables for line in table.lines]

    @property
    def sha256(self) -> str | list[str]:
        """Of the file's bytes; of several files that of each, in their order."""
        digests = [table.sha256 for table in self.tables]
        return digests[0] if len(digests) == 1 else digests

    @property
    def notes(self) -> FileNotes:
        every = [asdict(table.notes) for table in self.tables]
        ids = next((notes["same_id"] for notes in every if notes["same_id"]), "")
        sums = {name: sum(n[name] for n in every) for name in every[0] if name != "same_id"}
        return FileNotes(**sums, same_id=ids)

    def place_of(self, row: int) -> str:
        """The file, and the line in it of a good row by its number from 0."""
        part = bisect_right(self._ends, row)
        table = self.tables[part]
        return f"{self.paths[part]}:{table.lines[row - self._ends[part] + table.count.good]}"

    @cached_property
    def _ends(self) -> list[int]:
        """The number of the row behind the last good one of each file."""
        return [*accumulate(table.count.good for table in self.tables)]

    def rows(self) -> Rows | StoredRows:
        if self.tables[0].batches is None:
            return Rows(self._columns, place_of=self.place_of)
        batches = [batch for table in self.tables for batch in table.batches or ()]
        size = sum(path.stat().st_size for path in self.paths)
        names = tuple(self.layout.columns)
        return StoredRows(names, batches, num_bytes=size, place_of=self.place_of)

    @cached_property
    def _columns(self) -> dict[str, list[str]]:
        first, *more = [table.columns for table in self.tables]
        if not more:
            return first
        return {name: [*chain(*(one[name] for one in (first, *more)))] for name in first}


def read_files(paths: tuple[Path, ...], layout: RowFormat, *, held: int) -> ReadFiles:
    """Reads files in one pass; if they have more than ``held`` bytes, their rows are cached."""
    if sum(path.stat().st_size for path in paths) > held:
        try:
            return ReadFiles(paths, layout, [cached_table(path, layout) for path in paths])
        except StorageError as error:
            of = f"{paths[0]}, {len(paths)} files" if len(paths) > 1 else paths[0]
            LOG.warning("%s: the rows are held in memory: %s", of, error)
    return ReadFiles(paths, layout, [read_table(path, layout) for path in paths])


def mixture_of(
    config: Any, files: ReadFiles, numbers: NDArray[np.int64] | None, *, ingredient: str
) -> Mixture | None:
    """The mixture that a data set's settings say; the entries of ``path`` are its sources."""
    setting = "weights" if config.weights is not None else "temperature"
    entries = config.path if isinstance(config.path, tuple | list) else (config.path,)
    if len(entries) == 1 and not config.shuffle:
        return None
    if len(entries) == 1 or not config.shuffle:
        found = "one, " + str(entries[0]) if len(entries) == 1 else "shuffle=false"
        raise UserError(
            f"{ingredient}.{setting}: wanted several entries of {ingredient}.path, mixed in an "
            f"order of their own (shuffle=true); found {found}. To read every row once: "
            f"{ingredient}.{setting}=null"
        )
    good = iter([table.count.good for table in files.tables])
    sizes = tuple(sum(next(good) for _ in data_files(entry)) for entry in entries)
    names = tuple(map(str, entries))
    if numbers is not None:
        sizes = Mixture(names, sizes, ()).of_rows(numbers).sizes
    return Mixture.of(names, sizes, weights=config.weights, temperature=config.temperature)

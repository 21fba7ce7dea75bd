"""Pairs of sentences from a Hugging Face ``datasets`` data set: an object, or a folder of one."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config import Component
from textmill.config import Config as BaseConfig
from textmill.data import registries
from textmill.data.bad_rows import (
    KEPT,
    AccountedRows,
    BadRow,
    RowCount,
    check_bad_rows,
    tell_left_out,
)
from textmill.data.batching import Batched, MaxTokens
from textmill.data.formats.cells import ANSWERS
from textmill.data.formats.json_lines import JsonLinesFormat, json_lines_format, pick_row
from textmill.data.formats.row_format import Row
from textmill.data.holdout import Holdout, holdout_of
from textmill.data.rows import ChosenRows, Rows, StoredRows
from textmill.errors import DataError, MissingExtraError, UserError
from textmill.text.cells import ListCell, RowCheck

__all__ = ["DatasetRows", "HuggingFacePairs"]

READ_ROWS = 1000  # rows asked of the data set at once
EXCERPT = 80  # characters of a bad row


class DatasetRows(StoredRows):
    """The good rows of a data set, which stay in it.

    Args:
        dataset: A ``datasets.Dataset``.
        layout: Which of its columns are taken.
        numbers: The good rows' numbers in it, rising.
        num_bytes: Bytes of their text.
        name: What errors call the data set.
    """

    def __init__(
        self,
        dataset: Any,
        layout: JsonLinesFormat,
        numbers: NDArray[np.int64],
        *,
        num_bytes: int,
        name: str,
    ) -> None:
        super().__init__(tuple(layout.columns), num_bytes)
        self._dataset, self._layout, self._numbers = dataset, layout, numbers
        self._name = name

    @override
    def __len__(self) -> int:
        return len(self._numbers)

    @override
    def read(self, start: int, stop: int) -> Rows:
        found = _objects(self._dataset, self._numbers[start:stop])
        rows = list[Row]()
        for row in (pick_row(each, self._layout) for each in found):
            if isinstance(row, str):
                raise DataError(f"A row of the data set was changed since it was read: {row}.")
            rows.append(row)
        return Rows({name: [row[at] for row in rows] for at, name in enumerate(self.names)})

    @override
    def place_of(self, row: int) -> str:
        """The data set's name, and a row's number in it from 1."""
        return f"{self._name}:{self._numbers[row] + 1}"


@registries.datasets.register("huggingface_pairs")
class HuggingFacePairs(Component, Batched, AccountedRows):
    """Rows of a data set of Hugging Face ``datasets`` (extra ``huggingface``), mapped into memory.

    In a script, :meth:`of` takes a data set that is loaded already.
    """

    class Config(BaseConfig):
        """Which data set, which of its columns, and how rows are batched."""

        path: Path
        """A folder that ``save_to_disk`` wrote."""
        split: str | None = None
        """The split, where the folder has several."""
        columns: tuple[str, ...] | dict[str, int | str] = ("source", "target")
        """Names of columns; or each name with the data set's name for it, where a.b is the field b
        of the column a (translation.en)."""
        max_tokens: MaxTokens = 2048
        """Padded source and target cells of one optimizer step, over all ranks; not used where
        batch_size is set. auto: what fits and pays, found when a run starts."""
        batch_size: int | None = None
        """Rows of one optimizer step, over all ranks."""
        shuffle: bool = True
        """Another order in each epoch, a pure function of the run's seed and the epoch."""
        max_bad_rows: int = 0
        """How many rows may be left out because they are no text; decided before step 1."""
        holdout: float = 0.0
        """Share of the rows held out for valid_data, if that has no data of its own: chosen by a
        hash of each row, so that rows keep their side as others are added."""
        held_out: bool = False
        """Whether these are the rows that holdout leaves to valid_data, and not all others."""
        stratify: str | None = None
        """Column whose every value keeps a row for training, whatever holdout takes; null: the
        column of the labels, if a row has one label."""

    def __init__(self, config: "HuggingFacePairs.Config", *, dataset: Any = None) -> None:
        self.config = config
        self._layout = json_lines_format(config.columns)
        _ = self.batching  # refuses sizes that are none
        self.holdout = holdout_of(config)
        self.is_held_out = self.holdout is not None and self.holdout.held_out
        self._dataset = _loaded(config) if dataset is None else dataset
        self._name = str(config.path)
        _check_columns(self._dataset, self._layout, self._name)
        self._rows: StoredRows | None = None
        self._bad: list[BadRow] = []
        self._num_bad = 0
        self._digest = hashlib.sha256()

    @classmethod
    def of(cls, dataset: Any, **settings: Any) -> "HuggingFacePairs":
        """The rows of a ``datasets.Dataset``; the settings are those of ``Config`` but ``path``.

        Raises:
            UserError: The data set lacks a column, or has none in particular (a stream).
        """
        name = f"<{type(dataset).__name__}>"
        if not (hasattr(dataset, "column_names") and hasattr(dataset, "__len__")):
            raise UserError(
                f"dataset: wanted a datasets.Dataset with a length, found {name}. Of an iterable "
                "one, give ready batches, or the rows of list(dataset.take(n))."
            )
        return cls(cls.Config(path=Path(name), **settings), dataset=dataset)

    def check_rows(self, check: RowCheck) -> None:
        """Counts rows that do not pass as bad ones; of no effect where they were read."""
        if self._rows is None:
            self._layout = replace(self._layout, check=check)

    @override
    def read(self, *, ingredient: str = "train_data") -> "HuggingFacePairs":
        """Reads all rows, once, and decides about the bad ones.

        Args:
            ingredient: What the recipe calls this data, for the setting that an error proposes.

        Raises:
            BadRowsError: There are more bad rows than ``max_bad_rows``.
            DataError: There is no good row at all.
        """
        rows: StoredRows = self._rows or self._read_all()
        total = len(self._dataset)
        count = RowCount(total - self._num_bad, self._num_bad, total)
        check_bad_rows(
            self._bad,
            count,
            allowed=self.config.max_bad_rows,
            setting=f"{'train_data' if self.is_held_out else ingredient}.max_bad_rows",
        )
        if self._rows is None and not self.is_held_out:
            setting = f"{ingredient}.max_bad_rows"
            tell_left_out(self._bad, count, setting=setting, name=self._name)
        if not len(rows):
            raise DataError(f"{self._name}: wanted rows, found {count.bad} bad ones only.")
        if self._rows is None and self.holdout is not None:
            rows = ChosenRows(rows, self.holdout.of(rows, name=self._name))
        self._rows = rows
        return self

    def _read_all(self) -> DatasetRows:
        good, size = list[int](), 0
        self._bad, self._digest = [], hashlib.sha256(repr(self._layout.columns).encode())
        for number, found in enumerate(_objects(self._dataset, np.arange(len(self._dataset)))):
            row = pick_row(found, self._layout)
            if isinstance(row, str):
                if len(self._bad) < KEPT:
                    shown = repr(found)[:EXCERPT]
                    self._bad.append(BadRow(self._name, number + 1, 0, row, shown))
                continue
            good.append(number)
            text = "\0".join(map(_told, row)).encode() + b"\0"  # no text has one itself
            size += len(text)
            self._digest.update(text)
        numbers, self._num_bad = np.array(good, np.int64), len(self._dataset) - len(good)
        return DatasetRows(self._dataset, self._layout, numbers, num_bytes=size, name=self._name)

    @override
    def rows(self) -> StoredRows:
        """The good rows in the data set's order."""
        if self._rows is None:
            self.read()
        assert self._rows is not None
        return self._rows

    def place_of(self, row: int) -> str:
        """The data set's name, and the number in it of a good row, from 1."""
        return self.rows().place_of(row)

    @override
    def all_bad_rows(self) -> tuple[Sequence[BadRow], int]:
        """Their line is their number in the data set, from 1."""
        return self._bad, self._num_bad

    def fingerprint(self) -> str:
        """64 hexadecimal digits of the rows' text, of the columns' names, and of the side."""
        return self.side_fingerprint(self.holdout)

    def side_fingerprint(self, holdout: Holdout | None) -> str:
        """The :meth:`fingerprint` that this data set has with another holdout; None: with none."""
        self.rows()
        if holdout is None:
            return self._digest.hexdigest()
        side = json.dumps(asdict(holdout), sort_keys=True)
        return hashlib.sha256(f"{self._digest.hexdigest()} {side}".encode()).hexdigest()


def _told(cell: str) -> str:
    """A cell for the fingerprint: a list tells where its texts end, if its spaces do not.

    Lists of words are told as their text, as they were when all lists were read as text.
    """
    if isinstance(cell, ListCell) and cell.split() != [*cell.parts]:
        return "\0".join(["", *cell.parts, ""])
    return cell


def _loaded(config: "HuggingFacePairs.Config") -> Any:
    """The data set in a folder that ``save_to_disk`` wrote."""
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", extra="huggingface", what="huggingface_pairs") from None
    if not config.path.is_dir():
        raise UserError(f"path: wanted a folder that save_to_disk wrote; {config.path} is none.")
    try:
        found = datasets.load_from_disk(str(config.path))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"path: {config.path} is no data set that save_to_disk wrote: "
            f"{(str(error).splitlines() or ['?'])[0]:.200}"
        ) from error
    splits = list(found) if isinstance(found, dict) else []
    if splits and config.split not in splits:
        raise UserError(f"split: {config.path} has {', '.join(splits)}; found {config.split!r}.")
    if not splits and config.split is not None:
        raise UserError(f"split: {config.path} has no splits; leave split={config.split} out.")
    return found[config.split] if splits else found


def _check_columns(dataset: Any, layout: JsonLinesFormat, name: str) -> None:
    known = list(dataset.column_names)
    known += ANSWERS[1:] if ANSWERS[0] in known else ()  # its object may have both
    for key in map(str, layout.columns.values()):
        if key not in known and key.split(".")[0] not in known:
            raise UserError(
                f"columns: wanted the column {key!r} of {name}, found "
                f"{', '.join(dataset.column_names) or 'none'}."
            )


def _objects(dataset: Any, numbers: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Rows by number as objects; asked for by many, which costs a tenth of one by one."""
    for first in range(0, len(numbers), READ_ROWS):
        part = numbers[first : first + READ_ROWS]
        start, stop = int(part[0]), int(part[-1]) + 1
        # Most have no gap; a slice costs a tenth of a list of numbers.
        found = dataset[start:stop] if stop - start == len(part) else dataset[part.tolist()]
        for values in zip(*found.values(), strict=True):
            yield dict(zip(found, values, strict=True))

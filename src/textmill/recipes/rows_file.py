"""Rows that are at hand as a file, which runs read, go on with and are measured on."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from textmill.config.planning.overrides import Overrides, words_of
from textmill.errors import DataError
from textmill.exported.row_predictor import as_mapping, rows_in
from textmill.runtime.files import cache_folder, make_folder, write_atomic

PLACE = "rows"
"""The folder of rows in the cache."""
EMPTY = ("NaT", "<NA>")
"""Cells of pandas that are no value, as text."""


def file_words(overrides: Overrides) -> list[str]:
    """Settings as words of a command line; rows in place of a path become a file in the cache."""
    return words_of(_in_files(overrides) if isinstance(overrides, Mapping) else overrides)


def _in_files(settings: Mapping[str, Any]) -> dict[str, Any]:
    found = dict[str, Any]()
    for name, value in settings.items():
        if isinstance(value, Mapping) and "." not in name:
            found[name] = _in_files(value)
        elif name.rpartition(".")[2] == "path" and not _is_path(value):
            found[name] = str(rows_file(value, cache_folder() / PLACE))
        else:
            found[name] = value
    return found


def _is_path(value: Any) -> bool:
    """Whether it is a path or a list of paths, or null."""
    parts = value if isinstance(value, list | tuple) else [value]
    return all(part is None or isinstance(part, str | Path | float | int) for part in parts)


def rows_file(rows: Iterable[Any], folder: Path) -> Path:
    """Writes rows as JSON lines into a folder, under a name that their content decides.

    Args:
        rows: Mappings of columns; or a table: a DataFrame of pandas or polars, a Table of pyarrow,
            a Dataset of Hugging Face, whose numbers of labels become their names.
        folder: Made if it is missing.

    Raises:
        DataError: A row has no names of columns, or there is none.
    """
    features = getattr(rows, "features", None)
    kinds = features.items() if isinstance(features, Mapping) else ()
    names = {name: kind.int2str for name, kind in kinds if hasattr(kind, "int2str")}
    lines = list[str]()
    for number, given in enumerate(rows_in(rows)):
        row = as_mapping(given)
        if row is None:
            kind = type(given).__name__
            raise DataError(f"Row {number}: wanted a mapping of columns, found {kind}.")
        cells = {str(name): plain_cell(value) for name, value in row.items()}
        for name in names:  # a label that is not known has the number -1
            value = cells.get(name)
            cells[name] = names[name](value) if isinstance(value, int) and value >= 0 else None
        lines.append(f"{json.dumps(cells, ensure_ascii=False)}\n")
    if not lines:
        raise DataError("Wanted rows, found none.")
    content = "".join(lines).encode("utf-8", "surrogatepass")
    path = folder / f"rows-{hashlib.sha256(content).hexdigest()[:12]}.jsonl"
    if not path.exists():
        make_folder(folder)
        write_atomic(path, content)
    return path


def plain_cell(value: Any) -> Any:
    """A cell as JSON has it: what is no number is null, a date is text.

    Example:
        >>> import numpy as np
        >>> plain_cell({"a": float("nan"), "b": np.array([1, 2]), "c": Path("x")})
        {'a': None, 'b': [1, 2], 'c': 'x'}
    """
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {str(name): plain_cell(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_cell(inner) for inner in value]
    text = str(value)
    return None if text in EMPTY else text

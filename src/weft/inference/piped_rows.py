"""What comes through a pipe: rows as the run's data has them, or lines of text.

A pipe has no suffix. It is read as rows where a header or the labels show that it is; as lines
where nothing speaks for rows; and where both may be meant it is refused, with the words for each.
"""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from pathlib import Path

from weft.data.bad_rows import BadRow
from weft.data.data_files import first_file
from weft.data.first_row import first_cells
from weft.data.formats.by_suffix import format_name
from weft.data.formats.header import plain_name
from weft.data.formats.row_format import Row, RowFormat
from weft.data.text_pairs import TextPairs
from weft.errors import DataError, UserError
from weft.inference.input_files import CLEARLY, InputFile, input_layout
from weft.text.labels import Labels

__all__ = ["piped_layout"]


def piped_layout(
    head: bytes,
    config: TextPairs.Config,
    inputs: Sequence[str],
    labels: Mapping[str, Labels],
    *,
    name: str = "standard input",
    said: Collection[str] = (),
) -> RowFormat | None:
    r"""How what comes through a pipe becomes rows to predict; None where it is lines of text.

    Args:
        head: Its first lines.
        config: How the training data was read, with what is said of these rows.
        inputs: The columns that the model reads.
        labels: Those that are known, by their column.
        name: What errors call it.
        said: Which settings are said of these rows: they are rows then.

    Raises:
        UserError: It may be rows or lines.
        DataError: As `input_layout`.

    Example:
        >>> config = TextPairs.Config(path=Path("sms.csv"), columns=("label", "text"))
        >>> labels = {"label": Labels(["ham", "spam"])}
        >>> piped_layout(b"Win, win!\n", config, ["text"], labels) is None
        True
        >>> layout = piped_layout(b"spam,Win!\nham,Hi.\n", config, ["text"], labels)
        >>> [row for _, row in layout.scan(BytesIO(b"spam,Win!\n"), "-")]
        [('Win!',)]
    """
    with tempfile.TemporaryDirectory(prefix="weft-pipe-") as folder:
        path = (Path(folder) / "rows").with_suffix(first_file(config.path).suffix)
        path.write_bytes(head)
        try:
            file = InputFile(path, config, tuple(config.columns), frozenset())
            if not said and not _are_rows(file, head, inputs, labels, name=name):
                return None
            return input_layout(path, config, inputs, said=said)
        except DataError as error:
            raise DataError(str(error).replace(str(path), name)) from None


def _are_rows(
    file: InputFile,
    head: bytes,
    inputs: Sequence[str],
    labels: Mapping[str, Labels],
    *,
    name: str,
) -> bool:
    """Whether it has the columns of the run's data; a UserError where it may have."""
    config = file.config
    kind = format_name(first_file(config.path), config.format)
    if kind == "jsonl":
        return head.lstrip().startswith(b"{")
    if kind not in ("tsv", "csv", "conll"):
        return False
    if kind != "conll" and _has_header(file, inputs):
        return True
    rows = _rows(file, head)
    good = [row for row in rows if not isinstance(row, BadRow)]
    fits = bool(good) and len(good) >= CLEARLY * (len(rows) - len(good))
    known = {role: labels[role] for role in config.columns if role in labels}
    if fits and known:
        at = {role: [*config.columns].index(role) for role in known}
        right = sum(all(_has(known[role], row[at[role]]) for role in known) for row in good)
        if right >= CLEARLY * (len(good) - right):
            return True
    if fits and not known and kind == "tsv" and len(config.columns) > 1:
        return True
    comma = (config.delimiter or ",").encode()
    if what := _what_speaks_for_rows(kind, head, comma, fits=fits and not known):
        raise UserError(
            f"{name} may be rows of {kind}, as the run's data is, or lines of text: it has {what}. "
            f"Say which: format={kind} for rows (weft predict RUN - format={kind}), or --lines."
        )
    return False


def _has_header(file: InputFile, inputs: Sequence[str]) -> bool:
    """Whether the first line has the names of what the model reads, or those of the run's data."""
    cells = first_cells(file.path, file.read(dict.fromkeys(inputs, 0), header=False)) or ()
    named = {*map(plain_name, map(str, _named(file.config, inputs)))}
    names = {*map(plain_name, cells)}
    return named <= names or (file.config.header and file.is_header_of_data(cells))


def _named(config: TextPairs.Config, inputs: Sequence[str]) -> list[str]:
    """The inputs' names in a header."""
    places = config.columns if isinstance(config.columns, Mapping) else {}
    return [at if isinstance(at := places.get(name), str) else name for name in inputs]


def _rows(file: InputFile, head: bytes) -> list[Row | BadRow]:
    """The rows that they are where they have the columns of the run's data; none by names."""
    places = file.config.columns
    if not isinstance(places, Mapping):
        places = {name: at for at, name in enumerate(places)}
    if any(isinstance(at, str) for at in places.values()):
        return []
    layout = file.read(places, header=False)
    return [row for _, row in layout.scan(BytesIO(head), "")]


def _has(labels: Labels, cell: str) -> bool:
    """Whether a cell is a label, or several."""
    return labels.has(cell) or (bool(cell.split()) and all(map(labels.has, cell.split())))


def _what_speaks_for_rows(kind: str, head: bytes, comma: bytes, *, fits: bool) -> str:
    """What lines of text hardly have; empty where there is nothing."""
    lines = head.splitlines()
    if b"\t" in head and kind != "csv":
        return "tabs"
    if kind == "conll" and any(not line.strip() for line in lines):
        return "empty lines"
    if kind == "csv" and any(line.startswith(b'"') or comma + b'"' in line for line in lines):
        return "quotes around columns"
    return f"{comma.decode()!r} in all lines" if kind == "csv" and fits else ""

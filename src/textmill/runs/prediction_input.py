"""A file of rows for a run to answer: read by the run's own settings of data."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from textmill.config.registry import UnknownNameError
from textmill.config.values.raw_values import Entries, Items, Scalar, is_null
from textmill.config.values.typed_values import plain
from textmill.data.data_files import first_file
from textmill.data.formats.by_suffix import HAVING, FileFormat, format_name
from textmill.data.formats.row_format import RowFormat
from textmill.data.input_files import input_layout, piped_layout
from textmill.data.registries import datasets
from textmill.data.text_pairs import TextPairs
from textmill.data.text_rows import TextRows
from textmill.errors import UserError
from textmill.inference.load import NeedsCodeError, Predictor, saved_nodes, saved_plan
from textmill.runs.load_run import file_plan
from textmill.runtime.devices import Env
from textmill.text.features.labels import Labels

FIRST = ("valid_data", "test_data", "train_data")
"""Whose settings say how a file is read, where the words do not."""
PREFIXES = tuple(f"{name}." for name in FIRST)

READ = ("format", "columns", "optional", *HAVING)
"""The settings of data that say how a file is read; others are of batches and of training."""


def table_format(run: Path, file: Path) -> FileFormat | None:
    """The format of a file that is named as the run's own data is, whatever its suffix.

    Args:
        run: The run folder.
        file: The file.

    Returns:
        The format of the run's file of columns with the same suffix; None where it has no such one.
    """
    for path, named in _of_files(run):
        if path.suffix.lower() == file.suffix.lower():
            known = cast("FileFormat", named if named in get_args(FileFormat) else "auto")
            return format_name(file, known)
    return None


def _of_files(run: Path) -> Iterator[tuple[Path, str]]:
    """The files of columns that a run's data is read from, each with its format as it is set."""
    if not (run / "config.yaml").is_file():
        return
    saved = saved_nodes(run, "settings").entries
    for node in (saved.get(name) for name in FIRST):
        said = node.entries if isinstance(node, Entries) else {}
        path, kind, form = (said.get(key) for key in ("path", "type", "format"))
        path = path.items[0] if isinstance(path, Items) and path.items else path
        if isinstance(path, Scalar) and isinstance(kind, Scalar) and _of_columns(kind):
            yield Path(path.text), form.text if isinstance(form, Scalar) else "auto"


def _of_columns(kind: Scalar) -> bool:
    """Whether data of that registered name is read from a file of columns."""
    try:
        return issubclass(datasets.get(kind.text).Config, TextPairs.Config)
    except UnknownNameError:
        return False  # the recipe's own


def input_layout_of(
    predictor: Predictor, run: str | Path, file: str | Path, words: Sequence[str] = ()
) -> RowFormat:
    """How a file of columns becomes rows for a run to answer.

    Args:
        predictor: The run's.
        run: The run folder.
        file: The file; it is read as the run's ``valid_data``, ``test_data`` or ``train_data``,
            the first that there is.
        words: Other settings of the data, as ``"header=true"`` or ``"train_data.header=true"``.

    Raises:
        UserError: The settings do not go with the file, there are no such settings, or they say
            nothing of how a file is read.
        DataError: The file's first line is not what the settings say, or its rows are of two kinds.
    """
    config, said = _settings(predictor, run, words)
    return input_layout(Path(file), config, predictor.columns, said=said)


def input_pipe_of(
    predictor: Predictor, run: str | Path, head: bytes, words: Sequence[str] = (), *, name: str
) -> RowFormat | None:
    """How what comes through a pipe becomes rows for a run to answer; None: line by line.

    Args:
        predictor: The run's.
        run: The run folder.
        head: The first lines.
        words: As for `input_layout_of`; with them, but for ``encoding``, it is rows.
        name: What errors call it.

    Raises:
        UserError: It may be rows or lines; or as for `input_layout_of`.
        DataError: As for `input_layout_of`.
    """
    of_lines = all(word.startswith("encoding=") for word in words)
    if of_lines and not [*_of_files(Path(run))]:
        return None
    config, said = _settings(predictor, run, words)
    found = predictor.task.text.ingredients.values()
    labels = {one.column: one for one in found if isinstance(one, Labels)}
    return piped_layout(head, config, predictor.columns, labels, name=name, said=said)


def recorded_layout(predictor: Predictor, run: str | Path) -> dict[str, Any]:
    """How the run's data is read, for its export; empty where it is of no file of columns."""
    if not [*_of_files(Path(run))]:
        return {}
    config, _ = _settings(predictor, run, ())
    said = {name: plain(getattr(config, name)) for name in READ if hasattr(config, name)}
    return {"path": first_file(config.path).name, **said}


def _settings(
    predictor: Predictor, run: str | Path, words: Sequence[str]
) -> tuple[TextPairs.Config, set[str]]:
    """How the run's data is read, with what the words say of it; and which settings they name."""
    saved = saved_nodes(Path(run), "settings").entries
    there = [name for name in FIRST if name in saved and not is_null(saved[name])]
    named = [word.partition(".")[0] for word in words if word.startswith(PREFIXES)]
    name = [*named, *there, FIRST[0]][0]
    said = {word.removeprefix(f"{name}.").partition("=")[0].partition(".")[0] for word in words}
    mine = [word if word.startswith(PREFIXES) else f"{name}.{word}" for word in words]
    like = name if name in there else [*there, name][0]
    provided = {"env": Env.detect("cpu"), **predictor.task.text.ingredients}
    try:
        plan = saved_plan(
            Path(run),
            "settings",
            [name],
            provided=tuple(provided),
            words=mine,
            instead={name: like},
        )
        config = plan.nodes[name].config
    except NeedsCodeError:
        config = None
    if not isinstance(config, TextPairs.Config):  # made by code, or of other settings
        plan = file_plan(name, _plain_file(predictor), mine, tuple(provided))
        config = plan.nodes[name].config
    if unread := [word for word in said if word not in READ]:
        raise UserError(
            f"{min(unread)}: says nothing of how a file is read; textmill predict takes "
            f"{', '.join(READ)}."
        )
    return config, said


def _plain_file(predictor: Predictor) -> TextPairs.Config:
    """Pairs where a source is read, as an evaluation reads them; else the inputs alone."""
    path, columns = Path("rows.tsv"), predictor.columns
    if columns == ("source",):
        return TextPairs.Config(path=path)
    return TextRows.Config(path=path, columns=columns, extra_columns="error")

"""A file of rows for a run to answer: read by the run's own settings of data."""

from collections.abc import Sequence
from pathlib import Path

from weft.config.nodes import is_null
from weft.data.formats.row_format import RowFormat
from weft.data.text_pairs import TextPairs
from weft.data.text_rows import TextRows
from weft.inference.input_files import input_layout
from weft.inference.load import NeedsCodeError, saved_nodes, saved_plan
from weft.inference.predictor import Predictor
from weft.recipes.reload import file_plan
from weft.runtime.devices import Env

__all__ = ["asked_layout"]

FIRST = ("valid_data", "test_data", "train_data")
"""Whose settings say how a file is read, where the words do not."""
PREFIXES = tuple(f"{name}." for name in FIRST)


def asked_layout(
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
        UserError: The settings do not go with the file, or there are no such settings.
        DataError: The file's first line is not what the settings say.
    """
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
    return input_layout(Path(file), config, predictor.columns, said=said)


def _plain_file(predictor: Predictor) -> TextPairs.Config:
    """Pairs where a source is read, as an evaluation reads them; else the inputs alone."""
    path, columns = Path("rows.tsv"), predictor.columns
    if columns == ("source",):
        return TextPairs.Config(path=path)
    return TextRows.Config(path=path, columns=columns, extra_columns="error")

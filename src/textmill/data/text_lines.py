"""Lines of a text file, blank ones too: what a language model is trained on."""

import logging
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from textmill.config import Config as BaseConfig
from textmill.config.component import setting
from textmill.data import registries
from textmill.data.batching import Batching
from textmill.data.data_files import DataPath
from textmill.data.formats.by_suffix import SUFFIXES
from textmill.data.formats.lines import LineFormat
from textmill.data.holdout import PassageHoldout
from textmill.data.line_blocks import MAX_LINE_BYTES
from textmill.data.text_pairs import TextPairs

LOG = logging.getLogger("textmill")

COLUMN = "text"


@registries.datasets.register("text_lines")
class TextLines(TextPairs):
    r"""Every line of a text file as a row with the one column ``text``, as it is written.

    A blank line is a row: in a text it has a meaning. A line that is not UTF-8 is a bad row.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "play.txt"
        >>> _ = path.write_text("First Citizen:\n\nAll:\n")
        >>> [row["text"] for row in TextLines.Config(path=path).build()]
        ['First Citizen:', '', 'All:']
    """

    class Config(BaseConfig, first=("path", "batch_size", "holdout")):
        """Where the text is, and how many places of it are read at a time."""

        path: DataPath
        """The file. Several: a list, read in its order; a folder, or a pattern as
        ``data/*.txt``, read in the order of the names."""
        encoding: str = "utf-8"
        """What the file is in, where it is not UTF-8: cp1252 as Windows saves it in western Europe,
        latin-1, shift_jis, ...; not UTF-16."""
        batch_size: int = 32
        """Places of the text that one optimizer step reads on from, over all ranks: parallel
        streams of a model that carries its state, else blocks."""
        shuffle: bool = True
        """Whether in each epoch the text is cut at other places, and blocks come in another order;
        a pure function of the run's seed and the epoch."""
        weights: tuple[float, ...] | None = None
        """Share of each entry of path (a file, folder or pattern) in the lines of an epoch, which
        has as many as all entries; one that has ended begins again. null: every line once, as in
        a text of one entry that follows train_data."""
        temperature: float | None = None
        """Shares by the number of lines of each entry to the power of 1 / temperature: 1 as many as
        there are, 5 usual where the small ones are to be seen more often."""
        holdout: float = 0.0
        """Share of the text held out for valid_data, if that has no file of its own: whole
        passages between blank lines, or lines if none is blank, chosen by a hash of each."""
        held_out: bool = False
        """Whether these are the passages that holdout leaves to valid_data, and not all others."""
        keep_tokens: bool = setting(default=True, in_key=False)
        """Whether the token store keeps the ids of much text for later runs; else each run encodes
        all of it anew, by several processes, and holds the ids in memory."""
        max_bad_rows: int = 0
        """How many lines may be left out because they cannot be read; decided before step 1."""
        max_line_bytes: int = MAX_LINE_BYTES
        """Longest line, in bytes; a longer one is a bad row (a lost line end, most likely)."""

    config: Any

    @override
    def read(self, *, ingredient: str = "train_data") -> TextPairs:
        """Reads the file; one that by its name has columns is read as well, with a warning."""
        path = self.files[0]
        named = SUFFIXES.get(path.suffix.lower())
        if named is not None and self._table is None:
            LOG.warning(
                "%s: each line is read as text, whole, though by its name the file is %s. To read "
                "its text alone: %s.type=text_rows, with its column in %s.columns.",
                *(path, named, ingredient, ingredient),
            )
        return super().read(ingredient=ingredient)

    @override
    def _holdout(self) -> PassageHoldout | None:
        config = self.config
        return PassageHoldout(config.holdout, held_out=config.held_out) if config.holdout else None

    @override
    def _format(self) -> LineFormat:
        how = {name: getattr(self.config, name) for name in ("max_line_bytes", "encoding")}
        return _Lines({COLUMN: 0}, (), separator=None, **how)

    @property
    @override
    def _unmixed(self) -> Batching:
        config = self.config
        return Batching(max_tokens=None, batch_size=config.batch_size, shuffle=config.shuffle)


@dataclass(frozen=True)
class _Lines(LineFormat):
    """A name of its own for the fingerprint: the same file read as pairs is other data."""

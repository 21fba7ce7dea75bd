"""Lines of a text file, blank ones too: what a language model is trained on."""

import logging
from typing import Any

from typing_extensions import override

from textmill.data import registries
from textmill.data.batching import Batching
from textmill.data.formats.by_suffix import SUFFIXES
from textmill.data.formats.lines import LineFormat
from textmill.data.holdout import PassageHoldout
from textmill.data.text_pairs import FilesConfig, TextPairs

LOG = logging.getLogger("textmill")

COLUMN = "text"


@registries.datasets.register("text_lines")
class TextLines(TextPairs):
    r"""Every line of a text file as a row with the one column ``text``, as it is written.

    A blank line is a row: in a text it has a meaning. A line that is not UTF-8 is a bad row.
    """

    class Config(FilesConfig, first=("path", "batch_size", "holdout")):
        batch_size: int = 32
        """Places of the text that one optimizer step reads on from, over all ranks: parallel
        streams of a model that carries its state, else blocks."""
        shuffle: bool = True
        """Whether in each epoch the text is cut at other places, and blocks come in another order;
        a pure function of the run's seed and the epoch."""
        holdout: float = 0.0
        """Share of the text held out for valid_data, if that has no file of its own: whole
        passages between blank lines, or lines if none is blank, chosen by a hash of each."""

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
        return LineFormat({COLUMN: 0}, (), separator=None, **how)

    @property
    @override
    def _unmixed(self) -> Batching:
        config = self.config
        return Batching(max_tokens=None, batch_size=config.batch_size, shuffle=config.shuffle)

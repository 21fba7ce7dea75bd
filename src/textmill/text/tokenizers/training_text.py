"""The text that a tokenizer is fitted on: read only where it must be, and never held whole."""

import hashlib
import itertools
import json
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from textmill.errors import DataError, UserError
from textmill.text.cells import Fingerprinted, training_cell

LOG = logging.getLogger("textmill")

HELD_BYTES = 64 << 20
"""What is read from rows that cannot be read twice is kept on the disk above this."""


class TrainingText:
    """All texts of some rows, which ``texts`` begins anew; the ``key`` tells them from others."""

    def __init__(self, key: str, texts: Callable[[], Iterator[str]]) -> None:
        self.key, self._texts = key, texts

    def __iter__(self) -> Iterator[str]:
        return self._texts()

    def at_most(self, characters: int) -> Iterable[str]:
        """The texts themselves, or so many of them as have about that many characters.

        What is left out is spread evenly over all of them, and is the same each time.

        Example:
            >>> text = TrainingText("key", lambda: iter(["aa", "bb", "cc", "dd"]))
            >>> list(text.at_most(8)), list(text.at_most(4)), list(text.at_most(6))
            (['aa', 'bb', 'cc', 'dd'], ['bb', 'dd'], ['bb', 'cc', 'dd'])
        """
        count, found = 0, 0
        for count, text in enumerate(self, start=1):  # noqa: B007  # counts them
            found += len(text)
        if found <= characters:
            return self
        wanted = max(1, count * characters // found)
        LOG.info(
            f"The tokenizer is fitted on {wanted:,} of {count:,} texts, spread over all of them: "
            "more do not fit into memory, and change little."
        )

        def spread() -> Iterator[str]:
            for number, text in enumerate(self):
                if (number + 1) * wanted // count > number * wanted // count:
                    yield text

        return TrainingText(self.key, spread)


@contextmanager
def training_text(
    rows: Iterable[Mapping[str, str]], columns: Sequence[str] = ()
) -> Iterator[TrainingText]:
    """The text of rows.

    textmill's own data knows a fingerprint of itself: its rows are read only when the texts are
    asked for. Rows of a user's own code may be others when they are read again, so they are read
    once, here, and kept until the end. No ``columns`` are all of them.

    Raises:
        UserError: They are no rows.
        DataError: A row lacks a column, or has there what is no text.

    Example:
        >>> with training_text([{"source": "Hi.", "target": "Salut."}]) as text:
        ...     print(list(text))
        ['Hi.', 'Salut.']
    """
    if isinstance(rows, Fingerprinted) and type(rows).__module__.startswith("textmill."):
        of = f" of {', '.join(columns)}" if columns else ""
        yield TrainingText(f"data {rows.fingerprint()}{of}", lambda: _texts(rows, columns))
        return
    digest = hashlib.sha256()
    with tempfile.SpooledTemporaryFile(max_size=HELD_BYTES, prefix="textmill-text-") as kept:
        for text in _texts(rows, columns):
            line = json.dumps(text).encode() + b"\n"  # also of half a surrogate pair
            digest.update(line)
            kept.write(line)
        yield TrainingText(f"text {digest.hexdigest()}", lambda: _kept(kept))


def _kept(file: IO[bytes]) -> Iterator[str]:
    place = 0
    while True:
        file.seek(place)  # another reader may be at another place
        if not (lines := [*itertools.islice(file, 4096)]):
            return
        place = file.tell()
        yield from map(json.loads, lines)


def _texts(rows: Iterable[Mapping[str, str]], columns: Sequence[str] = ()) -> Iterator[str]:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UserError(
                "A fitted tokenizer needs train_data that yields rows of text; "
                f"found {type(row).__name__}. Give 'tokenizer' its own training text instead."
            )
        for name in columns or row:
            text = training_cell(
                row,
                name,
                number,
                purpose="to fit the tokenizer on",
                remedy="Name the columns by tokenizer.columns.",
            )
            if isinstance(text, list) and all(isinstance(part, str) for part in text):
                text = " ".join(text)  # a text that is given as its words, or its sentences
            if not isinstance(text, str):
                raise DataError(
                    f"Row {number}, column '{name}': wanted text to fit the tokenizer on, found "
                    f"{type(text).__name__}. Name the columns of text by tokenizer.columns."
                )
            yield text

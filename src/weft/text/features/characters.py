"""Characters of words as ids: what tells a model the case, the affixes and the shape of a word."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import UserError
from weft.text import registries
from weft.text.cells import training_cells, words_in

__all__ = ["Characters", "FittedCharacters"]

PAD, UNK, BEGIN, END, FIRST = 0, 1, 2, 3, 4
LEAST = 4
"""Places of a word: its two marks and two characters."""
MOST = 1_000
"""Places of a word: ten times the longest word of a language, and 4 kB for each word that differs;
a saved file that says more would take the memory."""


class Characters:
    """The known characters, and how many places a word has for them and for its two marks.

    Args:
        known: Each once, in the order of their ids; they begin at 4, after padding, the unknown
            character and the marks before and after a word.
        length: Places of a word. A longer word keeps its first and its last characters.
        column: The column of the rows that the words are in.

    Raises:
        UserError: One is not one character, or is there twice, or there are too few places, or too
            many.

    Example:
        >>> Characters("dogs", length=6).table(["dog", "ghosts"]).tolist()
        [[2, 4, 5, 6, 3, 0], [2, 6, 1, 1, 7, 3]]
    """

    def __init__(self, known: Iterable[str], *, length: int = 16, column: str = "words") -> None:
        self.known, self.length, self.column = tuple(known), length, column
        self._ids = {character: FIRST + i for i, character in enumerate(self.known)}
        wrong = next((c for c in self.known if len(c) != 1), None)
        if wrong is not None:
            raise UserError(f"A known character must be one character, but one is {wrong!r:.80}.")
        if len(self._ids) < len(self.known):
            twice = Counter(self.known).most_common(1)[0][0]
            raise UserError(f"Known characters must differ, but {twice!r} is there twice.")
        if length < LEAST:
            raise UserError(
                f"characters.length must be {LEAST} or more: a word has two marks; it is {length}."
            )
        if length > MOST:
            raise UserError(
                f"characters.length must be {MOST} or less, for every word has as many places; it "
                f"is {length}. A longer word keeps its first and its last characters."
            )

    @property
    def size(self) -> int:
        """Number of ids."""
        return FIRST + len(self.known)

    @property
    def pad_idx(self) -> int:
        """The id of padding."""
        return PAD

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The ids of words. *Shape:* ``[len(words), length]``."""
        out = np.full((len(words), self.length), PAD, dtype=np.int32)
        get, most = self._ids.get, self.length - 2
        for row, word in enumerate(words):
            both = word[: most - most // 2] + word[len(word) - most // 2 :]
            kept = both if len(word) > most else word
            out[row, : len(kept) + 2] = [BEGIN, *(get(c, UNK) for c in kept), END]
        return out


@registries.characters.register("fitted")
class FittedCharacters(Component):
    """The characters that occur in a column of ``train_data``, in the order of their first row."""

    class Config(BaseConfig):
        """Which characters are known."""

        column: str = "words"
        """The column of the rows."""
        min_count: int = 2
        """How often a character must occur; a rarer one is the unknown character."""
        length: int = 16
        """Places of a word, two of them for the marks before and after it; a longer word keeps its
        first and its last characters."""

        def __post_init__(self) -> None:
            """Refuses what leaves nothing."""
            if self.min_count < 1:
                raise UserError(f"characters.min_count must be 1 or more, but is {self.min_count}.")
            Characters((), length=self.length)

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> Characters:
            """Reads the rows once.

            Raises:
                DataError: A row has no such column.
            """
            counts: Counter[str] = Counter()
            cells = training_cells(
                train_data,
                self.column,
                purpose="to take characters from",
                remedy="Name the column by characters.column.",
            )
            for row, cell in cells:
                counts.update("".join(words_in(cell, self.column, row)))
            known = [c for c, count in counts.items() if count >= self.min_count]
            return Characters(known, length=self.length, column=self.column)

    def __init__(self, config: Config) -> None:
        self.config = config

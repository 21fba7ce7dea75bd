"""Columns of words: an id for each, with its characters or affixes beside it, or a label each."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from weft.errors import UserError
from weft.text.cells import unlisted, words_in
from weft.text.columns.column import DESCRIPTION, Column, columns
from weft.text.columns.labels import SeveralLabels
from weft.text.columns.token_ids import IdsColumn
from weft.text.features.affixes import Affixes
from weft.text.features.characters import Characters
from weft.text.features.labels import Labels
from weft.text.metadata import SavedTextError, settings_of
from weft.text.ragged import Ragged
from weft.text.tokenizers.tokenizer import Tokenizer, encode_column
from weft.text.tokenizers.word_tokenizer import WordTokenizer

__all__ = ["AffixesColumn", "CharactersColumn", "TagsColumn", "WordsColumn", "table_of_words"]


@columns.register("words")
class WordsColumn(IdsColumn):
    """Words, one id for each: a text split at white space, or a list. A text can have none.

    Args:
        name: The column.
        tokenizer: Its words are those of the text.
        limit: Most words of a row; None is no limit.

    Raises:
        UserError: The tokenizer's tokens are no words.

    Example:
        >>> column = WordsColumn("words", WordTokenizer.Config(words=("wake", "me")).build())
        >>> [row.tolist() for row in column.encode(["Wake me up", "", ["me"]])]
        [[2, 3, 1], [], [3]]
    """

    kind = "words"

    def __init__(self, name: str, tokenizer: Tokenizer, *, limit: int | None = None) -> None:
        if not isinstance(tokenizer, WordTokenizer) or tokenizer.vocab_info.eos_idx >= 0:
            with_marks = " with marks" if isinstance(tokenizer, WordTokenizer) else ""
            raise UserError(
                f"The column '{name}' needs a tokenizer with one id for each word and no other: "
                f"tokenizer.type=fitted_words. Found a {type(tokenizer).__name__}{with_marks}."
            )
        if tokenizer.config.split != "space":
            raise UserError(
                f"The words of the column '{name}' are those that white space divides, but "
                f"tokenizer.split is {tokenizer.config.split}. Set tokenizer.split=space."
            )
        if limit is not None and limit < 1:
            raise UserError(f"A row keeps at least 1 word, but the limit of '{name}' is {limit}.")
        super().__init__(name, tokenizer, limit=limit)

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        cells = map(unlisted, values)
        texts = [
            value if isinstance(value, str) else " ".join(words_in(value, self.name, row))
            for row, value in enumerate(cells)
        ]
        return encode_column(self._encoder, texts, self.name)


@columns.register("characters")
class CharactersColumn(Column):
    """The characters of each word, in as many places for every word; it shares the words' column.

    Args:
        characters: The known ones, and the column.
        name: The column, where it is another.

    Example:
        >>> column = CharactersColumn(Characters("dogs", length=5))
        >>> column.encode(["dog so"])[0].reshape(2, 5).tolist()
        [[2, 4, 5, 6, 3], [2, 7, 5, 3, 0]]
    """

    kind = "characters"
    shares = True

    def __init__(self, characters: Characters, *, name: str | None = None) -> None:
        super().__init__(characters.column if name is None else name)
        self.characters = characters

    @property
    @override
    def width(self) -> int:
        return self.characters.length

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"characters": self.characters}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [words_in(value, self.name, row) for row, value in enumerate(values)]
        return table_of_words(rows, self.characters.table, width=self.width)

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        known, length = list(self.characters.known), self.characters.length
        return {"name": self.name, "known": known, "length": length}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "CharactersColumn":
        settings_of(folder / DESCRIPTION, settings, {"name": str, "known": list, "length": int})
        known, length = settings["known"], settings["length"]
        try:
            return cls(Characters(map(str, known), length=length, column=settings["name"]))
        except UserError as error:
            raise SavedTextError(f"{folder / DESCRIPTION}: {error}") from None


def table_of_words(
    rows: Sequence[Sequence[str]],
    table: Callable[[Sequence[str]], NDArray[np.int32]],
    *,
    width: int,
) -> Ragged:
    """What a table says of each word, one word behind the other.

    Args:
        rows: The words of each row.
        table: From words to their numbers. *Shape:* ``[words, width]``.
        width: Numbers of a word.

    Example:
        >>> table_of_words([["a", "bc"], []], lambda ws: np.array([[len(w)] for w in ws]), width=1)[
        ...     0
        ... ]
        array([1, 2])
    """
    # Each different word is asked for once: a corpus has ten times as many words as words differ.
    places: dict[str, int] = {}
    at = [places.setdefault(word, len(places)) for row in rows for word in row]
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)) * width
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Ragged(table([*places])[np.array(at, dtype=np.int64)].reshape(-1), offsets)


@columns.register("affixes")
class AffixesColumn(Column):
    """The affixes of each word, in as many places for every word; it shares the words' column.

    Args:
        affixes: The known ones, and the column.

    Example:
        >>> affixes = Affixes([["s", "g"], ["x"]], prefixes=[], suffixes=[1])
        >>> AffixesColumn(affixes).encode(["dogs go"])[0].reshape(2, 2).tolist()
        [[3, 2], [1, 2]]
    """

    kind = "affixes"
    shares = True

    def __init__(self, affixes: Affixes) -> None:
        super().__init__(affixes.column)
        self.affixes = affixes

    @property
    @override
    def width(self) -> int:
        return self.affixes.length

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"affixes": self.affixes}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [words_in(value, self.name, row) for row, value in enumerate(values)]
        return table_of_words(rows, self.affixes.table, width=self.width)

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        known = self.affixes.known
        return {
            "name": self.name,
            "prefixes": [str(length) for length in self.affixes.prefixes],
            "suffixes": [str(length) for length in self.affixes.suffixes],
            "known": [f"{place} {affix}" for place, names in enumerate(known) for affix in names],
        }

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "AffixesColumn":
        path = folder / DESCRIPTION
        settings_of(
            path, settings, {"name": str, "prefixes": list, "suffixes": list, "known": list}
        )
        try:
            sizes = {name: [int(n) for n in settings[name]] for name in ("prefixes", "suffixes")}
            places = range(len(sizes["prefixes"]) + len(sizes["suffixes"]) + 1)
            known: dict[str, list[str]] = {str(place): [] for place in places}
            for place, _, affix in (entry.partition(" ") for entry in settings["known"]):
                known[place].append(affix)
            return cls(Affixes([*known.values()], **sizes, column=settings["name"]))
        except (UserError, ValueError) as error:
            raise SavedTextError(f"{path}: {error}") from None
        except KeyError as error:
            raise SavedTextError(f"{path}: 'known' has an affix of the place {error}.") from None


@columns.register("tags")
class TagsColumn(SeveralLabels):
    """Tags in the order of the words, one for each: a text split at white space, or a list.

    Args:
        labels: The tags there are, their column, and what stands between two.

    Raises:
        UserError: The labels are those of whole rows.

    Example:
        >>> tags = TagsColumn(Labels(["O", "B"], column="tags", multiple=True))
        >>> tags.encode(["O B O"])[0].tolist()
        [0, 1, 0]
    """

    kind = "tags"

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels)
        if not labels.multiple:
            raise UserError(
                f"Each word has a label of its own, but the labels of '{labels.column}' are one a "
                "row: set labels.multiple=true."
            )

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        return Ragged.from_lists([self.numbers(value, row) for row, value in enumerate(values)])

"""The text processor of tasks that write a text: source text to target text."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.answers import Translated
from textmill.text.cells import joined_text
from textmill.text.columns.column import Column
from textmill.text.columns.dictionary import DictionaryColumn
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.token_ids import IdsColumn
from textmill.text.metadata import arguments_of, made_of
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import TextProcessor, text_processors
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import Mode, Tokenizer, encode_column, not_text

CHARACTERS_A_TOKEN = 100
"""A longer text is not encoded to know that it is too long: SentencePiece's pieces have 16
characters at most, unless a person has added longer ones."""
NO_SENTENCE = "is an empty list; give at least one sentence."


class SideColumn(IdsColumn):
    """Sources, or targets, with the marks of their language. A list of texts is one text.

    Args:
        prefix: Text that is put before each.
    """

    kind = "side"

    def __init__(
        self,
        name: Mode,
        tokenizer: Tokenizer,
        *,
        lang: str | None = None,
        prefix: str = "",
        limit: int | None = None,
    ) -> None:
        super().__init__(name, tokenizer, limit=limit)
        self.lang, self.prefix = lang, prefix
        self._encoder = tokenizer.create_encoder(mode=name, lang=lang)

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        texts = [joined_text(value) for value in values]
        if [] in texts:
            raise DataError(f"Row {texts.index([])}, column '{self.name}': {NO_SENTENCE}")
        if self.prefix:  # a value that is not text is left for the error that names it
            texts = [self.prefix + text if type(text) is str else text for text in texts]
        return encode_column(self._encoder, texts, self.name)

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        """The first ids of each row; of a longer one also the last, its end mark."""
        return encoded.clipped(limit)


BESIDE: Final[Mapping[str, type[Any]]] = {"dictionary": DictionaryColumn, "weight": NumberColumn}


@text_processors.register("seq2seq")
class Seq2SeqText(ColumnsText):
    """Source text to target text by one tokenizer: translation, summaries, question to answer.

    A language of None is the tokenizer's default; lengths count marks, and None is no limit.
    ``beside`` the source there may be a ``dictionary`` of its words, and the row's ``weight``.
    """

    answer_class = Translated
    kind = "seq2seq"
    optional_columns = ("prefix",)

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        source_lang: str | None = None,
        target_lang: str | None = None,
        max_source_length: int | None = None,
        max_target_length: int | None = None,
        source_prefix: str = "",
        beside: Mapping[str, Column] = {},
    ) -> None:
        self.beside, self.tokenizer, self.source_prefix = beside, tokenizer, source_prefix
        self.source_lang, self.target_lang = source_lang, target_lang
        self.max_source_length, self.max_target_length = max_source_length, max_target_length
        if tokenizer.vocab_info.eos_idx < 0 or not self.target_prefix:
            raise UserError(
                f"Generated text needs marks of its beginning and end, but the tokenizer, a "
                f"{type(tokenizer).__name__}, has none. Set tokenizer.marks=true."
            )
        least = 3 + len(self.target_prefix)
        for side, limit in (("source", max_source_length), ("target", max_target_length)):
            if limit is not None and limit < least:
                raise DataError(f"max_{side}_length must be {least} or more, but is {limit}.")
        if "dictionary" in beside and source_prefix:
            raise UserError(
                "A dictionary counts the words of the source from its first on, so that "
                "task.source_prefix must be empty."
            )
        source = SideColumn(
            "source", tokenizer, lang=source_lang, prefix=source_prefix, limit=max_source_length
        )
        target = SideColumn("target", tokenizer, lang=target_lang, limit=max_target_length)
        weight = {role: column for role, column in beside.items() if role == "weight"}
        known = {role: column for role, column in beside.items() if role not in weight}
        super().__init__({"source": source, **known}, {"target": target, **weight})

    @override
    def difference(self, other: TextProcessor) -> str:
        assert isinstance(other, Seq2SeqText), "a task has asked for its kind"
        for side, most in other.limits.items():
            limit = self.limits.get(side)
            if limit is None or limit > most:
                found = limit or "any number of"
                return f"takes a {side} of {found} tokens, but the task at most {most}"
        return ""

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        for role, column in self.beside.items():
            column.save(folder / "columns" / role)
        return {**arguments_of(self, folder, without=["beside"]), "beside": [*self.beside]}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        names, beside = settings.pop("beside", []), dict[str, Column]()
        for role in map(str, names if isinstance(names, list) else [names]):
            if role not in BESIDE:
                raise UserError(f"the setting 'beside' cannot be {names!r:.80}.")
            beside[role] = BESIDE[role].load(folder / "columns" / role)
        return made_of(cls, folder, settings, beside=beside)

    @property
    def target_prefix(self) -> list[int]:
        """The ids that begin every target: what generation starts from."""
        return self.tokenizer.target_prefix(self.target_lang)

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[str]:
        eos = self.tokenizer.vocab_info.eos_idx
        rows = [np.asarray(row, dtype=np.int64).tolist() for row in outputs]
        kept = [row[: row.index(eos)] if eos in row else row for row in rows]
        return self.tokenizer.create_decoder().batch(kept)

    def roundtrip(self, source: ArrayLike, target: ArrayLike | None = None) -> list[str]:
        """Sentences about rows of a padded batch whose ids are not those of their text.

        Rows with the unknown id are left out: their text is lost.

        Args:
            source: *Shape:* ``[B, S]``, padded ids as the model gets them.
            target: *Shape:* ``[B, T]``, the whole targets, prefix included.
        """
        sides = [("source", source)] if target is None else [("source", source), ("target", target)]
        info = self.tokenizer.vocab_info
        found = []
        for name, ids in sides:
            # each row up to its last id that is not padding
            given = [
                row[: 1 + np.flatnonzero(row != info.pad_idx).max(initial=-1)]
                for row in np.asarray(ids)
            ]
            texts = self.decode(given)
            if name == "source":  # what is encoded gets it again
                texts = [text.removeprefix(self.source_prefix) for text in texts]
            for i, expected in enumerate(self.all[name].encode(texts)):
                if not np.array_equal(given[i], expected) and info.unk_idx not in given[i]:
                    found.append(
                        f"row {i}, {name} {texts[i]!r}: the batch has ids {given[i].tolist()}, "
                        f"but this text is encoded as {expected.tolist()}"
                    )
        return found


def source_text(row: Mapping[str, Any]) -> str:
    """The ``source`` of a row to answer, as one text."""
    source = joined_text(row.get("source"))
    if source == []:
        raise DataError(f"'source' {NO_SENTENCE}")
    if not isinstance(source, str):
        raise DataError(f"'source' must be a string; found {type(source).__name__}.")
    return source


def prefix_of(row: Mapping[str, Any], default: str) -> str:
    """What the answer to a row is to begin with: its own ``prefix``, else the default."""
    prefix = row.get("prefix", default)
    if not isinstance(prefix, str):
        raise DataError(f"'prefix' must be a string; found {type(prefix).__name__}.")
    if error := not_text([prefix]):
        raise DataError(str(error).replace("Text 0", "'prefix'"))
    return prefix


def prefix_ids(text: Seq2SeqText, prefixes: Sequence[str]) -> list[list[int]] | None:
    """The ids of texts that answers begin with, without any marks; None if all are empty."""
    distinct = sorted(set(prefixes) - {""})
    if not distinct:
        return None
    start, limit = len(text.target_prefix), text.limits.get("target")
    for prefix in distinct:
        if limit is not None and len(prefix) > CHARACTERS_A_TOKEN * limit:
            raise DataError(
                f"The prefix {prefix[:60]!r} has {len(prefix):,} characters; "
                f"an answer can begin with {limit - start - 1} tokens at most."
            )
    ids: dict[str, list[int]] = {"": []}
    for prefix, target in zip(distinct, text.targets["target"].encode(distinct), strict=True):
        ids[prefix] = target[start:-1].tolist()
        if limit is not None and len(target) > limit:
            raise DataError(
                f"The prefix {prefix[:60]!r} has {len(ids[prefix])} tokens; "
                f"an answer can begin with {limit - start - 1} at most."
            )
    return [ids[prefix] for prefix in prefixes]

"""A tokenizer fitted on the training data itself, so that a recipe names its files once.

Its text is read only if it must be, and never held whole.
"""

import hashlib
import itertools
import json
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.runtime.files import make_folder, sha256, write_atomic
from textmill.text import registries
from textmill.text.cells import Fingerprinted, text_cell
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer, CharacterTokenizer
from textmill.text.tokenizers.sentencepiece import (
    ModelType,
    MultilingualTokenizer,
    train_sentencepiece,
)
from textmill.text.tokenizers.tokenizer import Tokenizer, TooLargeVocabularyError, refuse_huge

Kind = Literal["sentencepiece", "bpe", "byte_bpe", "words", "characters", "bytes"]
_BELONGS_TO: dict[str, tuple[str, ...]] = {
    "model_type": ("sentencepiece",),
    "character_coverage": ("sentencepiece", "bpe", "characters"),
    "byte_fallback": ("sentencepiece",),
    "min_count": ("bpe", "byte_bpe", "words", "characters"),
    "lowercase": ("bpe", "words"),
}
"""Settings that not all kinds have, and which have them."""
_SUFFIXES = {"sentencepiece": ".model", "characters": ".txt"}
"""Of the file that is fitted; of the other kinds a tokenizer.json."""
_FITTED = 3
"""Counts the changes of how files are fitted, and of which rows are read of the same file (3:
numbers in JSON lines): a cached one of an older textmill is not taken."""
MOST_CHARACTERS = 100_000_000
"""SentencePiece holds all its text, in 22 bytes a character: more than 2.2 GB are not needed."""


HELD_BYTES = 64 << 20
"""What is read from rows that cannot be read twice is kept on the disk above this."""
LOG = logging.getLogger("textmill")


@registries.tokenizers.register("fitted")
class FittedTokenizer(Component):
    """Makes a tokenizer from all text of ``train_data``, which gives rows.

    It is kept in ``cache_dir`` under a name made of the data's fingerprint and the settings; where
    it is found there as it was written, no text is read. Of data without a fingerprint the text
    itself is in the name.
    """

    class Config(BaseConfig):
        kind: Kind = "sentencepiece"
        """SentencePiece; bpe, byte_bpe or words as a tokenizer.json; or each character, or each
        byte. words lose spaces around punctuation."""
        vocab_size: int = 5000
        """Most pieces of the vocabulary, special ones included; both languages share them. A small
        text gives fewer, which a line says. Bytes take 260."""
        model_type: ModelType = "unigram"
        """How SentencePiece finds pieces; unigram is what its authors recommend."""
        character_coverage: float = 1.0
        """Share of characters that get a piece; 0.9995 for Chinese or Japanese."""
        byte_fallback: bool = False
        """Whether SentencePiece writes characters without a piece as bytes (256 pieces), not as
        unknown."""
        min_count: int = 1
        """How often a word or character must occur to be known, a pair of pieces to be one (not
        for sentencepiece)."""
        lowercase: bool = False
        """Whether texts are lower-cased first (bpe, words)."""
        columns: tuple[str, ...] = ()
        """The columns of the rows whose text it is fitted on; empty: all of them."""
        source_langs: tuple[str, ...] = ("source",)
        """Languages of the source side."""
        target_langs: tuple[str, ...] = ("target",)
        """Languages of the target side."""
        cache_dir: Path = setting(Path(".textmill"), in_key=False)
        """Folder of trained tokenizers, from the working directory; what is there is not remade."""

        def __post_init__(self) -> None:
            for name, kinds in _BELONGS_TO.items():
                if self.kind not in kinds and getattr(self, name) != getattr(type(self), name):
                    raise UserError(
                        f"tokenizer.{name} is not a setting of the kind '{self.kind}'; these have "
                        f"it: {', '.join(kinds)}. Leave it out, or choose one of these."
                    )
            refuse_huge(self.vocab_size)
            require(self, "tokenizer", sizes=["min_count"])
            if not 0 < self.character_coverage <= 1:
                raise UserError(
                    "tokenizer.character_coverage must be above 0, at most 1, but is "
                    f"{self.character_coverage}."
                )

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, str]]
        ) -> Tokenizer:
            langs: dict[str, Any] = {n: getattr(self, n) for n in ("source_langs", "target_langs")}
            if self.kind == "bytes":
                made = ByteTokenizer(ByteTokenizer.Config(**langs))
                if self.vocab_size < (size := made.vocabulary.size):
                    raise UserError(
                        f"vocab_size={self.vocab_size} is too small for bytes, which take {size} "
                        f"with the special ids. Set vocab_size to {size} or more."
                    )
                return made
            with training_text(train_data, self.columns) as text:
                path = self._fitted(text)
            if self.kind == "sentencepiece":
                return MultilingualTokenizer.from_file(path, **langs)
            if self.kind == "characters":
                config = CharacterTokenizer.Config(characters=path.read_bytes().decode(), **langs)
                return CharacterTokenizer(config)
            # Imported here: the package takes 30 ms that other kinds need not wait for.
            from textmill.text.tokenizers.huggingface import HuggingFaceTokenizer

            return HuggingFaceTokenizer.from_file(path, **langs)

        def _fitted(self, text: "TrainingText") -> Path:
            """The file, made if it is not there: with fewer pieces if the text gives fewer."""
            settings = {n: getattr(self, n) for n, of in _BELONGS_TO.items() if self.kind in of}
            key = json.dumps([_FITTED, self.kind, self.vocab_size, settings, text.key])
            digest = hashlib.sha256(key.encode()).hexdigest()[:12]
            suffix = _SUFFIXES.get(self.kind, ".json")
            name = f"{self.kind}-{self.vocab_size}-{digest}{suffix}"

            def fit(path: Path, vocab_size: int) -> None:
                if self.kind == "sentencepiece":
                    some = text.at_most(MOST_CHARACTERS)
                    train_sentencepiece(some, path, vocab_size=vocab_size, **settings)
                    return
                if self.kind == "characters":
                    made = CharacterTokenizer.fit(text, vocab_size=vocab_size, **settings)
                    raw = made.config.characters.encode()
                else:
                    from textmill.text.tokenizers import huggingface

                    kind: Any = self.kind
                    raw = huggingface.fit_tokenizer_json(
                        text, kind, vocab_size=vocab_size, **settings
                    )
                write_atomic(path, raw)
                LOG.info("trained a %s tokenizer: %s", self.kind, path)

            def make(path: Path) -> None:
                try:
                    fit(path, self.vocab_size)
                except TooLargeVocabularyError as error:
                    LOG.info(
                        f"the training text gives {error.largest:,} pieces, fewer than "
                        f"vocab_size={self.vocab_size:,}: all are taken"
                    )
                    fit(path, error.largest)

            return _kept(self.cache_dir / "tokenizers" / name, make)


def _kept(path: Path, make: Callable[[Path], None]) -> Path:
    """The file, which ``make`` writes if it is not there, or not as it was written.

    A file that was cut off or changed could still be one of its kind, of another vocabulary: so its
    bytes are compared with the sum in ``<name>.sha256``, not only read.
    """
    beside = path.with_name(f"{path.name}.sha256")
    if path.exists():
        try:
            if beside.read_bytes().strip() == sha256(path).encode():
                return path
        except OSError:  # one of them cannot be read
            pass
        LOG.warning("%s is not what was written there: it is made again.", path)
    make_folder(path.parent)
    make(path)
    write_atomic(beside, f"{sha256(path)}\n")
    return path


class TrainingText:
    """All texts of some rows, which ``texts`` begins anew; the ``key`` tells them from others."""

    def __init__(self, key: str, texts: Callable[[], Iterator[str]]) -> None:
        self.key, self._texts = key, texts

    def __iter__(self) -> Iterator[str]:
        return self._texts()

    def at_most(self, characters: int) -> Iterable[str]:
        """The texts themselves, or a sample of them with about that many characters.

        What is left out is spread evenly over all of them, and is the same each time.
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
        yield TrainingText(f"text {digest.hexdigest()}", lambda: _read_again(kept))


def _read_again(file: IO[bytes]) -> Iterator[str]:
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
            yield text_cell(
                row, name, number, purpose="to fit the tokenizer on", setting="tokenizer.columns"
            )

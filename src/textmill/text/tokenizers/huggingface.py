"""Tokenizers of Hugging Face's package ``tokenizers``, from a ``tokenizer.json``.

Source: https://huggingface.co/docs/tokenizers.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Unpack

from typing_extensions import override

from textmill.config import Component
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.metadata import SavedTextError, read_bytes
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.base_tokenizer import (
    LanguageConfig,
    LanguageSettings,
    Marks,
    Pieces,
    TaggedTokenizer,
    in_order,
)
from textmill.text.tokenizers.single_thread import tokenizers
from textmill.text.tokenizers.tokenizer import UNKNOWN, not_text
from textmill.text.tokenizers.tokenizer_json import (
    LARGEST_FILE,
    TokenizerJson,
    parse_tokenizer_json,
)

CHUNK = 16_384
"""Texts encoded at once: each is an object of some hundred bytes until its ids are copied."""
KEPT, LONGEST_KEPT, LONGEST = 1 << 14, 128, 1 << 10
"""Words whose ids are remembered, characters of one, and those of a text that is encoded word by
word."""
_NAMES = {
    "pad": ("<pad>", "[PAD]", "<|padding|>", "<|pad|>"),
    "unk": ("<unk>", "[UNK]"),
    "bos": ("<s>", "[BOS]", "<bos>", "<|startoftext|>", "<|begin_of_text|>", "[CLS]"),
    "eos": ("</s>", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>", "[SEP]"),
}
"""What published tokenizers call their marks."""


@registries.tokenizers.register("huggingface")
class HuggingFaceTokenizer(Component, TaggedTokenizer):
    """The pieces of a ``tokenizer.json``, then marks the file lacks, then language tags.

    The file's normalizer, pre-tokenizer, model and decoder are used; its template, truncation and
    padding are not: a source is ``[tag] pieces eos``, a target ``bos [tag] pieces eos``, as with
    every tokenizer. Special tokens written in a text are text; added tokens that are not special
    are one id each, as the file says.
    """

    kind: ClassVar[str] = "huggingface"
    saved: ClassVar[Mapping[str, type | tuple[type, ...]]] = dict.fromkeys(
        _NAMES, (str, type(None))
    )
    saved_file = "path", "huggingface.json"

    class Config(LanguageConfig):
        """A tokenizer loaded from a file."""

        path: Path
        """The file tokenizer.json."""
        pad: str | None = None
        """The file's token that fills rows. None: <pad> or [PAD] if there, else a new id."""
        unk: str | None = None
        """Its token for what is unknown. None: what its model says, else a new id."""
        bos: str | None = None
        """Its token that begins targets. None: <s>, [BOS] or [CLS] if there, else a new id."""
        eos: str | None = None
        """Its token that ends texts. None: </s>, [EOS] or [SEP] if there, else a new id."""

    def __init__(self, config: Config) -> None:
        self.config = config
        names = {name: getattr(config, name) for name in _NAMES}
        pieces = _JsonPieces(read_bytes(config.path, largest=LARGEST_FILE), config.path, names)
        self.parsed = pieces.parsed
        """The file, as it is read."""
        self.frame(pieces, config)

    @classmethod
    def from_file(
        cls, path: Path | str, **languages: Unpack[LanguageSettings]
    ) -> "HuggingFaceTokenizer":
        """Loads a file tokenizer.json; of languages in a set the order is sorted.

        Raises:
            SavedTextError: The file is missing, or cannot be used.
            UserError: A default language is not among its side's languages.
        """
        return cls(cls.Config(path=Path(path), **in_order(languages)))


class _JsonPieces(Pieces):
    def __init__(self, raw: bytes, path: Path, names: dict[str, str | None]) -> None:
        self._raw = raw
        given = tuple(name for name in names.values() if name is not None)
        self.parsed = found = parse_tokenizer_json(raw, path, (*given, *sum(_NAMES.values(), ())))
        self._library = _load(found, path)
        marks = {name: _mark(name, names[name], found, path) for name in _NAMES}
        # Of pairs of bytes the model names none, though there may be one.
        unknown = next((name for name, i in found.ids.items() if i == marks["unk"]), "")
        self._unknown = found.renamed.get(unknown)
        if marks["unk"] in (marks["pad"], marks["bos"], marks["eos"]):
            # GPT-2 and CLIP call <|endoftext|> the unknown token, which bytes never need.
            marks["unk"], self._unknown = None, None
        self.size, self.marks = found.size, Marks(**marks)
        self._silent = found.special - {marks["unk"]}
        self._by_word = _by_word(found.content)
        self._known: dict[str, list[int]] = {}

    @override
    def encode(self, texts: Sequence[str]) -> Ragged:
        parts = []
        for start in range(0, len(texts), CHUNK):
            chunk = [*texts[start : start + CHUNK]]
            try:
                rows = self._library.encode_batch_fast(chunk, add_special_tokens=False)
            except BaseException as error:
                raise _explained(error, f"encode one of {len(texts):,} texts", texts) from None
            parts.append(Ragged.from_lists([row.ids for row in rows]))
        return Ragged.concatenate(parts)

    @override
    def encode_one(self, text: str) -> list[int]:
        known, words = self._known, text.split(" ")  # another thread may replace what is known
        try:
            if not self._by_word or len(text) > LONGEST or not text.isascii() or "" in words:
                return list(self._library.encode(text, add_special_tokens=False).ids)
            new = [word for word in words if word not in known]
            if len(known) + len(new) > KEPT:
                known, new = {}, words
            rows = self._library.encode_batch_fast(new, add_special_tokens=False) if new else []
        except BaseException as error:
            raise _explained(error, "encode a text", [text]) from None
        made = dict(zip(new, [row.ids for row in rows], strict=True))
        known.update((word, ids) for word, ids in made.items() if len(word) <= LONGEST_KEPT)
        self._known = known
        return [i for word in words for i in (made[word] if word in made else known[word])]

    @override
    def decode(self, rows: Sequence[list[int]]) -> list[str]:
        silent = self._silent
        kept = [[i for i in row if i not in silent] for row in rows]
        try:
            texts = list(self._library.decode_batch(kept, skip_special_tokens=False))
        except BaseException as error:
            raise _explained(error, f"decode one of {len(rows):,} rows") from None
        name = self._unknown
        return texts if name is None else [text.replace(name, UNKNOWN) for text in texts]

    @override
    def to_bytes(self) -> bytes:
        return self._raw


def _by_word(content: Mapping[str, Any]) -> bool:
    """Whether the ids of ASCII words, one space between two, are those of each word by itself."""
    changes = {each.get("type") for each in _listed(content.get("normalizer"), "normalizers")}
    first, *rest = _listed(content.get("pre_tokenizer"), "pretokenizers") or [{}]
    spaces = first.get("type") in ("WhitespaceSplit", "BertPreTokenizer") or (
        first.get("type") == "Metaspace"
        and (first.get("prepend_scheme"), first.get("split")) == ("always", True)
    )
    return (
        spaces
        and changes <= {"NFC", "NFD", "NFKC", "NFKD", "Lowercase"}
        and {each.get("type") for each in rest} <= {"Split", "Digits", "Punctuation"}
        and all(token.get("special") for token in content.get("added_tokens") or ())
    )


def _listed(part: Any, parts: str) -> list[dict[str, Any]]:
    """A step of a ``tokenizer.json``, or the steps of a sequence of them."""
    if not isinstance(part, dict):
        return []
    return [*part.get(parts, ())] if part.get("type") == "Sequence" else [part]


def _load(found: TokenizerJson, path: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(found.content))
    except BaseException as error:
        if not _is_the_librarys(error):
            raise
        message = str(error)
        for name, secret in found.renamed.items():
            message = message.replace(secret, name)
        raise SavedTextError(
            f"{path} is not used: the package 'tokenizers' says: {message:.300}."
        ) from None


def _is_the_librarys(error: BaseException) -> bool:
    """Whether it is an error or a panic (no Exception) of the library, not Ctrl-C."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _explained(error: BaseException, what: str, texts: Sequence[str] = ()) -> BaseException:
    if not _is_the_librarys(error) or isinstance(error, MemoryError):
        return error
    return not_text(texts) or DataError(
        f"The package 'tokenizers' could not {what}: {error!s:.200}. "
        "If its tokenizer.json is not your own, do not use it."
    )


def _mark(name: str, given: str | None, found: TokenizerJson, path: Path) -> int | None:
    if given is not None:
        if given not in found.ids:
            raise UserError(
                f"{name} is {given!r:.80}, but {path} has no such token. Name one that it has, or "
                f"leave {name} out."
            )
        return found.ids[given]
    if name == "unk" and found.unk is not None:
        return found.ids[found.unk]
    return next((found.ids[known] for known in _NAMES[name] if known in found.ids), None)

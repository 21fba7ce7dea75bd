"""Tokenizers of Hugging Face's package ``tokenizers``: a ``tokenizer.json``, read or fitted.

Source: https://huggingface.co/docs/tokenizers.
"""

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Literal

# Unset, the package starts threads at the first batch, which take CPU time that training would use,
# and prints a warning at each fork after that.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import tokenizers as tokenizers
from typing_extensions import override

from textmill.config import Component
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.metadata import SavedTextError, read_bytes
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.base_tokenizer import LanguageConfig, Marks, Pieces, TaggedTokenizer
from textmill.text.tokenizers.character_tokenizers import covering
from textmill.text.tokenizers.tokenizer import (
    UNKNOWN,
    TooLargeVocabularyError,
    not_text,
    refuse_huge,
)

LARGEST_FILE = 1 << 27
"""Bytes; Gemma's, with 262,000 pieces, has 33 million."""
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


@dataclass
class TokenizerJson:
    """A parsed file whose special tokens have random names, so that ``</s>`` in a text is text.

    The library's own ``encode_special_tokens`` is not enough: a Unigram model, or words split at
    spaces, find ``</s>`` among the pieces of the model. Ids do not depend on the random names.
    """

    content: dict[str, Any]
    """For the library: no truncation, padding or template, special tokens renamed."""
    ids: dict[str, int]
    """Id of each piece, by the name the file gives it."""
    special: frozenset[int]
    """Ids of special tokens, the unknown one among them."""
    unk: str | None
    """The unknown piece, by its name in the file."""
    renamed: dict[str, str] = field(default_factory=dict)
    """New names of the special tokens."""

    @property
    def size(self) -> int:
        """Number of ids."""
        return max(self.ids.values()) + 1


def parse_tokenizer_json(raw: bytes, path: Path, marks: tuple[str, ...] = ()) -> TokenizerJson:
    """Parses a file's bytes; tokens named in ``marks`` are special even if the file says otherwise.

    Types of values, steps and expressions are for the library to check, when it loads the content.
    """
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SavedTextError(f"{path} is not JSON: {error}.") from None
    try:
        return _parsed(content, marks)
    except SavedTextError as error:
        raise SavedTextError(f"{path} is not used: {error}.") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SavedTextError(
            f"{path} is not a tokenizer.json of the package 'tokenizers': {error!r:.200}."
        ) from None


def _parsed(content: dict[str, Any], marks: tuple[str, ...]) -> TokenizerJson:
    model = content["model"]
    if model.get("dropout"):
        raise SavedTextError(
            f"its dropout is {model['dropout']!r:.40}, with which the same text has other ids each "
            "time; set it to null"
        )
    flags = dict.fromkeys(("special", "single_word", "lstrip", "rstrip", "normalized"), False)
    added = [flags | token for token in content.get("added_tokens") or []]
    ids = _ids(model["vocab"], added)
    special = [token["content"] for token in added if token["special"]]
    vocab, unk = model["vocab"], model.get("unk_token")
    if isinstance(vocab, list):
        unk = None if model.get("unk_id") is None else str(vocab[model["unk_id"]][0])
    elif unk not in vocab:
        unk = None
    special += [mark for mark in marks if mark in ids] + ([] if unk is None else [unk])
    renamed = {name: f"<{secrets.token_hex(12)}>" for name in dict.fromkeys(special)}
    steps = {name: content.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")}
    return TokenizerJson(
        content={
            "version": "1.0",
            "added_tokens": [
                t | {"content": renamed.get(t["content"], t["content"])} for t in added
            ],
            "model": _renamed(model, renamed),
            **steps,
        },
        ids=ids,
        special=frozenset(ids[name] for name in renamed),
        unk=unk,
        renamed=renamed,
    )


def _ids(vocab: Any, added: list[dict[str, Any]]) -> dict[str, int]:
    """Id of each piece, each once; a Unigram lists its pieces with their scores."""
    ids = {name: i for i, (name, _) in enumerate(vocab)} if isinstance(vocab, list) else {**vocab}
    if len(ids) < len(vocab):
        raise SavedTextError("a piece is in its vocabulary twice")
    for token in added:
        if ids.setdefault(token["content"], token["id"]) != token["id"]:
            raise SavedTextError(f"the added token {token['content']!r:.40} has two ids")
    if not ids:
        raise SavedTextError("its vocabulary is empty")
    if len(set(ids.values())) < len(ids):
        raise SavedTextError("two of its pieces have the same id")
    return ids


def _renamed(model: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    vocab, unk = model["vocab"], model.get("unk_token")
    if isinstance(vocab, list):
        return model | {"vocab": [[names.get(name, name), score] for name, score in vocab]}
    model = model | {"vocab": {names.get(name, name): i for name, i in vocab.items()}}
    if unk is not None:
        model["unk_token"] = names.get(unk, None if "merges" in model else "")
    if "merges" in model:  # a merge that makes a special token would make it of plain text
        prefix = model.get("continuing_subword_prefix") or ""
        pairs = [m.split(" ", 1) if isinstance(m, str) else m for m in model["merges"]]
        model["merges"] = [[a, b] for a, b in pairs if a + b.removeprefix(prefix) not in names]
    return model


@registries.tokenizers.register("huggingface")
class HuggingFaceTokenizer(Component, TaggedTokenizer):
    """The pieces of a ``tokenizer.json``, then marks the file lacks, then language tags.

    The file's normalizer, pre-tokenizer, model and decoder are used; its template, truncation and
    padding are not: a source is ``[tag] pieces eos``, a target ``bos [tag] pieces eos``, as with
    every tokenizer. Special tokens written in a text are text; added tokens that are not special
    are one id each, as the file says.
    """

    kind: ClassVar[str] = "huggingface"
    saved_file = "path", "huggingface.json"

    class Config(LanguageConfig):
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
        chunks = (texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK))
        return Ragged.concatenate(Ragged.from_lists(self._ids(chunk)) for chunk in chunks)

    @override
    def encode_one(self, text: str) -> list[int]:
        known = self._known
        found = [known.get(word, ()) for word in text.split(" ")]
        return [*chain.from_iterable(found)] if all(found) else self._ids([text])[0]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts; of words that have ids by themselves the library is asked once."""
        split = [text.split(" ") if self._splits(text) else [text] for text in texts]
        known = self._known  # another thread may replace it
        new = [*{part: None for parts in split for part in parts if part not in known}]
        if len(known) + len(new) > KEPT:
            known, new = {}, [*dict.fromkeys(chain.from_iterable(split))]
        try:
            rows = self._library.encode_batch_fast(new, add_special_tokens=False)
        except BaseException as error:
            which = "a text" if len(texts) == 1 else f"one of {len(texts):,} texts"
            raise _explained(error, f"encode {which}", texts) from None
        made = dict(zip(new, [row.ids for row in rows], strict=True))
        words = (word for word in made if len(word) <= LONGEST_KEPT and self._splits(word))
        known.update((word, made[word]) for word in islice(words, KEPT))
        self._known = known
        return [
            [i for part in parts for i in (made[part] if part in made else known[part])]
            for parts in split
        ]

    def _splits(self, text: str) -> bool:
        """Whether the ids of a text are those of each of its words."""
        ascii_words = self._by_word and len(text) <= LONGEST and text.isascii()
        return ascii_words and "" not in text.split(" ")

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


# -- fitting

JsonKind = Literal["bpe", "byte_bpe", "words"]
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
"""No kind can learn such a piece: all split words from punctuation."""
UNK = SPECIAL[1]
_SPACES = re.compile(r"[\t-\r \x85\u1680\u2028\u2029]")
"""Where words are split, after NFKC, which makes the other spaces plain ones."""
_WORDS = tokenizers.Regex(r"▁?[\p{L}\p{M}]+|▁?\p{N}+|▁?[^▁\p{L}\p{M}\p{N}]+|▁")
"""Letters, digits and the rest apart, each with the space before it: no piece goes across."""


def fit_tokenizer_json(
    texts: Iterable[str],
    kind: JsonKind,
    *,
    vocab_size: int,
    character_coverage: float = 1.0,
    min_count: int = 1,
    lowercase: bool = False,
) -> bytes:
    """Fits a vocabulary to texts; the same texts and settings give the same bytes.

    The texts are read up to three times, and not held. ``bpe`` is byte pair encoding of characters
    (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909), ``byte_bpe`` that of UTF-8 bytes, so
    that nothing is unknown and every text comes back exactly (GPT-2); ``words`` are the most
    frequent words and marks of punctuation. The settings are those of ``FittedTokenizer``.

    Raises:
        UserError: The text is empty, or no vocabulary of this size can be made; names the nearest.
    """
    least = len(SPECIAL) + (256 if kind == "byte_bpe" else 1)
    refuse_huge(vocab_size)
    if vocab_size < least:
        raise UserError(
            f"vocab_size={vocab_size} is too small: the special pieces take {len(SPECIAL)}"
            f"{', the bytes 256' if kind == 'byte_bpe' else ''}. Set vocab_size to {least} or more."
        )
    if error := not_text(texts):
        raise error
    library = _unfitted(kind, lowercase=lowercase)
    settings: dict[str, Any] = {"min_frequency": min_count, "show_progress": False}
    settings |= {"vocab_size": vocab_size, "special_tokens": [*SPECIAL]}
    if kind == "byte_bpe":
        settings["initial_alphabet"] = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    elif kind == "bpe":
        # The characters that get a piece are chosen here: the library would draw among equal ones.
        normal = library.normalizer
        written = (_SPACES.sub("", normal.normalize_str(text)) for text in texts)
        if not (characters := covering(written, character_coverage)):
            raise UserError(NO_TEXT)
        characters = list(dict.fromkeys(["▁", *characters]))
        settings |= {"initial_alphabet": characters, "limit_alphabet": len(characters)}
    trainers = tokenizers.trainers
    trainer = trainers.WordLevelTrainer if kind == "words" else trainers.BpeTrainer
    library.train_from_iterator(texts, trainer(**settings))
    content = json.loads(library.to_str())
    content["model"]["vocab"] = _in_order(content["model"]["vocab"], kind, vocab_size)
    return _json_of(content)


NO_TEXT = "The tokenizer's training text is empty: no line of it holds a character."


def _unfitted(kind: JsonKind, *, lowercase: bool) -> tokenizers.Tokenizer:
    """A tokenizer of a kind without a vocabulary."""
    steps, models = tokenizers.pre_tokenizers, tokenizers.models
    if kind == "byte_bpe":
        library = tokenizers.Tokenizer(models.BPE())
        library.pre_tokenizer = steps.ByteLevel(add_prefix_space=False)
        library.decoder = tokenizers.decoders.ByteLevel()
        return library
    words = kind == "words"
    model = models.WordLevel({UNK: 0}, unk_token=UNK) if words else models.BPE(unk_token=UNK)
    library = tokenizers.Tokenizer(model)
    # Spaces need no rule of their own: words are split at any, which is 1.3 to 1.7 times as fast.
    library.normalizer = tokenizers.normalizers.NFKC()
    if lowercase:
        both = [library.normalizer, tokenizers.normalizers.Lowercase()]
        library.normalizer = tokenizers.normalizers.Sequence(both)
    library.pre_tokenizer = steps.BertPreTokenizer()
    if kind == "bpe":
        apart = steps.Split(_WORDS, "isolated")
        library.pre_tokenizer = steps.Sequence([steps.Metaspace(), apart])
        library.decoder = tokenizers.decoders.Metaspace()
    return library


def _in_order(vocab: Mapping[str, int], kind: JsonKind, vocab_size: int) -> dict[str, int]:
    """A vocabulary by rising ids, which the library does not keep; refuses another size."""
    if len(vocab) <= len(SPECIAL):
        raise UserError(NO_TEXT)
    if len(vocab) > vocab_size:
        raise UserError(
            f"vocab_size={vocab_size} is too small: the text's characters and the special pieces "
            f"take {len(vocab)}. Set vocab_size to {len(vocab)} or more, or character_coverage "
            "below 1.0 (0.9995)."
        )
    if kind != "words" and len(vocab) < vocab_size:
        raise TooLargeVocabularyError(vocab_size, len(vocab))
    return dict(sorted(vocab.items(), key=lambda item: item[1]))


def _json_of(content: Mapping[str, Any]) -> bytes:
    """What the library would write, without what differs between its versions."""
    kept = ("normalizer", "pre_tokenizer", "decoder", "model")
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": i, "content": name} | plain | {"special": True} for i, name in enumerate(SPECIAL)
    ]
    out = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
    out |= {"post_processor": None} | {name: content.get(name) for name in kept}
    return json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()

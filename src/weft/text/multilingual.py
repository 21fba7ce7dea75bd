"""SentencePiece for one or many languages, with a tag per language where a side has several."""

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import sentencepiece
from numpy.typing import NDArray
from typing_extensions import override

from weft.config import Component, registries
from weft.config import Config as BaseConfig
from weft.config.component import setting
from weft.errors import UserError
from weft.runtime.files import write_file
from weft.text.description import SavedTextError, settings_of
from weft.text.ragged import Ragged
from weft.text.sentencepiece import (
    DEFAULT_VOCAB_SIZE,
    ModelType,
    encode_pieces,
    load_sentencepiece,
    train_sentencepiece,
)
from weft.text.tokenizer import Decoder, Encoder, Mode, Tokenizer, VocabInfo

__all__ = ["MultilingualTokenizer"]

Tags = Literal["auto", "always", "never"]
MODEL_FILE = "sentencepiece.model"
_SAVED = ("source_langs", "target_langs", "default_source_lang", "default_target_lang", "tags")


@registries.tokenizers.register("multilingual")
class MultilingualTokenizer(Component, Tokenizer):
    """SentencePiece pieces, then special ids the model lacks, then language tags.

    A source is ``[tag] pieces eos``, a target ``bos [tag] pieces eos``. A side with one language
    has no tags.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> model = Path(folder.name, "eng-fra.model")
        >>> train_sentencepiece(["the cat sat", "le chat dort"] * 9, model, vocab_size=18)
        >>> tokenizer = MultilingualTokenizer.from_file(
        ...     model,
        ...     source_langs={"eng"},
        ...     target_langs={"fra"},
        ...     default_source_lang="eng",
        ...     default_target_lang="fra",
        ... )
        >>> ids = tokenizer.create_encoder(mode="target")("le chat")
        >>> [int(ids[0]), int(ids[-1])]
        [2, 3]
        >>> tokenizer.create_decoder()(ids)
        'le chat'
        >>> folder.cleanup()
    """

    kind: ClassVar[str] = "multilingual"

    class Config(BaseConfig):
        """A tokenizer that is loaded from ``model``, or trained on ``train_on`` the first time."""

        train_on: Path | None = None
        """Text or TSV file (UTF-8, no header) to train on where the model file does not exist."""
        columns: tuple[int, ...] = (0, 1)
        """Columns of ``train_on`` to train on, from 0; a line with fewer gives those it has."""
        model: Path | None = None
        """SentencePiece model file. None: one in ``cache_dir``, named after the training."""
        vocab_size: int | None = None
        """Number of pieces, without tags. None: 5,000 if trained, else what the model has."""
        model_type: ModelType = "unigram"
        """How pieces are found; unigram is what sentencepiece's authors recommend."""
        character_coverage: float = 1.0
        """Share of characters that get a piece; 0.9995 for Chinese or Japanese."""
        byte_fallback: bool = False
        """Whether characters without a piece are written as bytes (256 pieces), not as unknown."""
        pieces: tuple[str, ...] = ()
        """Strings that are always one piece."""
        source_langs: tuple[str, ...] = ("source",)
        """Languages of the source side."""
        target_langs: tuple[str, ...] = ("target",)
        """Languages of the target side."""
        default_source_lang: str | None = None
        """Language of a source whose language is not given. None: the first."""
        default_target_lang: str | None = None
        """Language of a target whose language is not given. None: the first."""
        tags: Tags = "auto"
        """Language tags: on sides with several languages (auto), on both (always), or never."""
        cache_dir: Path = setting(Path(".weft"), in_key=False)
        """Folder of trained tokenizers; one found there is not trained again."""

    def __init__(self, config: "MultilingualTokenizer.Config") -> None:
        path = config.model or _cached_model(config)
        if not path.exists():
            _train(config, path)
        self._set_up(config, load_sentencepiece(path), path)

    @classmethod
    def from_file(
        cls,
        path: Path | str,
        *,
        source_langs: Collection[str] = ("source",),
        target_langs: Collection[str] = ("target",),
        default_source_lang: str | None = None,
        default_target_lang: str | None = None,
        tags: Tags = "auto",
    ) -> "MultilingualTokenizer":
        """Loads a trained model file; sets of languages are sorted, so that tags have one order.

        Raises:
            SavedTextError: The file is missing or no model.
            UserError: A default language is not among its side's languages.
        """
        config = cls.Config(
            model=Path(path),
            source_langs=_ordered(source_langs),
            target_langs=_ordered(target_langs),
            default_source_lang=default_source_lang,
            default_target_lang=default_target_lang,
            tags=tags,
        )
        made = cls.__new__(cls)
        made._set_up(config, load_sentencepiece(Path(path)), Path(path))
        return made

    def _set_up(
        self,
        config: "MultilingualTokenizer.Config",
        pieces: sentencepiece.SentencePieceProcessor,
        path: Path,
    ) -> None:
        size = pieces.vocab_size()
        if config.vocab_size not in (None, size):
            raise UserError(
                f"vocab_size={config.vocab_size}, but the model {path} has {size} pieces. "
                "Leave vocab_size out, or name another model file."
            )
        source = _default("source", config.default_source_lang, config.source_langs)
        target = _default("target", config.default_target_lang, config.target_langs)
        self.config = dataclasses.replace(
            config, vocab_size=size, default_source_lang=source, default_target_lang=target
        )
        self.pieces, self._decoder = pieces, _PieceDecoder(pieces)
        known = {"pad": pieces.pad_id(), "bos": pieces.bos_id(), "eos": pieces.eos_id()}
        # Many published models lack pad (and some bos): such ids follow the pieces, as the tags do.
        missing = [name for name, index in known.items() if index < 0]
        known |= {name: size + i for i, name in enumerate(missing)}
        langs = {"source": config.source_langs, "target": config.target_langs}
        tagged = {
            side: config.tags == "always" or (config.tags == "auto" and len(langs[side]) > 1)
            for side in langs
        }
        names = dict.fromkeys(lang for side in langs if tagged[side] for lang in langs[side])
        first = size + len(missing)
        self._tags = {lang: first + i for i, lang in enumerate(names)}
        self._tagged = tagged
        self._vocab_info = VocabInfo(
            size=first + len(names),
            unk_idx=pieces.unk_id(),
            bos_idx=known["bos"],
            eos_idx=known["eos"],
            pad_idx=known["pad"],
        )

    @property
    @override
    def vocab_info(self) -> VocabInfo:
        return self._vocab_info

    @override
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        if mode not in ("source", "target"):
            raise UserError(f"create_encoder: mode must be 'source' or 'target', but is {mode!r}.")
        before = self.target_prefix(lang) if mode == "target" else self._tag("source", lang)
        return _PieceEncoder(self.pieces, before, [self._vocab_info.eos_idx])

    @override
    def create_decoder(self) -> Decoder:
        return self._decoder

    @override
    def target_prefix(self, lang: str | None = None) -> list[int]:
        return [self._vocab_info.bos_idx, *self._tag("target", lang)]

    def fingerprint(self) -> str:
        """The sha256 of the model's bytes and the language settings."""
        settings = json.dumps([getattr(self.config, name) for name in _SAVED])
        return hashlib.sha256(self.pieces.serialized_model_proto() + settings.encode()).hexdigest()

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        write_file(folder / MODEL_FILE, self.pieces.serialized_model_proto())
        return {name: getattr(self.config, name) for name in _SAVED}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "MultilingualTokenizer":
        kinds = dict.fromkeys(_SAVED, str) | {"source_langs": list, "target_langs": list}
        settings_of(folder / "tokenizer.json", settings, kinds)
        if settings["tags"] not in ("auto", "always", "never"):
            raise SavedTextError(
                f"{folder / 'tokenizer.json'}: 'tags' cannot be {settings['tags']!r:.80}."
            )
        return cls.from_file(
            folder / MODEL_FILE,
            source_langs=tuple(settings["source_langs"]),
            target_langs=tuple(settings["target_langs"]),
            default_source_lang=settings["default_source_lang"],
            default_target_lang=settings["default_target_lang"],
            tags=settings["tags"],
        )

    def _tag(self, side: str, lang: str | None) -> list[int]:
        langs = self.config.source_langs if side == "source" else self.config.target_langs
        default = (
            self.config.default_source_lang if side == "source" else self.config.default_target_lang
        )
        lang = lang or default
        if lang not in langs:
            raise UserError(
                f"'{lang}' is not a {side} language of this tokenizer; these are: {_listed(langs)}."
            )
        return [self._tags[lang]] if self._tagged[side] else []

    @override
    def __repr__(self) -> str:
        langs = f"{'+'.join(self.config.source_langs)}->{'+'.join(self.config.target_langs)}"
        return f"MultilingualTokenizer({self._vocab_info.size} ids, {langs})"


class _PieceEncoder(Encoder):
    def __init__(
        self,
        pieces: sentencepiece.SentencePieceProcessor,
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        self._pieces, self._before, self._after = pieces, before, after

    @override
    def batch(self, texts: Sequence[str]) -> Ragged:
        return encode_pieces(self._pieces, texts).wrapped(self._before, self._after)

    @override
    def __call__(self, text: str) -> NDArray[np.int32]:
        # A pipeline's map encodes one by one; a batch of one costs 100 microseconds, this 5.
        try:
            ids = self._pieces.encode(text, out_type=int)
        except UnicodeEncodeError:
            return super().__call__(text)  # whose error names the text
        return np.array([*self._before, *ids, *self._after], dtype=np.int32)


class _PieceDecoder(Decoder):
    def __init__(self, pieces: sentencepiece.SentencePieceProcessor) -> None:
        self._pieces = pieces
        ids = range(pieces.vocab_size())
        self._silent = {i for i in ids if pieces.IsControl(i)}

    @override
    def batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        size, silent = self._pieces.vocab_size(), self._silent
        kept = [[i for i in map(int, row) if 0 <= i < size and i not in silent] for row in rows]
        return list(self._pieces.decode(kept)) if kept else []


def _ordered(langs: Collection[str]) -> tuple[str, ...]:
    if isinstance(langs, str):
        return (langs,)
    return tuple(sorted(langs)) if isinstance(langs, set | frozenset) else tuple(langs)


def _listed(langs: Sequence[str]) -> str:
    """The names of 200 languages, no more: a list from a file may be of any length."""
    return ", ".join(langs[:200]) + (", ..." if len(langs) > 200 else "")


def _default(side: str, given: str | None, langs: tuple[str, ...]) -> str:
    if not langs or len(set(langs)) < len(langs):
        raise UserError(
            f"{side}_langs must name one language or several different ones, but is {langs!r:.200}."
        )
    if given is not None and given not in langs:
        raise UserError(
            f"default_{side}_lang is '{given}', which is not in {side}_langs: {_listed(langs)}."
        )
    return given or langs[0]


def _cached_model(config: MultilingualTokenizer.Config) -> Path:
    """Where the model trained with these settings on this content is kept."""
    if config.train_on is None:
        raise UserError(
            "The tokenizer needs 'model' (a SentencePiece model file) or 'train_on' (a text or "
            "TSV file)."
        )
    trained_with = [
        config.columns,
        config.vocab_size or DEFAULT_VOCAB_SIZE,
        config.model_type,
        config.character_coverage,
        config.byte_fallback,
        config.pieces,
    ]
    digest = hashlib.sha256(json.dumps(trained_with).encode())
    try:
        with config.train_on.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise _unreadable(config.train_on, error) from None
    size = config.vocab_size or DEFAULT_VOCAB_SIZE
    name = f"{config.train_on.stem}-{config.model_type}-{size}-{digest.hexdigest()[:12]}.model"
    return config.cache_dir / "tokenizers" / name


def _train(config: MultilingualTokenizer.Config, path: Path) -> None:
    if config.train_on is None:
        raise UserError(
            f"The tokenizer's model file {path} does not exist, and there is no 'train_on' to "
            "train it on. "
            "Set train_on to a text or TSV file, or correct the path."
        )
    if not config.columns or min(config.columns) < 0:
        raise UserError(f"columns must be numbers from 0, at least one, but is {config.columns!r}.")
    try:
        train_sentencepiece(
            _texts(config.train_on, config.columns),
            path,
            vocab_size=config.vocab_size or DEFAULT_VOCAB_SIZE,
            model_type=config.model_type,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            pieces=config.pieces,
        )
    except OSError as error:
        raise _unreadable(config.train_on, error) from None


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"The tokenizer's training text {path} cannot be read: {error.strerror}.")


def _texts(path: Path, columns: tuple[int, ...]) -> Iterator[str]:
    """The columns' texts; lines that are not UTF-8 are left to the data's bad rows."""
    with path.open("rb") as file:
        for number, raw in enumerate(file):
            line = raw.removeprefix(b"\xef\xbb\xbf") if number == 0 else raw
            try:
                cells = line.decode().rstrip("\r\n").split("\t")
            except UnicodeDecodeError:
                continue
            yield from (cells[i] for i in columns if i < len(cells))

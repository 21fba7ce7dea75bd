"""Tokenizers that are SentencePiece models beside a ``vocab.json``: Marian's and M2M-100's."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import sentencepiece
from typing_extensions import override

from textmill.config import Component
from textmill.errors import UserError
from textmill.runtime.files import write_file
from textmill.text import registries
from textmill.text.metadata import SavedTextError, read_bytes
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.base_tokenizer import LanguageConfig, Marks, Pieces
from textmill.text.tokenizers.sentencepiece import LARGEST_MODEL, parse_sentencepiece
from textmill.text.tokenizers.started_tokenizer import StartedTokenizer
from textmill.text.tokenizers.tokenizer import Mode
from textmill.text.tokenizers.tokenizer_json import LARGEST_FILE

CHUNK = 16_384
"""Texts encoded at once: each piece is a string until its id is looked up."""
_MARKS = ("<pad>", "<unk>", "<s>", "</s>")
_LANGUAGE = re.compile(r"__[a-z]{2,3}__|>>[^<>]+<<")
"""Tokens of languages: M2M-100's, and those that sources of some of Marian's models begin with."""
_CODES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga "
    "gd gl gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk "
    "ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl "
    "tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}
"""Languages of M2M-100, whose ids follow those of ``vocab.json`` in this order."""


@registries.tokenizers.register("pretrained_sentencepiece")
class PretrainedSentencePiece(Component, StartedTokenizer):
    """The pieces of SentencePiece models, numbered by a ``vocab.json``.

    Marian has ``source.spm`` and ``target.spm``, one for each side; M2M-100 has one,
    ``sentencepiece.bpe.model``, and tokens of languages. A source of Marian that begins with a
    language such as ``>>fra<<``, which the vocabulary has, keeps it as one token. Texts are not
    rewritten by Moses' rules of punctuation before, as with the package sacremoses.
    """

    kind: ClassVar[str] = "pretrained_sentencepiece"
    saved: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"start": (int, type(None))}
    saved_file = "path", "sentencepiece.json"

    class Config(LanguageConfig):
        """Where the tokenizer comes from."""

        path: Path
        """The folder of a pretrained model; or the one file that a run keeps of it."""
        start: int | None = None
        """The id that begins a target; null: that of ``<s>``."""

    def __init__(self, config: Config) -> None:
        self.config, path = config, config.path
        self.frame(_of_folder(path) if path.is_dir() else _of_file(path), config)

    @override
    def special_ids(self, vocabulary: Pieces) -> Mapping[str, int]:
        assert isinstance(vocabulary, _NumberedPieces)
        return vocabulary.special

    @override
    def side_pieces(self, mode: Mode) -> Pieces:
        pieces = self.vocabulary
        assert isinstance(pieces, _NumberedPieces)
        return pieces if mode == "source" else pieces.target

    def write_folder(self, folder: Path, **settings: Any) -> None:
        """Writes the files that transformers reads, as they were but for their settings.

        Args:
            folder: The folder, which is there.
            settings: Of ``tokenizer_config.json``.
        """
        pieces, languages = self.vocabulary, self.languages
        assert isinstance(pieces, _NumberedPieces)
        models, ids, marian = pieces.models, pieces.ids, "target" in pieces.models
        for side, raw in models.items():
            write_file(folder / (f"{side}.spm" if marian else "sentencepiece.bpe.model"), raw)
        kept = ids if marian else {n: i for n, i in ids.items() if not _LANGUAGE.fullmatch(n)}
        write_file(folder / "vocab.json", json.dumps(kept, ensure_ascii=False))
        told: dict[str, Any] = {"tokenizer_class": "MarianTokenizer"}
        if not marian:
            few = len(ids) - len(kept) == len(_CODES["wmt21"].split())
            told = {
                "tokenizer_class": "M2M100Tokenizer",
                "language_codes": "wmt21" if few else "m2m100",
                "src_lang": languages.default_source_lang,
                "tgt_lang": languages.default_target_lang,
                "extra_special_tokens": [name for name in ids if _LANGUAGE.fullmatch(name)],
            }
        told |= {"split_special_tokens": True, **settings}
        write_file(folder / "tokenizer_config.json", json.dumps(told, indent=2))


class _NumberedPieces(Pieces):
    def __init__(self, models: Mapping[str, bytes], ids: Mapping[str, int], path: Path) -> None:
        self.models, self.ids = models, ids
        self.size = _size(ids, path)
        names = [ids.get(name) for name in _MARKS]
        self.marks = Marks(*names)
        if self.marks.unk is None or self.marks.eos is None:
            raise SavedTextError(f"{path}: its vocabulary has no <unk> or no </s>.")
        self.special = {n: i for n, i in ids.items() if n in _MARKS or _LANGUAGE.fullmatch(n)}
        self._unknown = self.marks.unk
        self._names = dict(zip(ids.values(), ids, strict=True))
        silent = {*self.special.values()} - {self._unknown}
        self._written = {i: name for i, name in self._names.items() if i not in silent}
        self._processors = {side: parse_sentencepiece(raw, path) for side, raw in models.items()}
        self._side = "source"

    @property
    def target(self) -> "_NumberedPieces":
        """The same of the target's side."""
        made = object.__new__(_NumberedPieces)
        vars(made).update(vars(self), _side="target")
        return made

    def _processor(self, side: str) -> sentencepiece.SentencePieceProcessor:
        return self._processors.get(side, self._processors["source"])

    @override
    def encode(self, texts: Sequence[str]) -> Ragged:
        processor, rows = self._processor(self._side), list[list[int]]()
        for first in range(0, len(texts), CHUNK):
            parts = [self._split(text) for text in texts[first : first + CHUNK]]
            rest = [text for _, text in parts]
            pieces = processor.encode(rest, out_type=str, num_threads=1)
            rows += [
                [*code, *self._numbers(row)] for (code, _), row in zip(parts, pieces, strict=True)
            ]
        return Ragged.from_lists(rows)

    @override
    def encode_one(self, text: str) -> list[int]:
        code, text = self._split(text)
        return [*code, *self._numbers(self._processor(self._side).encode(text, out_type=str))]

    def _split(self, text: str) -> tuple[list[int], str]:
        """The language that a text begins with, and the rest."""
        if not text.startswith(">>"):
            return [], text
        end = text.find("<<") + 2
        code = self.special.get(text[:end])
        return ([], text) if code is None else ([code], text[end:])

    def _numbers(self, pieces: Sequence[str]) -> list[int]:
        ids, unknown = self.ids, self._unknown
        return [ids.get(piece, unknown) for piece in pieces]

    @override
    def decode(self, rows: Sequence[list[int]]) -> list[str]:
        processor, written = self._processor("target"), self._written
        kept = [[written[i] for i in row if i in written] for row in rows]
        return [processor.decode_pieces(row).strip() if row else "" for row in kept]

    @override
    def to_bytes(self) -> bytes:
        models = {side: base64.b64encode(raw).decode() for side, raw in self.models.items()}
        return json.dumps({**models, "vocab": dict(self.ids)}, ensure_ascii=False).encode()


def _of_folder(folder: Path) -> _NumberedPieces:
    """The pieces of a folder of Hugging Face's.

    Raises:
        SavedTextError: A file is missing, or damaged.
        UserError: The sides have vocabularies of their own.
    """
    if (folder / "target_vocab.json").exists():
        raise UserError(
            f"{folder} has a vocabulary for each side, and textmill's models have one for both. "
            "Use a model without target_vocab.json."
        )
    ids = _parsed(folder / "vocab.json")
    if (folder / "source.spm").exists():
        files = {side: folder / f"{side}.spm" for side in ("source", "target")}
    else:
        files, last = {"source": folder / "sentencepiece.bpe.model"}, len(ids)
        ids |= {f"__{code}__": i for i, code in enumerate(_codes(folder), last)}
    models = {side: read_bytes(file, largest=LARGEST_MODEL) for side, file in files.items()}
    return _NumberedPieces(models, ids, folder)


def _codes(folder: Path) -> list[str]:
    file = folder / "tokenizer_config.json"
    which = _parsed(file).get("language_codes", "m2m100") if file.exists() else "m2m100"
    if which not in _CODES:
        raise SavedTextError(f"{file}: its language_codes are not {' or '.join(_CODES)}.")
    return _CODES[which].split()


def _of_file(path: Path) -> _NumberedPieces:
    """The pieces of what :meth:`_NumberedPieces.to_bytes` made."""
    found = _parsed(path)
    ids = found.pop("vocab", None)
    if not isinstance(ids, dict) or "source" not in found or not set(found) <= {"source", "target"}:
        raise SavedTextError(f"{path} must hold a model of the source, and a vocabulary.")
    try:
        models = {side: base64.b64decode(text, validate=True) for side, text in found.items()}
    except (TypeError, ValueError):
        raise SavedTextError(f"{path}: its models are not written in base64.") from None
    return _NumberedPieces(models, ids, path)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_bytes(path, largest=LARGEST_FILE))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SavedTextError(f"{path} must hold a JSON mapping.")
    return found


def _size(ids: Mapping[str, Any], path: Path) -> int:
    """Number of ids, each given once."""
    numbers = [i for i in ids.values() if isinstance(i, int) and not isinstance(i, bool) and i >= 0]
    if len({*numbers}) < len(ids) or not ids:
        raise SavedTextError(
            f"{path}: its vocabulary must give each piece an id of its own from 0."
        )
    return max(numbers) + 1

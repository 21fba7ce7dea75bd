"""Tokenizers of pretrained models, which frame texts as the model was trained to read them.

Texts begin by a start mark, or by tokens of their languages.
"""

import base64
import dataclasses
import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from textmill.config import Component
from textmill.errors import UserError
from textmill.runtime.files import write_file
from textmill.runtime.pretrained import PretrainedFolder, find_pretrained
from textmill.text import registries
from textmill.text.metadata import SavedTextError, read_bytes
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.base_tokenizer import (
    LanguageConfig,
    MarkedEncoder,
    Marks,
    Pieces,
    TaggedTokenizer,
)
from textmill.text.tokenizers.huggingface import LARGEST_FILE, HuggingFaceTokenizer
from textmill.text.tokenizers.sentencepiece import LARGEST_MODEL, parse_sentencepiece
from textmill.text.tokenizers.tokenizer import Encoder, Mode

CHUNK = 16_384
"""Texts encoded at once: each piece is a string until its id is looked up."""
_NLLB = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
"""A language of NLLB: its files name one in their template, and each text has its own."""
_EXAMPLES = {
    "model.encoder.path": "sentence-transformers/all-MiniLM-L6-v2",
    "model.path": "google/flan-t5-small",
}
_OF_LANGUAGES = ("m2m_100", "mbart")
"""Architectures whose texts all begin with their language."""
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


class StartedTokenizer(TaggedTokenizer):
    """A tokenizer that frames texts as a pretrained model was trained to read and write them.

    If the vocabulary has tokens of the languages that are set, such as ``eng_Latn`` or ``__en__``,
    a source is ``language pieces eos`` and a target ``start language pieces eos``. Else a source is
    ``[begin] pieces eos``, and a target ``start [begin] pieces eos``.
    """

    known: Mapping[str, int]
    """Ids of the languages that the vocabulary has tokens of."""
    start: int | None
    """The id that begins targets; None: that which begins texts."""
    begin_name: str | None = None
    """The token that the model's template puts before a text."""

    @abstractmethod
    def special_ids(self, vocabulary: Pieces) -> Mapping[str, int]:
        """Ids of the vocabulary's special tokens."""

    @override
    def frame(self, vocabulary: Pieces, config: Any) -> None:
        start, filled = config.start, config.filled()
        if start is not None and not 0 <= start < vocabulary.size:
            raise UserError(
                f"Targets are to begin with the id {start}, but the tokenizer has those from 0 to "
                f"{vocabulary.size - 1} alone. Set tokenizer.start to one of them."
            )
        special = self.special_ids(vocabulary)
        self.known = known = {} if filled.tags == "never" else _known(filled, special)
        if vocabulary.marks.bos is None:  # a new id would be one that the model never saw
            vocabulary.marks = dataclasses.replace(vocabulary.marks, bos=start)
        super().frame(vocabulary, dataclasses.replace(filled, tags="never") if known else filled)
        self.languages, self.start = filled, start
        self._begin = [] if known or self.begin_name is None else [special[self.begin_name]]

    def side_pieces(self, mode: Mode) -> Pieces:
        return self.vocabulary

    @override
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        super().create_encoder(mode=mode, lang=lang)  # which refuses another mode
        source = [*self._begin, *self.tag_ids("source", lang)] if mode == "source" else None
        before = self.target_prefix(lang) if source is None else source
        return MarkedEncoder(self.side_pieces(mode), before, [self.vocab_info.eos_idx])

    @override
    def target_prefix(self, lang: str | None = None) -> list[int]:
        if self.start is None:
            return super().target_prefix(lang)
        begin = [] if self._begin == [self.start] else self._begin
        return [self.start, *begin, *self.tag_ids("target", lang)]

    @override
    def fingerprint(self) -> str:
        made = super().fingerprint()
        if self.start is None:
            return made
        return hashlib.sha256(f"{made} {self.start}".encode()).hexdigest()

    @override
    def tag_ids(self, side: str, lang: str | None) -> list[int]:
        if not self.known:
            return super().tag_ids(side, lang)
        self.languages.offset(side, lang)  # which refuses a language of the other side
        return [self.known[lang or getattr(self.languages, f"default_{side}_lang")]]


def _known(languages: LanguageConfig, special: Mapping[str, int]) -> dict[str, int]:
    """Ids of all languages, or of none."""
    langs = dict.fromkeys((*languages.source_langs, *languages.target_langs))
    named = {lang: special.get(f"__{lang}__", special.get(lang)) for lang in langs}
    known = {lang: i for lang, i in named.items() if i is not None}
    missing = [lang for lang in langs if lang not in known]
    if known and missing:
        raise UserError(
            f"The tokenizer has no token of the language {missing[0]!r:.40}, as it has of "
            f"{next(iter(known))!r}. Name languages by its own tokens, in tokenizer.source_langs "
            "and in tokenizer.target_langs."
        )
    return known


@registries.tokenizers.register("pretrained")
class PretrainedTokenizer(StartedTokenizer, HuggingFaceTokenizer):
    """The pieces of a pretrained model's ``tokenizer.json``, framed as its template says.

    So a text is ``[CLS] pieces [SEP]`` for BERT and ``<s> pieces </s>`` for RoBERTa; all else is as
    with ``tokenizer.type=huggingface``. A target of an encoder-decoder begins with the mark that
    its decoder was trained to start from: ``</s> <s> pieces </s>`` for BART, ``<pad> pieces </s>``
    for T5. Where ``source_langs`` and ``target_langs`` are tokens of the file, as NLLB's
    ``eng_Latn``, texts begin with theirs.

    Of a folder with SentencePiece models in place of the file, as Marian's, a
    :class:`PretrainedSentencePiece` is made.
    """

    kind: ClassVar[str] = "pretrained"
    closes: ClassVar[bool] = True
    before_word: ClassVar[str] = " "

    class Config(HuggingFaceTokenizer.Config):
        path: Path | None = None  # type: ignore[assignment]
        """The file tokenizer.json, or its folder; null is that of ``model.path``, or of
        ``model.encoder.path``."""
        start: int | None = None
        """The id that begins targets; null is the decoder_start_token_id of ``model.path``, or what
        begins texts."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, model: Any = None
        ) -> StartedTokenizer:
            path = tokenizer_of(model) if self.path is None else self.path
            if path.is_dir():
                path = PretrainedFolder(path, str(path)).tokenizer()
            facts = _facts(model)
            start = facts.get("decoder_start_token_id") if self.start is None else self.start
            eos = self.eos or _end(path, facts)
            made: StartedTokenizer
            if path.is_dir():
                langs = {name: getattr(self, name) for name in vars(LanguageConfig())}
                config = PretrainedSentencePiece.Config(path=path, start=start, **langs)
                made = PretrainedSentencePiece(config)
            else:
                made = PretrainedTokenizer(
                    dataclasses.replace(self, path=path, start=start, eos=eos)
                )
            if facts.get("model_type") in _OF_LANGUAGES and not made.known:
                raise UserError(
                    f"{model.path} writes the language before every text. Set "
                    "tokenizer.source_langs and tokenizer.target_langs, as [eng_Latn] and "
                    "[fra_Latn] for NLLB, [en] and [fr] for M2M-100."
                )
            return made

    def __init__(self, config: Config) -> None:
        path = Path(config.path or "")
        before, after = _template(read_bytes(path, largest=LARGEST_FILE), path)
        bos, eos = config.bos or before, config.eos or after
        self.begin_name = before
        HuggingFaceTokenizer.__init__(self, dataclasses.replace(config, bos=bos, eos=eos))

    @override
    def special_ids(self, vocabulary: Pieces) -> Mapping[str, int]:
        parsed = self.parsed
        return {name: i for name, i in parsed.ids.items() if i in parsed.special}


def tokenizer_of(model: Any) -> Path:
    """The file of the tokenizer of a pretrained model, or the folder that has it in several.

    ``model`` is settings with a ``path``, or with those of an encoder that has one.
    """
    name, part = _named(model)
    if not getattr(part, "path", ""):
        raise UserError(
            f"The tokenizer is that of {name}, which is not set: name a folder, or a model of the "
            f"Hugging Face hub, as {_EXAMPLES[name]}."
        )
    return find_pretrained(part.path, revision=getattr(part, "revision", None)).tokenizer()


def _named(model: Any) -> tuple[str, Any]:
    """The part of a model's settings that names a pretrained one, and the setting."""
    if hasattr(model, "path"):
        return "model.path", model
    return "model.encoder.path", getattr(model, "encoder", None)


def _facts(model: Any) -> dict[str, Any]:
    """The config.json of a pretrained decoder; empty for an encoder alone."""
    name, part = _named(model)
    if name != "model.path" or not part.path:
        return {}
    facts = find_pretrained(part.path, revision=getattr(part, "revision", None)).config()
    if not facts.get("is_encoder_decoder"):
        return {"eos_token_id": facts.get("eos_token_id")}
    if not isinstance(facts.get("decoder_start_token_id"), int):
        raise UserError(
            f"config.json of {part.path} says no decoder_start_token_id: add it there, the id that "
            "its decoder was trained to start from."
        )
    return facts


def _end(path: Path, facts: Mapping[str, Any]) -> str | None:
    """The token by which a decoder was trained to end texts; None: its name tells."""
    ids = facts.get("eos_token_id")
    wanted = ids[0] if isinstance(ids, list) and ids else ids
    if facts.get("is_encoder_decoder") or not isinstance(wanted, int):
        return None
    try:
        added = json.loads(read_bytes(path, largest=LARGEST_FILE)).get("added_tokens") or []
        return next((str(t["content"]) for t in added if t.get("id") == wanted), None)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        return None  # reading the file raises its error


def _template(raw: bytes, path: Path) -> tuple[str | None, str | None]:
    """The tokens before and after a text; None: there is none."""
    try:
        step = json.loads(raw).get("post_processor") or {}
        steps = step.get("processors", [step]) if step.get("type") == "Sequence" else [step]
        found: tuple[str | None, str | None] = (None, None)
        for each in steps:
            if each.get("type") in ("BertProcessing", "RobertaProcessing"):
                found = each["cls"][0], each["sep"][0]
            elif each.get("type") == "TemplateProcessing":
                found = _sides(each["single"])
        if not all(isinstance(mark, str | None) for mark in found):
            raise TypeError("a mark that is not text")
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        raise UserError(
            f"{path}: its post_processor is not understood. Wanted one that puts at most one token "
            "before a text and one after it."
        ) from None
    return found


def _sides(parts: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    marks = [part for part in parts if not _NLLB.fullmatch(_mark(part))]
    at = ["Sequence" in part for part in marks].index(True)
    before, after = [*map(_mark, marks[:at])], [*map(_mark, marks[at + 1 :])]
    if len(before) > 1 or len(after) > 1:
        raise LookupError("more than one token on a side")
    return next(iter(before), None), next(iter(after), None)


def _mark(part: dict[str, Any]) -> str:
    """The name of a special token; empty is the text."""
    return "" if "Sequence" in part else part["SpecialToken"]["id"]


@registries.tokenizers.register("pretrained_sentencepiece")
class PretrainedSentencePiece(Component, StartedTokenizer):
    """The pieces of SentencePiece models, numbered by a ``vocab.json``.

    Marian has ``source.spm`` and ``target.spm``, one for each side; M2M-100 has one,
    ``sentencepiece.bpe.model``, and tokens of languages. A source of Marian that begins with a
    language such as ``>>fra<<``, which the vocabulary has, keeps it as one token. Texts are not
    rewritten by Moses' rules of punctuation before, as with the package sacremoses.
    """

    kind: ClassVar[str] = "pretrained_sentencepiece"
    saved_file = "path", "sentencepiece.json"

    class Config(LanguageConfig):
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
        """Writes the files of transformers; ``settings`` go into ``tokenizer_config.json``."""
        pieces, languages = self.vocabulary, self.languages
        assert isinstance(pieces, _NumberedPieces)
        models, ids, marian = pieces.models, pieces.ids, "target" in pieces.models
        for side, raw in models.items():
            write_file(folder / (f"{side}.spm" if marian else "sentencepiece.bpe.model"), raw)
        kept = ids if marian else {n: i for n, i in ids.items() if not _LANGUAGE.fullmatch(n)}
        write_file(folder / "vocab.json", json.dumps(kept, ensure_ascii=False))
        facts: dict[str, Any] = {"tokenizer_class": "MarianTokenizer"}
        if not marian:
            few = len(ids) - len(kept) == len(_CODES["wmt21"].split())
            facts = {
                "tokenizer_class": "M2M100Tokenizer",
                "language_codes": "wmt21" if few else "m2m100",
                "src_lang": languages.default_source_lang,
                "tgt_lang": languages.default_target_lang,
                "extra_special_tokens": [name for name in ids if _LANGUAGE.fullmatch(name)],
            }
        facts |= {"split_special_tokens": True, **settings}
        write_file(folder / "tokenizer_config.json", json.dumps(facts, indent=2))


class _NumberedPieces(Pieces):
    def __init__(self, models: Mapping[str, bytes], ids: Mapping[str, int], path: Path) -> None:
        self.models, self.ids = models, ids
        numbers = [i for i in ids.values() if type(i) is int and i >= 0]
        if len({*numbers}) < len(ids) or not ids:
            raise SavedTextError(
                f"{path}: its vocabulary must give each piece an id of its own from 0."
            )
        self.size = max(numbers) + 1
        names = [ids.get(name) for name in _MARKS]
        self.marks = Marks(*names)
        if self.marks.unk is None or self.marks.eos is None:
            raise SavedTextError(f"{path}: its vocabulary has no <unk> or no </s>.")
        self.special = {n: i for n, i in ids.items() if n in _MARKS or _LANGUAGE.fullmatch(n)}
        self._unknown = self.marks.unk
        self._names = dict(zip(ids.values(), ids, strict=True))
        silent = {*self.special.values()} - {self._unknown}
        self._written = {i: name for i, name in self._names.items() if i not in silent}
        read = {side: parse_sentencepiece(raw, path) for side, raw in models.items()}
        self._processors = {"target": read["source"], **read}
        self._side = "source"

    @property
    def target(self) -> "_NumberedPieces":
        """The same of the target's side."""
        made = object.__new__(_NumberedPieces)
        vars(made).update(vars(self), _side="target")
        return made

    @override
    def encode(self, texts: Sequence[str]) -> Ragged:
        processor, rows = self._processors[self._side], list[list[int]]()
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
        return [*code, *self._numbers(self._processors[self._side].encode(text, out_type=str))]

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
        processor, written = self._processors["target"], self._written
        kept = [[written[i] for i in row if i in written] for row in rows]
        return [processor.decode_pieces(row).strip() if row else "" for row in kept]

    @override
    def to_bytes(self) -> bytes:
        models = {side: base64.b64encode(raw).decode() for side, raw in self.models.items()}
        return json.dumps({**models, "vocab": dict(self.ids)}, ensure_ascii=False).encode()


def _of_folder(folder: Path) -> _NumberedPieces:
    """The pieces of a folder of Hugging Face's."""
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
        file = folder / "tokenizer_config.json"
        which = _parsed(file).get("language_codes", "m2m100") if file.exists() else "m2m100"
        if which not in _CODES:
            raise SavedTextError(f"{file}: its language_codes are not {' or '.join(_CODES)}.")
        ids |= {f"__{code}__": i for i, code in enumerate(_CODES[which].split(), last)}
    models = {side: read_bytes(file, largest=LARGEST_MODEL) for side, file in files.items()}
    return _NumberedPieces(models, ids, folder)


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

"""The tokenizer of a pretrained model, which frames texts as the model was trained to read them."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from textmill.errors import UserError
from textmill.runtime.pretrained import PretrainedFolder, find_pretrained
from textmill.text import registries
from textmill.text.metadata import read_bytes
from textmill.text.tokenizers.base_tokenizer import LanguageConfig, Pieces
from textmill.text.tokenizers.huggingface import HuggingFaceTokenizer
from textmill.text.tokenizers.pretrained_sentencepiece import PretrainedSentencePiece
from textmill.text.tokenizers.started_tokenizer import StartedTokenizer
from textmill.text.tokenizers.tokenizer_json import LARGEST_FILE

_NLLB = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
"""A language of NLLB: its files name one in their template, and each text has its own."""
_EXAMPLES = {
    "model.encoder.path": "sentence-transformers/all-MiniLM-L6-v2",
    "model.path": "google/flan-t5-small",
}
_OF_LANGUAGES = ("m2m_100", "mbart")
"""Architectures whose texts all begin with their language."""


@registries.tokenizers.register("pretrained")
class PretrainedTokenizer(StartedTokenizer, HuggingFaceTokenizer):
    """The pieces of a pretrained model's ``tokenizer.json``, framed as its template says.

    So a text is ``[CLS] pieces [SEP]`` for BERT and ``<s> pieces </s>`` for RoBERTa; all else is as
    with ``tokenizer.type=huggingface``. A target of an encoder-decoder begins with the mark that
    its decoder was trained to start from: ``</s> <s> pieces </s>`` for BART, ``<pad> pieces </s>``
    for T5. Where ``source_langs`` and ``target_langs`` are tokens of the file, as NLLB's
    ``eng_Latn``, texts begin with theirs.

    Of a folder with SentencePiece models in place of the file, as Marian's, a
    :class:`~textmill.text.tokenizers.pretrained_sentencepiece.PretrainedSentencePiece` is made.
    """

    kind: ClassVar[str] = "pretrained"
    closes: ClassVar[bool] = True
    before_word: ClassVar[str] = " "
    saved: ClassVar[Mapping[str, type | tuple[type, ...]]] = {
        **HuggingFaceTokenizer.saved,
        "start": (int, type(None)),
    }

    class Config(HuggingFaceTokenizer.Config):
        """Where the tokenizer comes from."""

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
            """Finds the file, and reads it.

            Raises:
                UserError: There is none, its template is none of a beginning and an end, or
                    the model is one of several languages, and none is set.
            """
            path = tokenizer_of(model) if self.path is None else self.path
            if path.is_dir():
                path = PretrainedFolder(path, str(path)).tokenizer()
            told = _told(model)
            start = told.get("decoder_start_token_id") if self.start is None else self.start
            eos = self.eos or _end(path, told)
            made: StartedTokenizer
            if path.is_dir():
                langs = {name: getattr(self, name) for name in vars(LanguageConfig())}
                config = PretrainedSentencePiece.Config(path=path, start=start, **langs)
                made = PretrainedSentencePiece(config)
            else:
                made = PretrainedTokenizer(
                    dataclasses.replace(self, path=path, start=start, eos=eos)
                )
            if told.get("model_type") in _OF_LANGUAGES and not made.known:
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

    Args:
        model: Settings with a ``path``, or with those of an encoder that has one.

    Raises:
        UserError: It has none, or that has no such file.
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


def _told(model: Any) -> dict[str, Any]:
    """What the settings of a pretrained decoder say; nothing of an encoder alone.

    Raises:
        UserError: They are of an encoder-decoder, and do not say what targets begin with.
    """
    name, part = _named(model)
    if name != "model.path" or not part.path:
        return {}
    told = find_pretrained(part.path, revision=getattr(part, "revision", None)).config()
    if not told.get("is_encoder_decoder"):
        return {"eos_token_id": told.get("eos_token_id")}
    if not isinstance(told.get("decoder_start_token_id"), int):
        raise UserError(
            f"config.json of {part.path} says no decoder_start_token_id: add it there, the id that "
            "its decoder was trained to start from."
        )
    return told


def _end(path: Path, told: Mapping[str, Any]) -> str | None:
    """The token by which a decoder was trained to end texts; None: its name tells."""
    ids = told.get("eos_token_id")
    wanted = ids[0] if isinstance(ids, list) and ids else ids
    if told.get("is_encoder_decoder") or not isinstance(wanted, int):
        return None
    try:
        added = json.loads(read_bytes(path, largest=LARGEST_FILE)).get("added_tokens") or []
        return next((str(t["content"]) for t in added if t.get("id") == wanted), None)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        return None  # what is wrong with the file is said where it is read


def _template(raw: bytes, path: Path) -> tuple[str | None, str | None]:
    """The tokens before and behind a text; None where there is none."""
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
            raise TypeError("a mark that is no text")
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

"""The tokenizer of a pretrained model, which frames texts as the model was trained to read them."""

import dataclasses
import json
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from weft.errors import UserError
from weft.runtime.pretrained import find_pretrained
from weft.text import registries
from weft.text.metadata import read_bytes
from weft.text.tokenizers.base_tokenizer import MarkedEncoder
from weft.text.tokenizers.huggingface import HuggingFaceTokenizer
from weft.text.tokenizers.tokenizer import Encoder, Mode
from weft.text.tokenizers.tokenizer_json import LARGEST_FILE

__all__ = ["PretrainedTokenizer", "tokenizer_of"]


@registries.tokenizers.register("pretrained")
class PretrainedTokenizer(HuggingFaceTokenizer):
    """The pieces of a pretrained model's ``tokenizer.json``, framed as its template says.

    So a text is ``[CLS] pieces [SEP]`` for BERT and ``<s> pieces </s>`` for RoBERTa; all else is as
    with ``tokenizer.type=huggingface``.
    """

    kind: ClassVar[str] = "pretrained"
    closes: ClassVar[bool] = True
    before_word: ClassVar[str] = " "

    class Config(HuggingFaceTokenizer.Config):
        """Where the tokenizer comes from."""

        path: Path | None = None  # type: ignore[assignment]
        """The file tokenizer.json; null is that of the pretrained model: of ``model.path``, or of
        ``model.encoder.path``."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, model: Any = None
        ) -> "PretrainedTokenizer":
            """Finds the file, and reads it.

            Raises:
                UserError: There is none, or its template is none of a beginning and an end.
            """
            path = tokenizer_of(model) if self.path is None else self.path
            return PretrainedTokenizer(dataclasses.replace(self, path=path))

    def __init__(self, config: Config) -> None:
        path = Path(config.path or "")
        before, after = _template(read_bytes(path, largest=LARGEST_FILE), path)
        bos, eos = config.bos or before, config.eos or after
        super().__init__(dataclasses.replace(config, bos=bos, eos=eos))
        self._begins = before is not None

    @override
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        made = super().create_encoder(mode=mode, lang=lang)
        if mode != "source" or not self._begins:
            return made
        info = self.vocab_info
        before = [info.bos_idx, *self._tag("source", lang)]
        return MarkedEncoder(self.vocabulary, before, [info.eos_idx])


def tokenizer_of(model: Any) -> Path:
    """The file of the tokenizer of a pretrained model, or of a model's pretrained encoder.

    Raises:
        UserError: It has none, or that has no such file.
    """
    inside = not hasattr(model, "path")
    part: Any = getattr(model, "encoder", None) if inside else model
    if not getattr(part, "path", ""):
        raise UserError(
            f"The tokenizer is that of model.{'encoder.' * inside}path, which is not set: name a "
            "folder, or a model of the Hugging Face hub, as sentence-transformers/all-MiniLM-L6-v2."
        )
    revision = getattr(part, "revision", None)
    return find_pretrained(part.path, revision=revision).tokenizer()


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
            "before a text and one behind it."
        ) from None
    return found


def _sides(parts: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    at = ["Sequence" in part for part in parts].index(True)
    before = [part["SpecialToken"]["id"] for part in parts[:at]]
    after = [part["SpecialToken"]["id"] for part in parts[at + 1 :]]
    if len(before) > 1 or len(after) > 1:
        raise LookupError("more than one token on a side")
    return next(iter(before), None), next(iter(after), None)

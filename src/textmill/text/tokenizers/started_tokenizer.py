"""How texts of pretrained encoder-decoders begin: by a start mark, and by tokens of languages."""

import dataclasses
import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.errors import UserError
from textmill.text.tokenizers.base_tokenizer import (
    LanguageConfig,
    MarkedEncoder,
    Pieces,
    TaggedTokenizer,
)
from textmill.text.tokenizers.tokenizer import Encoder, Mode


class StartedTokenizer(TaggedTokenizer):
    """A tokenizer that frames texts as a pretrained model was trained to read and write them.

    Where the vocabulary has tokens of the languages that are set, as ``eng_Latn`` or ``__en__``,
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
        """The pieces of one side."""
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

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> TaggedTokenizer:
        return super().from_files(folder, {"start": None} | settings)

    @override
    def tag_ids(self, side: str, lang: str | None) -> list[int]:
        if not self.known:
            return super().tag_ids(side, lang)
        self.languages.offset(side, lang)  # which refuses a language of the other side
        return [self.known[lang or getattr(self.languages, f"default_{side}_lang")]]


def _known(languages: LanguageConfig, special: Mapping[str, int]) -> dict[str, int]:
    """Ids of the languages: of all, or of none."""
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

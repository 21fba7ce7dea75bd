"""The language of a text, by its code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from textmill.pipelines.find_model import ModelWanted
from textmill.pipelines.given_text import GivenText
from textmill.pipelines.pipeline import Answered, Pipeline, PipelineResult
from textmill.pipelines.registries import register_pipeline

UNDETERMINED = "und"
"""The code of ISO 639 for the language of a text without letters."""
MOST = 5_000
"""Characters of a text that are read: a language shows itself in fewer."""


@dataclass(frozen=True, kw_only=True)
class IdentifiedLanguage(PipelineResult):
    """The language of a text; ``str()`` gives its code.

    Example:
        >>> print(IdentifiedLanguage(text="Guten Morgen", language="de", score=0.9))
        de
    """

    keys = (*PipelineResult.keys, "language", "score")

    language: str = UNDETERMINED
    """Its code, as ISO 639-1 has it, where the model does; ``und`` of a text without letters."""
    score: float = 0.0
    """The probability of the language, from 0 to 1."""

    @override
    def __str__(self) -> str:
        return self.language

    @override
    def cells(self) -> list[dict[str, Any]]:
        return [{"language": self.language, "score": round(self.score, 6)}]


@register_pipeline("language-identifier")
class LanguageIdentifier(Pipeline[IdentifiedLanguage]):
    """Names the language of a text, by a model whose labels are languages.

    Each line of a text file is a text; a PDF is one. The first 5,000 characters are read. The
    arguments are those of :class:`Pipeline`.
    """

    wanted = ModelWanted(
        name="language-identifier",
        tasks={"document_classification": "classification"},
        training="classification/ngrams train_data.path=train.tsv valid_data.path=dev.tsv",
        rows="a language, a tab and a text on each line",
    )
    result_class: ClassVar[type[PipelineResult]] = IdentifiedLanguage
    by_line = True

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return ("language", "score")

    @override
    def rows(self, given: GivenText) -> Sequence[Any]:
        """The beginning of the text, if it has letters."""
        text = given.text[:MOST]
        return [text] if any(map(str.isalpha, text)) else []

    @override
    def result(self, given: GivenText, answered: Answered) -> IdentifiedLanguage:
        if not answered:
            return IdentifiedLanguage(text=given.text, **given.place)
        ((_, answer),) = answered
        return IdentifiedLanguage(
            text=given.text, **given.place, language=answer.label, score=answer.score
        )

"""Summaries of texts and papers: their own sentences, or sentences that a model writes."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from typing_extensions import override

from textmill.errors import UserError
from textmill.exported.row_predictor import RowPredictor, is_answerable
from textmill.pipelines.find_model import ModelWanted
from textmill.pipelines.given_text import GivenText, PlacedSpan
from textmill.pipelines.pipeline import Answered, Pipeline, PipelineResult
from textmill.pipelines.registries import register_pipeline
from textmill.text.features.sentences import sentence_places
from textmill.text.processors.extract import MOST, Extract, ExtractText

if TYPE_CHECKING:
    from textmill.pipelines.documents import Document

Part = Literal["abstract", "body", "all"]
"""What of a PDF is summarized."""


@dataclass(frozen=True, kw_only=True)
class Summary(PipelineResult):
    """A summary of a text; ``str()`` gives it.

    Example:
        >>> print(Summary(text="It rains. It pours.", summary="It rains."))
        It rains.
    """

    keys = (*PipelineResult.keys, "summary", "score", "spans?", "left_out?")

    summary: str = ""
    """The summary; of sentences of the text with a space between."""
    score: float = 0.0
    """Of sentences of the text, the probability that one of them says most of all; of a summary
    that was written, its length-normalized log-probability."""
    spans: tuple[PlacedSpan, ...] = ()
    """Its sentences where they are of the text, each with its place there; of the kind
    ``sentence``."""
    left_out: int = 0
    """Sentences at the end of the text that were not read: the model takes no more."""

    @override
    def __str__(self) -> str:
        return self.summary

    @override
    def lines(self) -> list[str]:
        return [" ".join(self.summary.split())]

    @override
    def cells(self) -> list[dict[str, Any]]:
        return [{"summary": self.summary, "score": round(self.score, 6)}]


@register_pipeline("summarizer")
class Summarizer(Pipeline[Summary]):
    """Summarizes a text: by its own sentences, or in words of the model's, as it was trained.

    A text file is one text. Of a PDF the abstract is summarized, or the body where none is found.
    What is longer than the model takes is summarized by its first sentences.

    Args:
        model: As of :class:`Pipeline`; of a run of ``summarization/extractive-lstm`` or
            ``summarization/extractive``, or of any that was trained for the task ``summarization``.
        part: What of a PDF is summarized: ``abstract``, ``body``, or ``all``, one after the other.
        sentences: Of a summary by sentences of the text, how many; None: as it was trained.
    """

    wanted = ModelWanted(
        name="summarizer",
        tasks={"extractive_summarization": "extract", "summarization": "seq2seq"},
        training="summarization/extractive-lstm train_data.path=train.jsonl "
        "valid_data.path=dev.jsonl",
        rows="JSON lines of source, a list of sentences, and target, a list of summaries",
        none_shipped="the abstracts that it would learn from (SciTLDR's) are their authors'",
    )
    result_class: ClassVar[type[PipelineResult]] = Summary

    def __init__(
        self,
        model: str | Path | RowPredictor | None = None,
        *,
        part: Part = "abstract",
        sentences: int | None = None,
        device: str = "auto",
        allow_code: bool = False,
    ) -> None:
        if part not in get_args(Part):
            raise UserError(f"part is {part!r}; wanted one of {', '.join(get_args(Part))}.")
        super().__init__(model, device=device, allow_code=allow_code)
        self.part = part
        if sentences is not None:
            text = self.processor
            if not isinstance(text, ExtractText):
                raise UserError(
                    f"sentences is {sentences}, but the model writes its summaries itself: "
                    "its training decides their length. Leave it out."
                )
            if not 0 < sentences <= MOST:
                raise UserError(f"sentences is {sentences}; wanted 1 to {MOST}.")
            text.most = sentences

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return ("summary", "score")

    @override
    def texts(self, document: "Document") -> Iterable[GivenText]:
        from textmill.pipelines.documents import find_abstract, find_body

        abstract, body = find_abstract(document), find_body(document)
        if self.part == "all":
            return super().texts(document)
        return [GivenText.of(body if abstract is None or self.part == "body" else abstract)]

    @override
    def rows(self, given: GivenText) -> Sequence[Any]:
        """The text, or as many of its first sentences as the model takes; nothing of nothing."""
        text, column = given.text, self.predictor.columns[0]
        if not text.strip():
            return []
        if self._takes(text):
            return [{column: text}]
        places = sentence_places(text)
        too_many = bisect_left(
            range(len(places)), True, 1, key=lambda n: not self._takes(_first(text, places, n))
        )
        return [{column: _first(text, places, max(too_many - 1, 1))}]

    def _takes(self, text: str) -> bool:
        """Whether a text is no longer than the model takes."""
        processor = self.processor
        if isinstance(processor, ExtractText):
            return len(sentence_places(text)) <= processor.limits["sentences"]
        return is_answerable(self.predictor, text)

    @override
    def result(self, given: GivenText, answered: Answered) -> Summary:
        if not answered:
            return Summary(text=given.text, **given.place)
        ((row, answer),) = answered
        unread = given.text[len(row[self.predictor.columns[0]]) :]
        sentences = answer.sentences if isinstance(answer, Extract) else ()
        spans = tuple(
            PlacedSpan(
                kind="sentence",
                text=each.text,
                start=each.start,
                end=each.end,
                score=each.score,
                page=given.page_of(each.start),
            )
            for each in sentences
        )
        return Summary(
            text=given.text,
            summary=answer.text,
            score=answer.score,
            spans=spans,
            left_out=len(sentence_places(unread)),
            **given.place,
        )


def _first(text: str, places: Sequence[tuple[int, int]], count: int) -> str:
    return text[: places[count - 1][1]]

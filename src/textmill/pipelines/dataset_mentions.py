"""Mentions of data sets in texts and papers: their names where they stand."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from textmill.errors import UserError, worded
from textmill.pipelines.find_model import ModelWanted
from textmill.pipelines.given_text import GivenText, PlacedSpan, marked_kinds, placed_spans
from textmill.pipelines.pipeline import Answered, Pipeline, PipelineResult
from textmill.pipelines.registries import register_pipeline
from textmill.text.features.sentences import sentence_places
from textmill.text.features.tag_spans import NO_KIND
from textmill.text.processors.tagging import TaggingText

DATASET = "dataset"
"""The kind of a mention whose tags name none."""
LONGEST = 200
"""Words of a sentence that are asked together; a longer one is a table, or of no sentences."""
_WORD = re.compile(
    r"""(?:e\.g\.|i\.e\.|vs\.)|['\u2019](?:s|re|ve|ll|d|m)\b|n['\u2019]t\b|\w+?(?=n['\u2019]t\b)"""
    r"""|\d+(?:[.,]\d+)+|[^\W\d]\w*(?:-\d+\w*)+|\d+-[^\W\d]\w*|\w+|\.\.+|\S""",
    re.IGNORECASE,
)
"""As spaCy has them, which made the words of the training data: punctuation apart, and hyphens,
but for those beside a number; numbers, ``'s``, ``n't`` and ``e.g.`` whole. Of the 118,002 words of
its training part 99.5 % are one word so."""


@dataclass(frozen=True, kw_only=True)
class MentionedDatasets(PipelineResult):
    """The data sets that a text mentions; ``str()`` gives each name once.

    Example:
        >>> span = PlacedSpan(kind="dataset", text="Cora", start=3, end=7, score=0.9)
        >>> print(MentionedDatasets(text="On Cora it is best.", spans=(span,)))
        Cora
    """

    keys = (*PipelineResult.keys, "spans", "names")

    spans: tuple[PlacedSpan, ...] = ()
    """The mentions, in the order of the text."""

    @property
    def names(self) -> dict[str, int]:
        """Each name with the number of its mentions, the most frequent first."""
        found: dict[str, int] = {}
        for span in self.spans:
            name = " ".join(span.text.split())
            found[name] = found.get(name, 0) + 1
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @override
    def __str__(self) -> str:
        return "\n".join(self.names)

    @override
    def lines(self) -> list[str]:
        """Each mention, of a document with pages behind its page."""
        return [
            f"{'' if span.page is None else f'p. {span.page}: '}{' '.join(span.text.split())}"
            for span in self.spans
        ]

    @override
    def cells(self) -> list[dict[str, Any]]:
        """A row for each mention, with the page that it is on."""
        return [
            {
                "page": span.page,
                "mention": " ".join(span.text.split()),
                "start": span.start,
                "end": span.end,
                "score": round(span.score, 6),
            }
            for span in self.spans
        ]


@register_pipeline("dataset-mentions")
class DatasetMentions(Pipeline[MentionedDatasets]):
    """Finds the data sets that a text mentions, by a model for word tagging with spans.

    A text file is one text; of a PDF the abstract and the body are read. A sentence is asked at a
    time. The arguments are those of :class:`Pipeline`.
    """

    wanted = ModelWanted(
        name="dataset-mentions",
        tasks={"word_tagging": "tagging"},
        training="tagging/ner train_data.path=train.conll valid_data.path=dev.conll",
        rows="a word and its tag on each line, as CIFAR-10 B-dataset, and an empty one between "
        "sentences",
        none_shipped="the sentences that it would learn from (Heddes et al. 2021) are of papers, "
        "and come without a licence file",
    )
    result_class: ClassVar[type[PipelineResult]] = MentionedDatasets

    @override
    def check_model(self, model: str) -> None:
        text = self.processor
        assert isinstance(text, TaggingText), "another is refused"
        if text.scheme is None:
            raise UserError(
                f"{self.name} needs a model whose labels mark spans, as B, I and O; those of "
                f"{model} are {', '.join(text.tags.labels.names[:5])}, ..."
            )
        if len(kinds := marked_kinds(text)) > 1:
            raise UserError(
                f"{self.name} needs a model that marks mentions of data sets alone; that of "
                f"{model} marks {len(kinds)} kinds: {', '.join(kinds[:5])}, ... Name "
                f"another with {worded('--model FOLDER', 'model=')}."
            )
        self._scheme = text.scheme
        self._longest = min(LONGEST, text.limits.get("words", LONGEST))

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return ("mention", "start", "end", "score")

    @override
    def rows(self, given: GivenText) -> Sequence[Any]:
        """The words of each sentence."""
        column = self.predictor.columns[0]
        return [
            {column: [given.text[start:end] for start, end in places]}
            for places in self._sentences(given.text)
        ]

    def _sentences(self, text: str) -> Iterable[list[tuple[int, int]]]:
        """Where each word is, by sentences; one that is too long in parts."""
        for start, end in sentence_places(text):
            words = iter(word_places(text, start, end))
            while some := [*islice(words, self._longest)]:
                yield some

    @override
    def result(self, given: GivenText, answered: Answered) -> MentionedDatasets:
        spans = tuple(
            replace(span, kind=DATASET) if span.kind == NO_KIND else span
            for places, (_, answer) in zip(self._sentences(given.text), answered, strict=True)
            for span, _ in placed_spans(given, places, answer, self._scheme)
        )
        return MentionedDatasets(text=given.text, spans=spans, **given.place)


def word_places(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where each word of a part of a text begins and ends, as the training data has words."""
    return [match.span() for match in _WORD.finditer(text, start, end)]

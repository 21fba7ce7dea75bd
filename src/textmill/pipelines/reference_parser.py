"""Reference strings, as papers end with, to their fields: author, title, date and so on."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from textmill.errors import UserError, worded
from textmill.pipelines.documents.references import leading_label
from textmill.pipelines.find_model import ModelWanted
from textmill.pipelines.given_text import GivenText, PlacedSpan, marked_kinds, placed_spans
from textmill.pipelines.pipeline import Answered, Pipeline, PipelineResult
from textmill.pipelines.registries import register_pipeline
from textmill.text.features.slots import places_of
from textmill.text.features.tag_spans import Scheme
from textmill.text.processors.tagging import TaggingText

if TYPE_CHECKING:
    from textmill.pipelines.documents import Document

NAMES = ("author", "director", "editor", "producer", "translator")
"""Fields whose last full stop is that of an initial."""
PAIRS = {"(": ")", "[": "]", "<": ">", '"': '"', "\u201c": "\u201d", "\u2018": "\u2019"}
"""What may stand around a field."""
LEADS = {
    name: re.compile(rf"(?:{words})(?=[\s\d])", re.IGNORECASE)
    for name, words in {
        "booktitle": "in:?",
        "container-title": "in:?",
        "doi": "doi:?",
        "journal": "in:?",
        "pages": r"pages?|pp?\.",
        "volume": r"volume|vol\.",
    }.items()
}
"""What announces a field, and is no part of it."""
VOLUME_AND_PAGES = re.compile(
    r"(?:(?P<date>\d{4}); ?)?(?P<volume>\w{1,9}(?: ?\([\w/\u2013-]{1,12}\))?): ?"
    r"(?P<pages>\w{1,9}(?:[-\u2013]{1,2}\w{1,9})?)"
)
"""A volume, its issue and pages in one word, in medicine behind the year: 2012;32(6):67-71."""
ABBREVIATED = re.compile(r"(?:[^\W\d]+\. )+[^\W\d]+\.[,;:]*")
"""Words that each end with a full stop."""
OUTSIDE = "O"


@dataclass(frozen=True, kw_only=True)
class ParsedReference(PipelineResult):
    """A reference string with its fields; ``str()`` gives it tagged, as ParsCit does.

    Example:
        >>> print(
        ...     ParsedReference(
        ...         text="Knuth. TeX.", tokens=("Knuth.", "TeX."), tags=("author", "title")
        ...     )
        ... )
        <author>Knuth.</author> <title>TeX.</title>
    """

    keys = (
        *PipelineResult.keys,
        "label?",
        "tagged_text",
        "tokens",
        "tags",
        "scores",
        "fields",
        "spans",
        "score",
    )

    tokens: tuple[str, ...] = ()
    """The words of the string: what white space divides."""
    tags: tuple[str, ...] = ()
    """The field of each word; ``O`` where it is of none."""
    scores: tuple[float, ...] = ()
    """The probability of each tag, from 0 to 1."""
    spans: tuple[PlacedSpan, ...] = ()
    """The fields in their order, as they are in the string."""
    label: str | None = None
    """The label before it in its list, as ``[12]``; it is not in ``tokens``."""

    @property
    def score(self) -> float:
        """The probability of the least certain tag; 1 where there is no word."""
        return min(self.scores, default=1.0)

    @property
    def fields(self) -> dict[str, str]:
        """The text of each field, without the punctuation that divides it from the next.

        A field in several places is joined by a space; ``spans`` has each part. A field of
        punctuation alone is left out, and pages that are glued to a volume, ``32(6):67-71``, are
        ``pages`` where no other word is; so is a year before it, ``2012;32(6):67-71``, ``date``.
        """
        parts = defaultdict[str, list[str]](list)
        for span in self.spans:
            parts[span.kind].append(span.text)
        fields = {kind: field_text(kind, " ".join(texts)) for kind, texts in parts.items()}
        glued = VOLUME_AND_PAGES.fullmatch(fields.get("volume", ""))
        if glued and "pages" not in fields:
            date = fields.get("date") or glued["date"] or ""
            fields |= {"date": date, "volume": glued["volume"], "pages": glued["pages"]}
        return {kind: text for kind, text in fields.items() if text}

    @property
    def tagged_text(self) -> str:
        """The string with its fields marked: ``<author>A. Author.</author> <title>…</title>``.

        It is the format of ParsCit's training files: nothing in the words is escaped.
        """
        parts = []
        for tag, some in groupby(zip(self.tags, self.tokens, strict=True), lambda pair: pair[0]):
            words = " ".join(token for _, token in some)
            parts.append(words if tag == OUTSIDE else f"<{tag}>{words}</{tag}>")
        return " ".join(parts)

    @override
    def __str__(self) -> str:
        return self.tagged_text

    @override
    def cells(self) -> list[dict[str, Any]]:
        return [{**self.fields, "label": self.label, "score": round(self.score, 6)}]


@register_pipeline("reference-parser")
class ReferenceParser(Pipeline[ParsedReference]):
    """Parses reference strings: each word's field, by a model for word tagging.

    A text file has a reference on each line; of a PDF its list of references is found and split.
    The arguments are those of :class:`Pipeline`.
    """

    wanted = ModelWanted(
        name="reference-parser",
        tasks={"word_tagging": "tagging"},
        training="tagging/references train_data.path=data/references/train.jsonl "
        "valid_data.path=data/references/valid.jsonl",
        rows="python examples/prepare_references.py data/references, of our repository, fetches "
        "them",
    )
    result_class: ClassVar[type[PipelineResult]] = ParsedReference
    by_line = True

    @override
    def check_model(self, model: str) -> None:
        text = self.processor
        assert isinstance(text, TaggingText), "another is refused"
        self._scheme: Scheme = text.scheme or "io"  # where labels mark no spans, each names a field
        self._kinds = marked_kinds(text)
        if len(self._kinds) < 2:
            raise UserError(
                f"{self.name} needs a model whose labels are fields, as author and title; those of "
                f"{model} are {', '.join(text.tags.labels.names)}. Name another with "
                f"{worded('--model FOLDER', 'model=')}."
            )

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        """The fields that the model knows."""
        return ("label", *self._kinds, "score")

    @override
    def texts(self, document: "Document") -> Iterable[GivenText]:
        """The references of its list."""
        from textmill.pipelines.documents import find_references

        return map(GivenText.of, find_references(document))

    @override
    def rows(self, given: GivenText) -> Sequence[Any]:
        """The reference without the label that it may begin with: that is no field."""
        return [given.text[_label(given)[1] :]]

    @override
    def result(self, given: GivenText, answered: Answered) -> ParsedReference:
        (label, begins), ((row, answer),) = _label(given), answered
        text = row[self.predictor.columns[0]]
        places = [(begins + a, begins + b) for a, b in places_of(text)]
        spans = placed_spans(given, places, answer, self._scheme)
        tags = [OUTSIDE] * len(answer.tags)
        for span, words in spans:
            tags[words.start : words.stop] = [span.kind] * len(words)
        return ParsedReference(
            text=given.text,
            **given.place,
            tokens=answer.words,
            tags=tuple(tags),
            scores=answer.scores,
            spans=tuple(span for span, _ in spans),
            label=label,
        )


def _label(given: GivenText) -> tuple[str | None, int]:
    """A reference's label, and where the text after it begins; a document's has it already."""
    return leading_label(given.text) if given.label is None else (given.label, 0)


def field_text(kind: str, text: str) -> str:
    """The text of a field without punctuation at its ends, words before it, and what encloses it.

    A name keeps its last full stop, which is that of an initial, and so does what is abbreviated
    word by word: ``Phys. Rev.``.
    """
    text, before = " ".join(text.split()), ""
    keeps_stop = kind in NAMES or (kind != "title" and ABBREVIATED.fullmatch(text))
    ends = ",;:" if keeps_stop else ".,;:"
    while text != before:
        before = text
        text = text.lstrip(" ,;:.").rstrip(f" {ends}")
        if text[:1] in PAIRS and text.find(PAIRS[text[0]], 1) == len(text) - 1 > 0:
            text = text[1:-1]
    lead = LEADS[kind].match(text) if kind in LEADS else None
    return text[lead.end() :].lstrip() if lead else text

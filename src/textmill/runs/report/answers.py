"""Answered rows as a run's predictions have them, told right from wrong and marked for reading."""

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textmill.errors import DataError
from textmill.metrics.accumulators import normalized_answer
from textmill.runs.report.summary import Answered, Part
from textmill.text.columns.numbers import number_in
from textmill.text.features.tag_spans import Span, tag_spans

Row = Mapping[str, Any]
RUNNERS_UP = 3
"""Labels that are shown beside a wrong one."""
MOST_WORDS = 400
"""Words of a text that are compared with another's."""


@dataclass(frozen=True)
class Columns:
    """The columns that a task reads and those that it learns, as ``run.json`` names them."""

    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    several: bool = False
    """Whether a row has several labels, or none."""
    separator: str | None = None
    """What stands between two of them; None is white space."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Columns":
        """Those of one data set, from ``data_summary``."""
        inputs, targets = (tuple(map(str, facts.get(n) or ())) for n in ("inputs", "targets"))
        between = facts.get("separator")
        one = str(between) if between else None
        return cls(inputs, targets, "separator" in facts, one)


@dataclass(frozen=True)
class Kind:
    """One kind of answers: how a row is read, and what is measured of all."""

    read: Callable[[Row, Columns], Answered | None]
    does: str
    """What a model does that gives such answers: ``{one}``, or any, of ``{count}`` ``{labels}``."""
    measure: str = ""
    """The main value; empty: the one that the run is selected by."""


def words_of(cell: object) -> list[str]:
    return [str(word) for word in cell] if isinstance(cell, list) else str(cell).split()


def plain(cell: object) -> tuple[Part, ...]:
    """A cell as text: words of a list beside each other, texts of one below each other."""
    if isinstance(cell, list):
        several = any(len(str(item).split()) > 1 for item in cell)
        return (Part(("\n" if several else " ").join(map(str, cell))),)
    return (Part("" if cell is None else str(cell)),)


def kind_of(row: Row, columns: Columns) -> Kind | None:
    """The first kind that can read a row; None if it has no answer."""
    return next((kind for kind in KINDS if _tried(kind, row, columns) is not None), None)


def _tried(kind: Kind, row: Row, columns: Columns) -> Answered | None:
    with suppress(KeyError, TypeError, ValueError, IndexError, AttributeError, DataError):
        return kind.read(row, columns)
    return None


def read_row(row: Row, columns: Columns, kind: Kind) -> Answered:
    """A row of predictions; one that is not of its kind is shown as it is."""
    found = _tried(kind, row, columns) or _shown(row, columns) or Answered(0, None)
    inputs = [name for name in columns.inputs if name in row] or [
        name for name, value in row.items() if isinstance(value, str) and name != "prediction"
    ]
    read = tuple((name, plain(row[name])) for name in inputs)
    number = row.get("row", 0)
    return replace(
        found,
        row=number if isinstance(number, int) else 0,
        read=read if found.read is None else found.read,
        length=sum(len(words_of(row[name])) for name in inputs),
    )


def _shown(row: Row, columns: Columns) -> Answered | None:
    wanted = [row[name] for name in columns.targets if name in row]
    given = row.get("prediction", row.get("similarity"))
    if given is None:
        return None
    return Answered(0, None, plain(wanted[0]) if wanted else (), plain(given))


def _label(row: Row, columns: Columns) -> Answered | None:
    scores = row.get("scores")
    if not isinstance(scores, dict) or not columns.targets:
        return None
    gold, given = row[columns.targets[0]], str(row["prediction"])
    if isinstance(gold, list) and len(gold) == 1 and not columns.several:
        gold = gold[0]
    if columns.several:
        wanted = gold if isinstance(gold, list) else str(gold).split(columns.separator)
        answer = _labels_in(given, scores)
        return _several([str(each).strip() for each in wanted], answer, row)
    ranked = sorted(((str(n), float(s)) for n, s in scores.items()), key=lambda of: -of[1])
    right = str(gold) == given
    return Answered(
        0, None, (Part(str(gold)),), (Part(given),), right, float(row["score"]),
        pairs=((str(gold), given),), share=(float(right), 1.0),
        runners_up=tuple(each for each in ranked if each[0] != given)[:RUNNERS_UP],
    )  # fmt: skip


def _labels_in(given: str, known: Iterable[str]) -> list[str]:
    """The labels of an answer, which stand in the order of all; one may have a comma itself."""
    found, left = [], given
    for name in known:
        if left == name or left.startswith(f"{name}, "):
            found.append(name)
            left = left[len(name) + 2 :]
    return given.split(", ") if left else found


def _several(wanted: list[str], given: list[str], row: Row) -> Answered:
    both = [sorted({*each} - {""}) for each in (wanted, given)]
    parts, answer = (
        tuple(
            part for label in own for part in (Part(label, differs=label not in other), Part(" · "))
        )[:-1] or (Part("none"),)
        for own, other in (both, both[::-1])
    )  # fmt: skip
    right = both[0] == both[1]
    share = (float(right), 1.0)
    return Answered(0, None, parts, answer, right, float(row["score"]), share=share)


def _frame(row: Row, columns: Columns) -> Answered | None:
    if "predicted_intent" not in row:
        return None
    given, text = str(row["predicted_intent"]), plain(row[columns.inputs[0]])[0].text
    intent, tags = str(row[columns.targets[0]]), words_of(row[columns.targets[1]])
    slots = [(s["start"], s["end"], str(s["label"])) for s in row["predicted_slots"]]
    wanted: tuple[Part, ...] = (Part(f"{intent}: "),)
    right = None
    if len(tags) == len(text.split()):  # else they are spans of characters
        places = _places(text.split())
        spans = [(places[s.start][0], places[s.end - 1][1], s.kind) for s in _spans(tags)]
        joint = " ".join(text.split())
        wanted += _marked(joint, spans)
        right = intent == given and {*spans} == {*slots}
    answer = (Part(f"{given}: "), *_marked(text, slots))
    share = (float(bool(right)), 1.0)
    pairs = ((intent, given),)
    return Answered(0, (), wanted, answer, right, float(row["score"]), pairs=pairs, share=share)


def _tags(row: Row, columns: Columns, *, spans: bool) -> Answered | None:
    scores = row.get("scores")
    if not isinstance(scores, list) or spans is not isinstance(row.get("spans"), list):
        return None
    words, gold = words_of(row[columns.inputs[0]]), words_of(row[columns.targets[0]])
    given = str(row["prediction"]).split()
    if not len(words) == len(gold) == len(given) == len(scores):
        return None
    wrong = [n for n in range(len(words)) if gold[n] != given[n]]
    sure = max((float(scores[n]) for n in wrong), default=min(map(float, scores), default=1.0))
    if spans:
        text, places = " ".join(words), _places(words)
        both = [
            [(places[s.start][0], places[s.end - 1][1], s.kind) for s in _spans(tags)]
            for tags in (gold, given)
        ]
        wanted, answer = (_marked(text, one) for one in both)
        hits = len({*both[0]} & {*both[1]})
        share = (2.0 * hits, float(len(both[0]) + len(both[1])))
        pairs = tuple((_kind(a), _kind(b)) for a, b in zip(gold, given, strict=True))
    else:
        wanted, answer = (_by_word(words, tags, {*wrong}) for tags in (gold, given))
        share = (float(len(words) - len(wrong)), float(len(words)))
        pairs = tuple(zip(gold, given, strict=True))
    return Answered(0, (), wanted, answer, not wrong, sure, pairs=pairs, share=share)


def _spans(tags: Sequence[str]) -> list[Span]:
    """The spans of any scheme: the marks of BIO are among those of BILOU."""
    try:
        return tag_spans(tags, "bilou")
    except ValueError:
        return tag_spans(tags, "io")


def _kind(tag: str) -> str:
    return tag.partition("-")[2] or tag


def _by_word(words: Sequence[str], tags: Sequence[str], shown: set[int]) -> tuple[Part, ...]:
    """Words, those with a number among ``shown`` with their tag."""
    return tuple(
        Part(word if n in shown else f"{word} ", tags[n] if n in shown else "")
        for n, word in enumerate(words)
    )


def _places(words: Sequence[str]) -> list[tuple[int, int]]:
    """First and last character of each word, one space between two."""
    found, at = [], 0
    for word in words:
        found.append((at, at + len(word)))
        at += len(word) + 1
    return found


def _marked(text: str, spans: Sequence[tuple[int, int, str]]) -> tuple[Part, ...]:
    parts, at = [], 0
    for start, end, kind in sorted(spans):
        parts += [Part(text[at:start]), Part(text[start:end], kind)]
        at = end
    return tuple(part for part in (*parts, Part(text[at:])) if part.text)


def _answer(row: Row, columns: Columns) -> Answered | None:
    if "start" not in row or not columns.targets:
        return None
    gold = row[columns.targets[0]]
    if isinstance(gold, str) and gold.startswith("["):
        gold = json.loads(gold)  # a list in a cell of text
    wanted = [str(one) for one in gold] if isinstance(gold, list) else [str(gold)] if gold else []
    given, start, end = str(row["prediction"]), row["start"], row["end"]
    known = [answer for one in wanted if (answer := normalized_answer(one))] or [""]
    right = normalized_answer(given) in known
    read = []
    for name in columns.inputs:
        parts = plain(row[name])
        if start is not None and parts[0].text[start:end] == given:
            parts = _around(parts[0].text, start, end)
        read.append((name, parts))
    shown = " · ".join(dict.fromkeys(wanted)) or "no answer"
    return Answered(
        0, tuple(read), (Part(shown),), (Part(given or "no answer"),), right, float(row["score"]),
        share=(float(right), 1.0),
    )  # fmt: skip


def _around(text: str, start: int, end: int, room: int = 240) -> tuple[Part, ...]:
    """A span with what stands around it."""
    before, after = text[max(0, start - room) : start], text[end : end + room]
    cut = ("… " if start > room else "", " …" if end + room < len(text) else "")
    return (Part(cut[0] + before), Part(text[start:end], "answer"), Part(after + cut[1]))


def _number(row: Row, columns: Columns) -> Answered | None:
    given = row.get("prediction")
    if isinstance(given, bool) or not isinstance(given, int | float) or not columns.targets:
        return None
    wanted = number_in(row[columns.targets[0]], columns.targets[0], 0)
    error = abs(given - wanted)
    return Answered(
        0, None, (Part(f"{wanted:g}"),), (Part(f"{given:.4g}"),), error=error,
        numbers=(wanted, float(given)), share=(error, 1.0),
    )  # fmt: skip


def _text(row: Row, columns: Columns) -> Answered | None:
    given = row.get("prediction")
    if not isinstance(given, str) or not columns.targets or columns.targets[0] not in row:
        return None
    references = row.get("references", row[columns.targets[0]])
    wanted = [str(one) for one in references] if isinstance(references, list) else [str(references)]
    error, nearest = min((_distance(one.split(), given.split()), one) for one in wanted)
    right = given.split() in [one.split() for one in wanted]
    share = (float(right), 1.0)
    return Answered(0, None, (Part(nearest),), (Part(given),), right, error=error, share=share)


def _distance(one: list[str], other: list[str]) -> float:
    """The share of words of both texts that the other one does not have."""
    alike = Counter(one) & Counter(other)
    return 1 - 2 * alike.total() / (len(one) + len(other) or 1)


def aligned(answer: Answered) -> Answered:
    """A wrong text with the words marked that the wanted one does not have there, and these."""
    if answer.right is not False or not answer.error:
        return answer
    one, other = (parts[0].text.split()[:MOST_WORDS] for parts in (answer.wanted, answer.given))
    wanted, given = _differing(one, other)
    return replace(answer, wanted=wanted, given=given)


def _differing(one: list[str], other: list[str]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    left, right = list[Part](), list[Part]()
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        for parts, words in ((left, one[a:b]), (right, other[c:d])):
            if words:
                parts += [Part(" ".join(words), differs=what != "equal"), Part(" ")]
    return tuple(left), tuple(right)


KINDS = (
    Kind(_label, "gives {one} of {count} labels: {labels}", "accuracy"),
    Kind(_frame, "finds the intent and the slots", "frame_accuracy"),
    Kind(partial(_tags, spans=True), "marks spans of {count} kinds: {labels}", "span_f1"),
    Kind(
        partial(_tags, spans=False),
        "gives each word one of {count} labels: {labels}",
        "token_accuracy",
    ),
    Kind(_answer, "finds the part that answers the question", "exact_match"),
    Kind(_number, "gives a number", "mae"),
    Kind(_text, "writes a text", "exact_match"),
    Kind(_shown, "answers"),
)
"""The kinds of answers; the first that can read a run's first row is that of all."""

"""SQuAD: one JSON file of articles, their paragraphs, and questions about each."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.cells import KINDS, json_of, text_problem
from textmill.data.formats.json_lines import no_key
from textmill.data.formats.row_format import Columns, Found, Row, RowFormat, Scan
from textmill.errors import DataError, UserError

KEYS = ("id", "title", "question", "context", "answers", "answer_starts", "impossible")
"""What a row can have."""
SHOWN = 80  # characters of a bad row


@dataclass(frozen=True)
class SquadFormat(RowFormat):
    """Questions of SQuAD 1.1 or 2.0; made by `squad_format`.

    A row is a question, its line its number in the file, from 1; a paragraph that cannot be read is
    one bad row.
    """

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        ids = set[str]()
        for number, (where, found) in enumerate(_questions(_articles(scan)), 1):
            scan.place, scan.record = number - 1, None if isinstance(found, str) else found
            row = found if isinstance(found, str) else self._row(found)
            if isinstance(found, dict) and isinstance(name := found.get("id"), str):
                if name in ids:
                    scan.notes.same_ids += 1
                    scan.notes.same_id = scan.notes.same_id or name[:SHOWN]
                ids.add(name)
            if isinstance(row, str):
                shown = "" if isinstance(found, str) else str(found.get("question", ""))[:SHOWN]
                yield number, BadRow(scan.name, number, f"{where}: {row}", shown)
            else:
                yield number, row

    def _row(self, found: Mapping[str, Any]) -> Row | str:
        row = list[str]()
        for name, at in self.columns.items():
            key = str(at)
            value: Any = found.get(key)
            if value is None and name not in self.required:
                value = ""
            if value is None and key not in found:
                return no_key(found, key)
            problem = (
                text_problem(value)
                if isinstance(value, str)
                else f"wanted text, found {_kind(value)}"
            )
            if problem is not None:
                return f"{key!r}: {problem}"
            row.append(value)
        return self.problem(tuple(row)) or tuple(row)


def _articles(scan: Scan) -> list[Any]:
    """All of the file; it is one JSON object, which cannot be read in parts."""
    content = scan.stream.read()
    scan.sha256 = hashlib.sha256(content).hexdigest()
    try:
        found = json_of(content.decode("utf-8-sig"))
    except ValueError as error:  # also of bytes that are not UTF-8
        raise _unreadable(scan, str(error)) from None
    articles = found.get("data") if isinstance(found, dict) else None
    if not isinstance(articles, list):
        raise _unreadable(scan, "wanted an object with a list 'data' of articles")
    return articles


def _unreadable(scan: Scan, why: str) -> DataError:
    return DataError(f"{scan.name}: no SQuAD file that can be read: {why[:300]}.")


def squad_format(
    columns: Columns = ("question", "context", "answers"), *, required: Sequence[str] | None = None
) -> SquadFormat:
    """The JSON of SQuAD (Rajpurkar et al. 2016 and 2018).

    Args:
        columns: Which of ``id``, ``title``, ``question``, ``context``, ``answers``,
            ``answer_starts`` and ``impossible`` are columns, or a name for each. Answers are a JSON
            list of texts, their starts one of the characters they begin at, ``impossible`` is
            ``true`` or ``false``.
        required: The columns that a row cannot be without; all by default.
    """
    named = columns if isinstance(columns, Mapping) else {name: name for name in columns}
    places = dict[str, int | str](named)
    for name, at in places.items():
        if at == name and at not in KEYS:
            raise UserError(
                f"columns: a question of a SQuAD file has {', '.join(KEYS)}, but no {name!r}. The "
                "file may be one of another task; a file of another kind has another suffix, or is "
                "named by format."
            )
        if at not in KEYS:
            raise UserError(
                f"columns: a question of a SQuAD file has {', '.join(KEYS)}; wanted one of these "
                f"for {name!r}, found {at!r}. A file of another kind has another suffix, or is "
                "named by format."
            )
    return SquadFormat(places, tuple(places if required is None else required))


def _questions(articles: list[Any]) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Each question with its place in the file: its values by `KEYS`, or what is wrong."""
    for i, article in enumerate(articles):
        place, paragraphs = f"data[{i}]", _list_in(article, "paragraphs")
        if isinstance(paragraphs, str):
            yield place, paragraphs
            continue
        for j, paragraph in enumerate(paragraphs):
            inner, questions = f"{place}.paragraphs[{j}]", _list_in(paragraph, "qas")
            if isinstance(questions, str):
                yield inner, questions
                continue
            about = {"title": article.get("title"), "context": paragraph.get("context")}
            for k, question in enumerate(questions):
                name = question.get("id") if isinstance(question, dict) else None
                known = "" if name is None else f"the question with id {name!r:.{SHOWN}}, "
                yield f"{known}{inner}.qas[{k}]", _values(about, question)


def _list_in(found: Any, key: str) -> list[Any] | str:
    if not isinstance(found, dict):
        return f"wanted an object, found {_kind(found)}"
    value = found.get(key)
    return value if isinstance(value, list) else f"{key!r}: wanted a list, found {_kind(value)}"


def _values(about: Mapping[str, Any], question: Any) -> dict[str, Any] | str:
    if not isinstance(question, dict):
        return f"wanted an object, found {_kind(question)}"
    impossible = question.get("is_impossible", False)
    if not isinstance(impossible, bool):
        return f"'is_impossible': wanted true or false, found {_kind(impossible)}"
    values: dict[str, Any] = {**about, "impossible": "true" if impossible else "false"}
    values |= {key: question[key] for key in ("id", "question") if key in question}
    if "answers" in question:
        answers = question["answers"]
        if not isinstance(answers, list) or not all(
            isinstance(found, dict)
            and isinstance(found.get("text"), str)
            and type(found.get("answer_start")) is int
            for found in answers
        ):
            return "'answers': wanted a list of objects with a 'text' and a number 'answer_start'"
        if impossible and answers:
            return f"'is_impossible' is true, but there are {len(answers)} answers"
        texts, starts = ([answer[key] for answer in answers] for key in ("text", "answer_start"))
        values["answers"] = json.dumps(texts, ensure_ascii=False)
        values["answer_starts"] = json.dumps(starts)
    return {key: value for key, value in values.items() if value is not None}


def _kind(value: Any) -> str:
    return KINDS.get(type(value), type(value).__name__)

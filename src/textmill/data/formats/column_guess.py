"""Which column of a file a task's column may be: what an error proposes, for a person to judge.

By the name, by what others call it, and by what its cells say. A number, a date or an identifier of
rows is never proposed: a model would be trained on it, and seem to work.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

UNKNOWN = "..."
"""What stands where nothing is likely."""
_LABELS = (
    "category class topic kind intent sentiment queue tag type department gold_label v1 rating "
    "stars kategorie thema klasse abteilung"
)
_TEXTS = (
    "message body content comment review sentence description document tweet sms utterance v2 "
    "question query title subject nachricht beschreibung inhalt kommentar betreff"
)
OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "label": ("labels", *_LABELS.split()),
    "labels": ("label", *_LABELS.split()),
    "text": _TEXTS.split(),
    "score": ("rating", "stars", "value", "similarity"),
}
"""What columns are called elsewhere, the likeliest first."""
_KEY = re.compile(
    r"(?:^|[\W_])(?:id|ids|idx|index|nr|no|number|key|uuid|guid|date|datum|day|time|zeit|timestamp|"
    r"created|updated|modified)(?:$|[\W_])"
)
_DIGITS = 0.9
"""Share of the cells of dates, numbers and identifiers that have a digit."""
NEAR = 0.7
"""How like a mistyped name is: ``stras`` is 0.8 of ``stars``, ``text`` 0.6 of ``target``."""
FEW_ROWS = 10
"""Of fewer rows nothing is guessed by their cells."""


def plain_name(name: str) -> str:
    """A name as it is compared: neither spaces around it nor the case of its letters count."""
    return name.strip().casefold()


def proposed(
    columns: Iterable[str] | Mapping[str, int | str],
    names: Sequence[str],
    rows: Sequence[Sequence[str]] = (),
) -> dict[str, int | str]:
    """What a person may mean by columns, each with a name of the file's or ``...``.

    Args:
        columns: Those of the task, each with what was taken for its name.
        names: Those in the file.
        rows: Some of its rows.

    Example:
        >>> proposed(["label", "text"], ["id", "Text"])
        {'label': '...', 'text': 'Text'}
        >>> proposed(["label", "text"], ["ticket_id", "created", "message", "queue"])
        {'label': 'queue', 'text': 'message'}
        >>> proposed({"text": "text", "stars": "stras"}, ["id", "stars", "text"])
        {'text': 'text', 'stars': 'stars'}
    """
    left = {plain_name(name): name for name in names}
    at = {name: columns[name] if isinstance(columns, Mapping) else name for name in columns}
    found = dict[str, str]()
    for name, wanted in at.items():
        like = next((n for n in map(plain_name, (str(wanted), name)) if n in left), None)
        if like is not None:
            found[name] = left.pop(like)
    for name in (name for name in at if name not in found):
        wanted = at[name]
        near = difflib.get_close_matches(
            plain_name(wanted if isinstance(wanted, str) else name), left, n=1, cutoff=NEAR
        )
        near = near or [other for other in OTHER_NAMES.get(name, ()) if other in left]
        if near:
            found[name] = left.pop(near[0])
    left = {plain: name for plain, name in left.items() if not _KEY.search(_words(name))}
    missing = [name for name in at if name not in found]
    places = {name: names.index(name) for name in left.values()}
    cells = {n: [row[at] for row in rows if at < len(row)] for n, at in places.items()}
    if len(rows) >= FEW_ROWS and {*missing} <= {"label", "labels", "text"}:
        found |= _by_cells(missing, cells)
    elif len(names) == len(at) and len(left) == len(missing):
        found |= dict(zip(missing, left.values(), strict=True))
    return {name: found.get(name, UNKNOWN) for name in at}


def _words(name: str) -> str:
    """A name in lower case, with ``_`` between its words (``ticketId`` is ``ticket_id``)."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).casefold()


def _by_cells(missing: Sequence[str], cells: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A label as the one column of few values, a text as that of the most words, if there is one.

    Args:
        missing: Which of the two are wanted.
        cells: Columns of the file.
    """
    cells = {
        name: column for name, column in cells.items() if any(column) and not _are_keys(column)
    }
    guess = dict[str, str]()
    if "text" in missing:
        words = {name: sum(len(cell.split()) for cell in column) for name, column in cells.items()}
        likely = max(words, key=words.__getitem__, default=None)
        if likely is not None and words[likely] >= 2 * len(cells[likely]):
            guess["text"] = likely
    for name in (name for name in missing if name != "text"):
        few = [n for n, column in cells.items() if 1 < len({*column}) <= len(column) / 2]
        few = [n for n in few if n not in guess.values()]
        if len(few) == 1:
            guess[name] = few[0]
    return guess


def _are_keys(cells: Sequence[str]) -> bool:
    """Whether cells are numbers, dates or identifiers: most have a digit, and none a space."""
    digits = sum(any(map(str.isdigit, cell)) for cell in cells)
    return digits >= _DIGITS * len(cells) and not any(" " in cell.strip() for cell in cells)

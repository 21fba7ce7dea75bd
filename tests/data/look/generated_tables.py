"""Files of rows whose truth is known: how they are written, and which column is what."""

import csv
import io
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1")
DELIMITERS = {",": ".csv", ";": ".csv", "\t": ".tsv", "|": ".txt"}
KINDS = ("label", "labels", "number", "pair")
NAMES = {
    "id": "Ticket-ID ",
    "date": " Created",
    "price": "Preis",
    "day": "Due",
    "phone": "call back",
    "status": "State",
    "text": "Message  ",
    "label": "Category",
    "labels": "Tags",
    "number": "Score",
    "text1": "sentence1",
    "text2": "sentence2",
}
SAID = {
    "Billing": ["mir wurde zu viel berechnet für", "charged twice, again, for"],
    "Delivery": ["ich warte; seit Tagen; auf", "the courier lost"],
    "Product": ["es läßt sich nicht öffnen:", "a part is missing from"],
}
THINGS = ["the lamp", "die Küchenuhr", "my radio", "das Fahrrad", "the café kettle"]


@dataclass(frozen=True)
class Written:
    """A file and its truth."""

    path: Path
    encoding: str
    delimiter: str
    header: bool
    kind: str
    places: dict[str, int]
    """The position of each column that is read."""


def rows_of(kind: str, chance: random.Random, count: int) -> Iterator[dict[str, str]]:
    for n in range(count):
        label = chance.choice([*SAID])
        said = [
            f"{chance.choice(SAID[label])} {chance.choice(THINGS)} {chance.randrange(90)}"
            for _ in "ab"
        ]
        row = {
            "id": f"T-{1000 + n}",
            "date": f"2026-0{1 + n % 9}-1{n % 10}",
            "price": f"{chance.randrange(9000)},{chance.randrange(100):02} €",
            "day": f"{chance.choice(['Jan', 'March'])} {1 + n % 28}, 2026",
            "phone": f"+49 {chance.randrange(100, 999)} {chance.randrange(10**6)}",
            "status": chance.choice(["on", "off"]),
        }
        if kind in ("pair", "number"):
            row.pop("status")  # without names nothing tells which is the label
        if kind == "pair":
            yield row | {
                "text1": said[0],
                "text2": said[1],
                "label": chance.choice(["same", "other"]),
            }
            continue
        row["text"] = (
            f'{said[0]}. Er sagte "{chance.choice(["ja", "nein"])}".'
            if n % 3
            else f"{said[0]}!\nGrüße"
        )
        if kind == "label":
            row["label"] = label
        elif kind == "number":
            row["number"] = f"{len(said[0]) / 7 + chance.random():.2f}"
        else:
            both = [label, *(other for other in SAID if other != label and n % 3 == 0)][: 1 + n % 2]
            row["labels"] = "/".join(both)
        yield row


def written(
    folder: Path, *, encodings: Sequence[str] = ENCODINGS, orders: int = 2, count: int = 120
) -> Iterator[Written]:
    """All combinations, with the columns in some orders that are drawn by chance."""
    chance = random.Random(3)
    each = itertools.product(KINDS, encodings, DELIMITERS, (True, False), range(orders))
    for number, (kind, encoding, delimiter, header, _) in enumerate(each):
        rows = [*rows_of(kind, chance, count)]
        names = [*rows[0]]
        chance.shuffle(names)
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerows([[NAMES[name] for name in names]] if header else [])
        writer.writerows([row[name] for name in names] for row in rows)
        path = folder / f"rows-{number}{DELIMITERS[delimiter]}"
        path.write_bytes(stream.getvalue().encode(encoding))
        roles = {"text": "text", "label": "label", "labels": "label", "number": "score"}
        roles |= {"text1": "text1", "text2": "text2"}
        places = {roles[name]: at for at, name in enumerate(names) if name in roles}
        yield Written(path, encoding, delimiter, header, kind, places)

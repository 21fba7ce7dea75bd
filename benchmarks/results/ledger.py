"""The measurements there are: a file of JSON lines, each written as soon as it is there."""

import datetime
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def key_of(content: Mapping[str, Any]) -> str:
    """Twelve hex digits that name what a measurement depends on."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Ledger:
    """Lines of measurements, each known by its job, its part and its key.

    Args:
        path: The file; it need not be there. A last line that was cut off counts as not written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        self.lines: list[Line] = [*map(json.loads, whole.splitlines())]

    def find(self, job: str, part: str, key: str) -> Line | None:
        """The newest line of a measurement; None where it was never made, or from other inputs."""
        for line in reversed(self.lines):
            if (line["job"], line["part"], line["key"]) == (job, part, key):
                return line
        return None

    def of_all(self, jobs: Iterable[str], parts: Collection[str]) -> list[list[Line]]:
        """The newest lines of each job that all of the parts have, by part."""
        lines = {(line["job"], line["part"]): line for line in self.lines}
        found = [[lines.get((job, part)) for part in parts] for job in jobs]
        return [[line for line in each if line] for each in found if all(each)]

    def add(self, line: Line) -> Line:
        """Keeps a line, at once on the disk."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        made = {**line, "when": now}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(made) + "\n")
        self.lines.append(made)
        return made

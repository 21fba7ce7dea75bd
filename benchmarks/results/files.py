"""The files of a job, what they are known by, and the rows a baseline reads from them."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HELD_OUT = 10
"""One row of so many becomes a dev row, where a job has none."""


@dataclass(frozen=True)
class Files:
    """The training and the dev file of a job."""

    train: Path
    dev: Path

    @property
    def fingerprint(self) -> str:
        """Of the bytes of both: another place is no other data."""
        whole = hashlib.sha256()
        for path in (self.train, self.dev):
            whole.update(hashlib.sha256(path.read_bytes()).digest())
        return whole.hexdigest()[:16]


def find(train: Path, dev: Path | None, made: Path) -> Files | None:
    """The files of a job; None where one is not there.

    Args:
        train: The training file.
        dev: The dev file; None: a tenth of the training file's lines is held out.
        made: Where the parts of a file that is divided are kept.
    """
    if not train.is_file() or not (dev is None or dev.is_file()):
        return None
    return divided(train, made) if dev is None else Files(train, dev)


def divided(path: Path, folder: Path) -> Files:
    """Holds out a tenth of the lines, the same ones whenever: those that the seed 0 draws."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    held = set(random.Random(0).sample(range(len(lines)), len(lines) // HELD_OUT))
    parts = {"train": [], "dev": []}
    for number, line in enumerate(lines):
        parts["dev" if number in held else "train"].append(line)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, part in parts.items():
        paths.append(folder / f"{path.stem}.{name}{path.suffix}")
        paths[-1].write_text("".join(part), encoding="utf-8")
    return Files(*paths)


def rows(path: Path, reading: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The rows of a file, read as textmill's training reads them."""
    from textmill.data.text_rows import TextRows

    return list(TextRows.Config(path=path, **reading).build())

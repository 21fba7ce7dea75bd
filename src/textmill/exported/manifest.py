"""What an export's folder holds, byte for byte: written last, checked before anything is read.

Nothing in an export is executed; a graph is given to the program that runs it only when every byte
is as it was written.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from textmill.errors import RunError
from textmill.runtime.files import write_file
from textmill.runtime.sealed import SealedFiles

MANIFEST = "export.json"
"""The file that lists all others."""
GRAPH, TEXT = "graph", "text"
"""Folders of an export."""
BESIDE = ("README.md", "pushed.json")
"""Files that may be there although nothing lists them: its model card, and what came with it."""


class ExportError(RunError):
    """An export that cannot be used, or cannot be made."""


@dataclass(frozen=True, kw_only=True)
class ExportManifest(SealedFiles):
    """What ``export.json`` says."""

    NAME: ClassVar[str] = MANIFEST
    LARGEST: ClassVar[int] = 1 << 20
    MOST_FILES: ClassVar[int] = 1_000
    ERROR: ClassVar[type[Exception]] = ExportError

    graph: str
    """What runs it: ``ctranslate2``, ``huggingface`` (transformers), ``onnx``."""
    source: Mapping[str, Any]
    """Recipe, key and checkpoint that it was made of; ``weights`` is the sha256 of theirs, where it
    may answer for the run, see :mod:`textmill.runs.answering`."""
    compared: Mapping[str, Any]
    """What the comparison with the original found."""
    versions: Mapping[str, Any]
    """Of the packages that wrote it."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """Of generated text: settings of the search, see :class:`textmill.exported.seq2seq.Search`."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """Of typed columns: what becomes of the graph's outputs, see
    :func:`textmill.exported.columns.load_columns`; of generated text, what answers begin with."""

    @override
    @classmethod
    def _problems(cls, content: Mapping[str, Any]) -> Iterator[str]:
        if not isinstance(content["graph"], str):
            yield "'graph' must be text"
        for name in ("search", "answers", "source", "compared", "versions"):
            if not isinstance(content[name], dict):
                yield f"'{name}' must be a mapping"


def is_export(folder: Path) -> bool:
    """Whether a folder is an export, damaged or not."""
    return os.path.lexists(folder / MANIFEST)


def seal_folder(folder: Path, facts: Mapping[str, Any]) -> None:
    """Lists every file below a folder in its ``export.json``, with these facts."""
    manifest = ExportManifest(files=ExportManifest.entries(folder), **facts)
    write_file(folder / MANIFEST, manifest.to_bytes())


def read(folder: Path) -> ExportManifest:
    """Reads an export's manifest and checks every file that it lists.

    No other file may be there, but those of ``BESIDE``.
    """
    try:
        manifest = ExportManifest.read(folder)
        unlisted = (name for name in manifest.unlisted(folder) if name not in BESIDE)
        foreign = [f"{name!r:.80}: not listed in {MANIFEST}" for name in unlisted]
        for problem in foreign or manifest.damage(folder):
            raise ExportError(problem)
    except ExportError as error:
        raise ExportError(
            f"{folder} is no export that can be used: {error}. Delete it, and export the run "
            "again: textmill export RUN --format FORMAT"
        ) from None
    return manifest

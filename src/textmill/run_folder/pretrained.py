"""The pretrained models that a run began with: kept in its folder, all but their weights."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from textmill.checkpoint.layout import has_checkpoints
from textmill.run_folder.folder import PRETRAINED, RunFolder
from textmill.runtime.files import make_folder, write_atomic
from textmill.runtime.pretrained import KEPT, PretrainedFolder, finding, look_up


class PretrainedOfRun:
    """The models that a run asks for, each looked up once.

    A run that goes on finds in its own folder what it began with; one that has saved nothing yet
    finds the same commit of the hub.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.place, self.begun = folder.path / PRETRAINED, has_checkpoints(folder.path)
        self.commits: dict[str, str | None] = dict(folder.info.get("pretrained", {}))
        self.found: dict[str, PretrainedFolder] = {}

    def find(self, name: str, revision: str | None) -> PretrainedFolder:
        """As :func:`~textmill.runtime.pretrained.look_up`."""
        label = name if revision is None else f"{name}@{revision}"
        if label not in self.found:
            kept, commit = self._kept(label), self.commits.get(label)
            held = self.begun and kept.is_dir()
            made = PretrainedFolder(kept, name, commit, kept=True) if held else None
            self.found[label] = made or look_up(name, commit or revision)
        return self.found[label]

    def keep(self) -> dict[str, str | None] | None:
        """Writes the models found into the run's folder; returns the hub's commit of each."""
        for label, folder in self.found.items():
            self.commits[label] = folder.commit
            kept = self._kept(label)
            if folder.path == kept:
                continue
            for name in (name for name in KEPT if (folder.path / name).is_file()):
                make_folder((kept / name).parent)
                write_atomic(kept / name, (folder.path / name).read_bytes())
        return self.commits or None

    def _kept(self, label: str) -> Path:
        digest = hashlib.sha256(label.encode("utf-8", "surrogateescape")).hexdigest()
        return self.place / digest[:12]


@contextmanager
def pretrained_of(folder: RunFolder) -> Iterator[PretrainedOfRun]:
    """Finds pretrained models as the run does while the block runs."""
    models = PretrainedOfRun(folder)
    with finding(models.find):
        yield models

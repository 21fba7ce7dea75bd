"""Weights of another run, or of a part of it, to begin with."""

import tempfile
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.checkpoint.manifest import MANIFEST, Manifest
from weft.checkpoint.parts import load_part, plain_parts
from weft.checkpoint.store import Checkpoints
from weft.errors import UserError, WeftError, refuse_all
from weft.runtime.files import sha256
from weft.tasks.task import Task

__all__ = ["Initial"]

SHOWN = 8
"""Names in a line of the report; a foreign model differs in all of them."""
WHOLE = "model"
"""The part of a checkpoint that is the module."""

_Found = tuple[Path, dict[str, str], dict[str, Tensor]]


class Initial:
    """Fills a task's module from another run before the first step, and reports on every tensor.

    A tensor is taken where name and shape are the same; what is not there, or has another shape,
    stays as the recipe made it. Numbers are converted to the types here.

    Args:
        source: A run folder (its best checkpoint is taken), a checkpoint, or the ``modules`` that a
            run with ``trainer.save_modules`` left; None for a start from nothing.
        names: What is taken: the name of a submodule here, and its name there; ``""`` is all of
            it. Empty takes whatever matches.
        task: Whose module is filled.
    """

    def __init__(self, source: str | None, names: Mapping[str, str], *, task: Task) -> None:
        self.source, self.names, self.task = source, names, task
        self.found: _Found | None = None

    def check(self) -> None:
        """Refuses a source that cannot be read or has nothing that fits, before the run starts.

        What was read is kept for :meth:`load`, so that a source is read once.

        Raises:
            UserError: It is not there, or nothing of it fits, or a name is of nothing.
            CheckpointError: It is damaged.
        """
        if self.source is not None:
            self.found = self._matched()

    def load(self) -> list[str]:
        """Takes the weights; returns the lines of the report."""
        if self.source is None:
            return []
        place, pairs, found = self.found or self._matched()
        self.found = None
        wanted = self.task.module.state_dict(keep_vars=True)
        fits = {here: there for here, there in pairs.items() if _fit(wanted, found, here, there)}
        with torch.no_grad():
            for here, there in fits.items():
                wanted[here].detach().copy_(found[there])
        lines = [f"Initialized from {place}: {len(fits)} of {len(wanted)} tensors."]
        other = [h for h, t in pairs.items() if t in found and h not in fits]
        if other:
            shapes = [
                f"{h} {_shape(found[pairs[h]])} there, {_shape(wanted[h])} here" for h in other
            ]
            lines.append(f"Of another shape, so left as they were: {_few(shapes)}.")
        if missing := [h for h in wanted if h not in fits and h not in other]:
            lines.append(f"Not taken from it, so left as they were: {_few(missing)}.")
        if unused := sorted(set(found) - {pairs[h] for h in [*fits, *other]}):
            lines.append(f"Not used of it: {_few(unused)}.")
        return [*lines, *self._other_text(place)]

    def _matched(self) -> _Found:
        """Where the weights are, the name there of each name here, and the tensors."""
        place, found = _read(Path(str(self.source)))
        wanted = self.task.module.state_dict()
        pairs = {name: name for name in wanted} if not self.names else {}
        unknown: list[WeftError] = []
        for here, there in self.names.items():
            inside, outside = _below(wanted, here), _below(found, there)
            for name, keys, among, whose in (
                (here, inside, wanted, "the module here"),
                (there, outside, found, str(place)),
            ):
                if not keys:
                    text = f"trainer.initialize_from names '{name}', which {whose} does not have."
                    unknown.append(UserError(f"{text} {_nearest(name, among)}"))
            pairs |= {key: _moved(key, here, there) for key in inside}
        refuse_all(unknown)
        if not any(_fit(wanted, found, here, there) for here, there in pairs.items()):
            raise UserError(
                f"trainer.initialize: nothing in {place} has the name and shape of a tensor here. "
                f"There: {_few(sorted(found))}. Here: {_few(sorted(pairs))}. "
                'Name what is to go where: trainer.initialize_from={"encoder": "encoder"}'
            )
        return place, pairs, found

    def _other_text(self, place: Path) -> list[str]:
        """Names a text path that is not the one here: its ids stand for other pieces."""
        there = {
            n: e.sha256 for n, e in Manifest.read(place).files.items() if n.startswith("text/")
        }
        with tempfile.TemporaryDirectory(prefix="weft-text-") as folder:
            (Path(folder) / "text").mkdir()
            self.task.text.save(Path(folder) / "text")
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            here = {path.relative_to(folder).as_posix(): sha256(path) for path in files}
        changed = sorted(name for name in {**there, **here} if there.get(name) != here.get(name))
        if not there or not changed:
            return []
        return [
            f"Its text path is another ({_few(changed)} differ): where that is the vocabulary, "
            "rows of embeddings and of the output were learned for other pieces. Use its "
            "tokenizer, or leave them out with trainer.initialize_from."
        ]


def _read(source: Path) -> tuple[Path, dict[str, Tensor]]:
    """The checkpoint that is meant, and its tensors by their name in the module."""
    if (source / "checkpoints").is_dir():
        used = Checkpoints(source / "checkpoints").use("best", lambda path: (path, _tensors(path)))
        if used is not None:
            return used
    elif (source / MANIFEST).is_file():
        return source, _tensors(source)
    raise UserError(
        f"trainer.initialize is '{source}', where no checkpoint is; wanted a run folder, one of "
        "its checkpoints/step-..., or its modules."
    )


def _tensors(path: Path) -> dict[str, Tensor]:
    names = plain_parts(path, Manifest.read(path))
    if WHOLE in names:
        state = load_part(path, WHOLE)
    else:
        state = {f"{n}.{key}": value for n in names for key, value in load_part(path, n).items()}
    return {key: value for key, value in state.items() if isinstance(value, Tensor)}


def _below(keys: Iterable[str], name: str) -> list[str]:
    return [key for key in keys if not name or key == name or key.startswith(f"{name}.")]


def _moved(key: str, here: str, there: str) -> str:
    return f"{there}.{key[len(here) :].lstrip('.')}".strip(".")


def _fit(wanted: Mapping[str, Any], found: Mapping[str, Tensor], here: str, there: str) -> bool:
    value = wanted[here]
    return isinstance(value, Tensor) and there in found and value.shape == found[there].shape


def _shape(value: Any) -> str:
    return str(list(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more


def _nearest(name: str, keys: Iterable[str]) -> str:
    parts = [key.split(".")[:-1] for key in keys]
    known = {".".join(words[:count]) for words in parts for count in range(1, len(words) + 1)}
    near = get_close_matches(name, sorted(known), n=1)
    tops = sorted({key for key in known if "." not in key})
    return f"Did you mean '{near[0]}'?" if near else f"It has: {_few(tops)}."

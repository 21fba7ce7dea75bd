"""Fingerprints of everything that a run reads: its data, and the other files that settings name."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from textmill.checkpoint.layout import deciding_files
from textmill.config.ingredient import DATA
from textmill.config.parameters import settings_of
from textmill.config.planning.key import deciding_names
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.data.text_pairs import TextPairs
from textmill.preflight.load_data import all_data, fingerprint_of, read_all
from textmill.recipes.planning import seed_of
from textmill.run_folder.folder import RunFolder
from textmill.runtime.files import sha256
from textmill.runtime.seeds import fold, seed_everything
from textmill.tasks.several.trained_task import TrainedTask

FILES = ".files."
"""Between the name of data and that of one of its files."""
SHOWN_FILES = 10


def read_data(session: Session, plan: Plan, folder: Path | None) -> dict[str, str]:
    """Reads the data; returns the fingerprint of each data set and of each other file.

    The keys are names of data, and the settings that name files of word vectors, phrases,
    tokenizers, ... Data in several files also has each file's sha256, as
    ``train_data.files.NAME``. Without a folder nothing is written.
    """
    seed_everything(fold(seed_of(plan), "data"))  # a recipe's own code may shuffle or split
    read_all(session, folder)
    data = {}
    for name, (own, inner) in all_data(session).items():
        made = own.get(inner)
        if digest := fingerprint_of(made) or _of_list(made):
            data[name] = digest
        if isinstance(made, TextPairs):
            data |= {f"{name}{FILES}{file}": digest for file, digest in made.digests().items()}
    known = {data_of(name) for name in data}
    files = {name: of for name, content in named_content(plan).items() if (of := content.digest)}
    return data | {name: of for name, of in files.items() if data_of(name) not in known}


def changed_data(folder: RunFolder, now: Mapping[str, str]) -> list[str]:
    """Names of data and files that differ from what the run read; unrecorded ones do not count.

    Data in several files is listed by its own name.
    """
    before = folder.info.get("data", {})
    return [n for n in now if FILES not in n and before.get(n, now[n]) != now[n]]


def changes_sentence(names: Sequence[str], folder: RunFolder, now: Mapping[str, str]) -> str:
    """Says which data changed, with the files of data that has several."""
    before, lines = folder.info.get("data", {}), list[str]()
    for data in names:
        prefix = f"{data}{FILES}"
        old, new = ({n: of[n] for n in of if n.startswith(prefix)} for of in (before, now))
        if {*old} & {*new}:  # else the folder was moved
            kept = {*new.values()}  # a run that was moved once has the names of both places
            kinds = {n: "changed" for n in new if n in old and old[n] != new[n]}
            kinds |= {n: "is new" for n in new if n not in old}
            kinds |= {n: "is gone" for n in old if n not in new and old[n] not in kept}
            lines += [f"{n.removeprefix(prefix)} {kind}" for n, kind in kinds.items()]
    lines = list(dict.fromkeys(lines))  # train_data and valid_data may be of the same files
    more = f", and {len(lines) - SHOWN_FILES} more" if len(lines) > SHOWN_FILES else ""
    files = f": {', '.join(lines[:SHOWN_FILES])}{more}" if lines else ""
    return (
        f"{' and '.join(names)} changed since {folder.path} was "
        f"{'finished' if folder.finished else 'started'}: the files have other content{files}"
    )


def data_of(name: str) -> str | None:
    """The data set that a setting belongs to; None for other settings."""
    found = re.match(rf"(?:[^.]+\.)?(?:{'|'.join(DATA)})(?=\.|$)", name)
    return found and found[0]


def whole_setting(name: str) -> str:
    """The setting that contains a path: ``train_data.path`` for ``train_data.path.0``."""
    return re.sub(r"(\.\d+)+$", "", name)


def moved_settings(folder: RunFolder, plan: Plan) -> Collection[str]:
    """Settings whose path may change when a run goes on, because it recorded the content there.

    Data is compared when it is read; other files are compared here.
    """
    known = folder.info.get("data", {})
    return {
        whole_setting(name)
        for name, content in named_content(plan).items()
        if (known[name] == content.digest if name in known else data_of(name) in known)
    }


class Content(NamedTuple):
    """What a setting names by its path."""

    path: Path
    deciding: tuple[Path, ...]
    """The files that tell it from other content; those that exist count."""
    is_asked: bool = False
    """Whether each step asks it, as a teacher: nothing of it is in a checkpoint."""

    @property
    def digest(self) -> str | None:
        """The sha256 of the deciding files; None: there is none."""
        return "+".join(sha256(file) for file in self.deciding if file.is_file()) or None


def named_content(plan: Plan) -> dict[str, Content]:
    """The files and folders that settings in the key name, by the settings' dotted names."""
    found: dict[str, Content] = {}
    for name in deciding_names(plan):  # an observer may name a file that it writes
        node = plan.nodes[name]
        deciding = {p.name for p in node.wiring.settings if p.in_key}
        for setting, value in node.settings.items():
            if setting in deciding:
                found |= dict(_content_in(value, f"{name}.{setting}"))
    for task, own in plan.tasks.items():
        found |= {f"{task}.{name}": each for name, each in named_content(own).items()}
    initialize = plan.settings.get("trainer", {}).get("initialize")
    more = _content_in(Path(initialize), "trainer.initialize") if initialize else ()
    return found | dict(more)


def _content_in(value: Any, name: str) -> Iterator[tuple[str, Content]]:
    items: Any = ()
    if isinstance(value, Path):
        yield name, Content(value, (value, *deciding_files(value)))
    elif isinstance(value, TrainedTask.Config):
        yield f"{name}.path", Content(value.path, value.deciding_files, is_asked=True)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = [(s.name, getattr(value, s.name, None)) for s in settings_of(value) if s.in_key]
    elif isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = enumerate(value)
    for key, item in items:
        yield from _content_in(item, f"{name}.{key}")


def _of_list(data: object) -> str | None:
    """The sha256 of rows in a list; None for other data and for ready batches."""
    if not isinstance(data, list | tuple):
        return None
    digest = hashlib.sha256()
    try:
        for row in data:
            digest.update(json.dumps(row, sort_keys=True).encode())
    except (TypeError, ValueError):  # tensors, or values of a type of the recipe's own
        return None
    return digest.hexdigest()

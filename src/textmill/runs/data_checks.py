"""Fingerprints of all that a run reads, and whether a run that exists has read the same."""

import dataclasses
import hashlib
import itertools
import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import deciding_files
from textmill.config.parameters import settings_of
from textmill.config.planning.key import deciding_names
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.data.data_files import first_file
from textmill.data.text_pairs import TextPairs
from textmill.errors import UserError, worded
from textmill.preflight.load_data import DATA, fingerprint_of, read_all
from textmill.recipes.planning import Planned, seed_of
from textmill.run_folder.folder import RunFolder
from textmill.runs.resume_checks import is_finished, same_again
from textmill.runtime.files import sha256
from textmill.runtime.seeds import fold, seed_everything

LOG = logging.getLogger("textmill")

FILES = ".files."
"""Between the name of data and that of one of its files."""
SHOWN_FILES = 10


def fingerprints(session: Session, plan: Plan) -> dict[str, str]:
    """What a run reads, as it is now: of data by its name, of other files by their setting.

    Settings name files of word vectors, phrases, tokenizers, ... Of data in several files there is
    each file's sha256, too, as ``train_data.files.NAME``.
    """
    made = {name: session.get(name) for name in DATA if session.has(name)}
    data = {n: f for n, of in made.items() if (f := fingerprint_of(of) or _of_list(of))}
    for name, of in made.items():
        digests = of.digests() if isinstance(of, TextPairs) else {}
        data |= {f"{name}{FILES}{file}": digest for file, digest in digests.items()}
    paths = named_paths(plan)
    files = {name: d for name, path in paths.items() if (d := _digest(path))}
    return data | {n: d for n, d in files.items() if n.partition(".")[0] not in data}


def changed_data(folder: RunFolder, now: Mapping[str, str]) -> list[str]:
    """The names of what is another than the run has read; what it did not record is the same.

    Of data in several files its name is given, not theirs.
    """
    before, whole = folder.info.get("data", {}), (name for name in now if FILES not in name)
    return [name for name in whole if before.get(name, now[name]) != now[name]]


def compare_data(folder: RunFolder, now: Mapping[str, str]) -> None:
    """Refuses to go on with other data than the run began with.

    Other files, as of word vectors, are in the checkpoint by then, or compared with what is.

    Raises:
        UserError: It is other data.
    """
    changed = [name for name in changed_data(folder, now) if _data_of(name)]
    if changed:
        said = _changed(changed, folder, now, since="started")
        again = worded("--again", "again=True")
        raise UserError(f"{said}. Restore them, or train anew with {again}.")


def _changed(names: Sequence[str], folder: RunFolder, now: Mapping[str, str], *, since: str) -> str:
    """What is another than the run has read, with the files of data in several."""
    before, told = folder.info.get("data", {}), list[str]()
    for data in names:
        prefix = f"{data}{FILES}"
        old, new = ({n: of[n] for n in of if n.startswith(prefix)} for of in (before, now))
        if old and new and {*old} & {*new}:  # the folder was not moved
            kinds = {"changed": [n for n in new if n in old and old[n] != new[n]]}
            kinds |= {"is new": [n for n in new if n not in old]}
            still = {*new.values()}  # of a run that was moved once, the names of both places
            kinds |= {"is gone": [n for n in old if n not in new and old[n] not in still]}
            told += [f"{n.removeprefix(prefix)} {kind}" for kind in kinds for n in kinds[kind]]
    more = f", and {len(told) - SHOWN_FILES} more" if len(told) > SHOWN_FILES else ""
    files = f": {', '.join(told[:SHOWN_FILES])}{more}" if told else ""
    return (
        f"{' and '.join(names)} changed since {folder.path} was {since}: the files have other "
        f"content{files}"
    )


def moved_settings(folder: RunFolder, plan: Plan) -> set[str]:
    """The settings that may name another place: the run knows what it has read there.

    Data is compared when it is read; other files are here.
    """
    known = folder.info.get("data", {})
    return {
        _whole(name)
        for name, path in named_paths(plan).items()
        if (known[name] == _digest(path) if name in known else _data_of(name) in known)
    }


def run_of_data(
    folder: RunFolder,
    planned: Planned,
    *,
    named: bool,
    changes: Collection[str],
    read: Callable[[], Mapping[str, str]],
    extend: bool = False,
) -> RunFolder:
    """The run of the data as it is now: the folder's, one beside it, or the next free one.

    Where it was ``named``, no other folder may be taken. Settings among ``changes`` are others than
    the run's; ``read`` gives the fingerprints of the data now, where a run is finished. A run of
    another length is one that is not finished, where it is to ``extend``.

    Raises:
        UserError: The run that was named is finished, and its data is not what it was.
    """
    runs = [folder] if named else folder.numbered()
    known = [*itertools.takewhile(lambda run: run.info, runs)]
    paths = [(_whole(name), path) for name, path in named_paths(planned.plan).items()]
    gone = [
        (name, path)
        for name, path in paths
        if name not in changes and _data_of(name) and not first_file(path).exists()
    ]
    is_over = partial(is_finished, planned=planned, extend=extend)
    if not known or (len(known) == 1 and not is_over(folder)):
        for name, path in gone[:1] if known else ():
            typed = f"textmill train {folder.path} {name}=ITS_NEW_PLACE"
            LOG.warning("%s (%s) is gone. If it was moved, this goes on: %s", name, path, typed)
        return folder
    for name, path in gone[:1]:
        old = known[-1].path
        LOG.warning("Not compared with what %s has read: there is no %s (%s).", old, name, path)
    now = known[-1].info.get("data", {}) if gone else read()
    for run in known:
        if not changed_data(run, now):
            return run
    last = known[-1]
    if not is_over(last):
        return last  # it refuses to go on, and says what to do
    said = _changed(changed_data(last, now), last, now, since="finished")
    if named:
        raise UserError(
            f"{said}. With these it is another run: {same_again()} trains it beside the old one. "
            "The result of the old one: "
            + worded(f"textmill train {last.path}", f"textmill.train({str(last.path)!r})")
        )
    free = folder.free()
    LOG.warning("%s. With these it is another run: %s", said, free.path)
    return free


def _data_of(name: str) -> str | None:
    """The data that a setting is one of; None: of something else."""
    first = name.partition(".")[0]
    return first if first in DATA else None


def _whole(name: str) -> str:
    """The setting that a path is in.

    >>> _whole("train_data.path.0")
    'train_data.path'
    """
    return re.sub(r"(\.\d+)+$", "", name)


def named_paths(plan: Plan) -> dict[str, Path]:
    """The files and folders that deciding settings name, by the settings' dotted names."""
    found: dict[str, Path] = {}
    for name in deciding_names(plan):  # what an observer names may be what it writes
        node = plan.nodes[name]
        deciding = {p.name for p in node.wiring.settings if p.in_key}
        for setting, value in node.settings.items():
            if setting in deciding:
                found |= dict(_in(value, f"{name}.{setting}"))
    initialize = plan.settings.get("trainer", {}).get("initialize")
    return found | ({"trainer.initialize": Path(initialize)} if initialize else {})


def _in(value: Any, name: str) -> Iterator[tuple[str, Path]]:
    if isinstance(value, Path):
        yield name, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for entry in settings_of(value):
            if entry.in_key:
                yield from _in(getattr(value, entry.name, None), f"{name}.{entry.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _in(item, f"{name}.{key}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for number, item in enumerate(value):
            yield from _in(item, f"{name}.{number}")


def _digest(path: Path) -> str | None:
    """The sha256 of a file, or of what says which checkpoint a folder gives; None of all else."""
    places = (path, *deciding_files(path))
    return next((sha256(place) for place in places if place.is_file()), None)


def _of_list(data: object) -> str | None:
    """The sha256 of rows in a list; None of what is none, and of ready batches.

    >>> len(_of_list([{"label": "ham", "text": "Ok."}]))
    64
    """
    if not isinstance(data, list | tuple):
        return None
    digest = hashlib.sha256()
    try:
        for row in data:
            digest.update(json.dumps(row, sort_keys=True).encode())
    except (TypeError, ValueError):  # tensors, or values of a type of the recipe's own
        return None
    return digest.hexdigest()


def data_fingerprints(planned: Planned, device: str = "auto") -> dict[str, str]:
    """What tells the data of a recipe from other data, read as a run reads it; writes nothing."""
    return read_data(planned.start(Path(), "train", device), planned.plan, None)


def read_data(session: Session, plan: Plan, folder: Path | None) -> dict[str, str]:
    """Reads the data; gives its fingerprints. Without a folder nothing is written."""
    seed_everything(fold(seed_of(plan), "data"))  # a recipe's own code may shuffle or split
    read_all(session, plan.order, folder)
    return fingerprints(session, plan)

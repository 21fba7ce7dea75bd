"""Which run a command means, and what may change when it goes on.

Two rules. A run of the same key and the same data goes on to the length that is asked for. Anything
else is another run: it gets a folder of its own, and the difference is printed; where a person
named the folder, it is refused.
"""

import dataclasses
import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from textmill.checkpoint.layout import (
    deciding_files,
    folder_name,
    has_checkpoints,
    module_file,
    text_folder,
)
from textmill.checkpoint.run_seal import RunSeal
from textmill.config.parameters import settings_of
from textmill.config.planning.key import (
    deciding_names,
    key_settings,
    plan_files,
    run_key,
    settings_key,
)
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.config.values.raw_values import untyped
from textmill.config.values.typed_values import parse_duration
from textmill.config.values.yaml_files import dump_yaml, read_yaml, yaml_nodes
from textmill.data.data_files import first_file
from textmill.data.text_pairs import TextPairs
from textmill.errors import CheckpointError, TextmillError, UserError, worded
from textmill.inference.load import edited_files
from textmill.preflight.load_data import DATA, fingerprint_of, read_all
from textmill.recipes.planning import Planned, exports_of, seed_of
from textmill.run_folder.diff import mapping
from textmill.run_folder.folder import RunFolder, command_line, versions
from textmill.run_folder.record import flat, numbers
from textmill.runtime.files import sha256
from textmill.runtime.jsonl_log import read_lines
from textmill.runtime.seeds import fold, seed_everything
from textmill.text.processors.text_processor import TextProcessor

LOG = logging.getLogger("textmill")

LENGTH = ("max_steps", "max_epochs", "max_time")
"""The settings of ``trainer`` that say how long a run is."""
FILES = ".files."
"""Between the name of data and that of one of its files."""
SHOWN_FILES = 10


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    folder: Path
    """The run folder; ``textmill.load`` takes it."""
    result: dict[str, Any] = field(default_factory=dict)
    """Steps, the best value and its step, and the values on ``test_data``."""

    @property
    def history(self) -> list[dict[str, Any]]:
        """What was measured, in its order: ``pandas.DataFrame(run.history)`` is a table of it.

        Each has its ``split`` (train, valid, test), ``step``, ``epoch``, ``seconds`` since the
        start, and the values by name. Empty where the reporter ``jsonl`` was left out.
        """
        lines = []
        for line in read_lines(self.folder / "metrics.jsonl"):
            seconds = numbers(mapping(line, "time"), ()).get("elapsed")
            place = {"split": line.get("split"), "seconds": seconds}
            counted = {name: value for name, value in line.items() if type(value) is int}
            lines.append({**place, **numbers(line, ()), **counted})
        return lines


# -- which run it is


def choose_folder(planned: Planned, *, run_dir: str | Path | None, again: bool) -> RunFolder:
    """The folder of the run: the one continued, the one named, or the one of its key."""
    key = run_key(planned.plan)
    if planned.run is not None and not again:
        refuse_other(planned.run, run_dir)
        return RunFolder(planned.run)
    if run_dir is None:
        return RunFolder.place(planned.name, key, again=again)
    folder = RunFolder(Path(run_dir)).free() if again else RunFolder(Path(run_dir))
    if folder.has_other(key):
        edited = _edited(folder, planned, settings_key(planned.plan))
        raise UserError(
            f"{run_dir} holds another run (key {folder.info['key']}, this one has {key}). "
            f"{edited}Choose another {worded('--run-dir', 'run_dir')}. "
            + _named_again(folder, planned, "To go on with that run: ")
        )
    return folder


def run_of_data(
    folder: RunFolder,
    planned: Planned,
    *,
    named: bool,
    read: Callable[[], Mapping[str, str]],
    changes: Collection[str] = (),
) -> RunFolder:
    """The run that goes on, or that has ended: the folder's, or one beside it."""
    difference, now = "", None
    for run in [folder] if named else folder.numbered():
        if not (run.info and has_checkpoints(run.path)):
            if difference:
                LOG.warning("%s With this it is another run: %s", difference, run.path)
            return run
        for name, path in named_paths(planned.plan).items():
            setting = _whole(name)
            if setting not in changes and _data_of(setting) and not first_file(path).exists():
                LOG.warning(
                    "%s (%s) is gone, so it is not compared with what %s has read. If it was "
                    "moved, this goes on: textmill train %s %s=ITS_NEW_PLACE",
                    *(setting, path, run.path, run.path, setting),
                )
                return run
        difference = _beyond(run, planned.plan)
        if named and not run.finished and not difference:
            return run  # its data is compared when it is read
        if not difference:
            now = read() if now is None else now
            difference = _difference(run, planned.plan, now)
        if not difference:
            return run
    raise UserError(
        f"{difference} With this it is another run: {same_again()} trains it beside the old one. "
        f"{'The result of the old one' if folder.finished else 'To go on with the old one'}: "
        + worded(f"textmill train {folder.path}", f"textmill.train({str(folder.path)!r})")
    )


def _difference(run: RunFolder, plan: Plan, now: Mapping[str, str]) -> str:
    """Why a run cannot go on to what is asked for; empty if it can."""
    if changed := _changed_data(run, now):
        return f"{_changed_files(changed, run, now)}."
    longer = length_changes(run, plan)
    if run.finished and longer and all(map(_is_shorter, longer.values())):
        had = " ".join(f"{name}={of['before']}" for name, of in longer.items())
        return f"{run.path} is longer already ({had}, finished)."
    return ""


def _beyond(run: RunFolder, plan: Plan) -> str:
    """That a run which was interrupted is past the step at which it is to end; empty if not."""
    most, newest = length_of(plan).get("max_steps"), None if run.finished else run.newest
    if most and newest is not None and newest.step > most:
        return f"{run.path} is at step {newest.step:,} already (trainer.max_steps={most})."
    return ""


def _is_shorter(of: Mapping[str, Any]) -> bool:
    before, now = (
        parse_duration(limit).total_seconds() if isinstance(limit, str) else limit
        for limit in (of["before"], of["now"])
    )
    return bool(before and now and now < before)


def is_finished(folder: RunFolder, planned: Planned) -> bool:
    """Whether the run came to its end, and that is the end that is asked for."""
    ended = bool(folder.info) and has_checkpoints(folder.path) and folder.finished
    return ended and not length_changes(folder, planned.plan)


def ended_run(folder: RunFolder, planned: Planned | None = None) -> Run:
    """A run that is finished, which is said; of one that is ``planned`` anew all must be there."""
    settings = planned.plan.settings.get("trainer", {}) if planned else {}
    names = settings.get("save_modules") or ()
    missing = [n for n in names if not module_file(folder.path, n).is_file()]
    if missing:
        raise UserError(
            f"{folder.path} is finished, so trainer.save_modules={','.join(missing)} would save "
            "nothing: parts are saved when a run ends. Another run takes them from the whole one "
            f"by trainer.initialize and trainer.initialize_from; or train anew: {same_again()}."
        )
    for form in exports_of(planned.plan) if planned else ():
        if not (folder.path / "export" / form.folder).is_dir():
            raise UserError(
                f"{folder.path} is finished, so trainer.export={form.folder} would export nothing. "
                f"Export it now: textmill export {folder.path} {form.words}"
            )
    LOG.info("This run is finished: %s", folder.path)
    return Run(folder.path, folder.result)


def tell_edited(folder: RunFolder, planned: Planned) -> None:
    """Says of a run that is still to be made which code it differs in from the newest like it."""
    if folder.info or not plan_files(planned.plan):  # without own code no record is looked at
        return
    others, settings = folder.path.parent.glob("*/run.json"), settings_key(planned.plan)
    for other in sorted(others, key=lambda file: file.stat().st_mtime, reverse=True):
        run = RunFolder(other.parent)
        if edited := _edited(run, planned, settings):
            way = _named_again(run, planned, "To go on with that one: ")
            LOG.warning("%sThis is another run. %s", edited, way)
            return


def _edited(folder: RunFolder, planned: Planned, settings: str) -> str:
    """Which code changed since a run of the same settings; empty of another run."""
    with suppress(TextmillError):  # a damaged record says so where its run is used
        same = folder.info.get("settings_key") == settings
        if same and (files := edited_files(folder.path, plan_files(planned.plan))):
            return f"{files} changed since {folder.path} was trained. "
    return ""


def refuse_other(run: Path, run_dir: str | Path | None) -> None:
    """Refuses a second folder for a run that is named by its own."""
    if run_dir is not None and Path(run_dir).resolve() != run.resolve():
        raise UserError(
            f"{run} is a run, which continues in its own folder, so "
            f"{worded('--run-dir ', 'run_dir=')}{run_dir} cannot be. Leave one of them out, or "
            f"train anew there with {worded('--again', 'again=True')}."
        )


def same_again() -> str:
    """How what was asked for is trained anew."""
    return worded("the same command with --again", "the same call with again=True")


def _named_again(folder: RunFolder, planned: Planned, way: str) -> str:
    own = planned.script is not None
    trust = ["--allow-code"] if own else [f"--include {name}" for name in planned.include]
    command = " ".join(["textmill train", str(folder.path), *trust])
    call = f"textmill.train({str(folder.path)!r}{', allow_code=True' if own else ''})"
    return f"{way}{worded(command, call)}"


# -- what may change


def allowed_changes(
    now: Planned, before: Planned, *, moved: Collection[str] = ()
) -> dict[str, Any]:
    """What the command changes in the run that it goes on with, planned with its words and without.

    Settings among ``moved`` name a place, which may be another as long as the content is the same.

    Returns:
        The changed settings by their dotted names, with the values before and now.
    """
    assert now.run is not None
    if edited := edited_files(now.run, plan_files(now.plan)):
        raise UserError(
            f"{now.run} cannot go on: {edited} changed since the run was trained. Restore it; "
            "or train anew with it: name the recipe itself."
        )
    refused = {
        **_changed(before.plan.swaps, now.plan.swaps),
        **_changed(flat(key_settings(before.plan)), flat(key_settings(now.plan))),
    }
    if blocked := [name for name in refused if name not in moved]:
        raise UserError(
            f"{now.run} cannot go on with another {' and '.join(blocked)}: that is another run. "
            "Its length, saving and reporting can change, and the place of the same data. To train "
            "anew with these settings, name the recipe itself."
        )
    return _changed(flat(before.plan.settings), flat(now.plan.settings))


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"before": before.get(name), "now": now.get(name)}
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    }


def length_of(plan: Plan) -> dict[str, Any]:
    """Those of :data:`LENGTH`, as a run is planned."""
    trainer = plan.settings.get("trainer", {})
    return {name: trainer[name] for name in LENGTH if name in trainer}


def length_changes(folder: RunFolder, plan: Plan) -> dict[str, Any]:
    """The settings of length that are others than a run's, as :func:`allowed_changes` has them."""
    lengths = (folder.info.get("length", {}), length_of(plan))
    before, now = ({f"trainer.{name}": value for name, value in of.items()} for of in lengths)
    return _changed(before, now)


def record_changes(folder: RunFolder, changes: Mapping[str, Any]) -> None:
    """Says what changed, and keeps it in ``run.json`` with the step from which it holds."""
    if not changes:
        return
    newest = folder.newest
    step = None if newest is None else newest.step
    for name, values in changes.items():
        LOG.info("%s: %s -> %s", name, values["before"], values["now"])
    entry = {"step": step, "command": command_line(), "settings": dict(changes)}
    folder.write_info(changes=[*folder.info.get("changes", []), entry])


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


def compare_built(
    folder: RunFolder, built: Mapping[str, Any], changes: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Refuses to go on where sizes that came from data have become others.

    ``built`` is what was built otherwise than it was set; ``changes`` are settings that may be
    others than the run's, as the new place of a file.
    """
    if not folder.info or not (folder.path / "config.yaml").is_file():
        return
    try:
        RunSeal.read(folder.path)
    except CheckpointError as error:
        LOG.warning("%s It is written anew.", str(error).partition(" It says what")[0])
        return
    saved = read_yaml(folder.path / "config.yaml").entries.get("built")
    before = flat(untyped(saved) or {}) if saved is not None else {}
    made = yaml_nodes(dump_yaml(dict(built)), source="built")
    now = flat((untyped(made) or {}) if made is not None else {})
    lawful = [(str(change["before"]), str(change["now"])) for change in changes.values()]
    changed = [
        f"{n} was {before[n]}, is {now[n]}"
        for n in before
        # The path of a tokenizer's file is where, not what: its text processor is compared byte
        # by byte.
        if n in now and not n.startswith("tokenizer.")
        if before[n] != now[n] and (str(before[n]), str(now[n])) not in lawful
    ]
    if changed:
        raise UserError(f"{folder.path} was built otherwise: {'; '.join(changed)}. {_anew()}")


def compare_text(folder: RunFolder, text: TextProcessor) -> None:
    """Refuses to go on with another processor than the one that the weights were trained with."""
    newest = folder.newest
    if newest is None:
        return
    saved = {name: entry.sha256 for name, entry in newest.text.items()}
    with tempfile.TemporaryDirectory(prefix="textmill-text-") as place:
        written = text_folder(Path(place))
        written.mkdir()
        text.save(written)
        files = [path for path in Path(place).rglob("*") if path.is_file()]
        now = {path.relative_to(place).as_posix(): sha256(path) for path in files}
    changed = sorted(name for name in {**saved, **now} if saved.get(name) != now.get(name))
    if changed:
        raise UserError(
            f"the text processor is not the one {folder.path} was trained with: "
            f"{', '.join(changed)} of {folder_name(newest.step)} differ from what the tokenizer is "
            f"now; its training text or its file changed. {_anew()}"
        )


def _anew() -> str:
    return f"Restore what it was, or train anew: {same_again()}."


def warn_of_versions(folder: RunFolder) -> None:
    """Says where a run goes on under other versions: bitwise equality is promised for the same."""
    starts = folder.info.get("starts") or []
    before = starts[-1].get("versions", {}) if starts and isinstance(starts[-1], dict) else {}
    now = versions()
    changed = [f"{n} {before[n]} -> {now[n]}" for n in now if n in before and before[n] != now[n]]
    if changed:
        LOG.warning(
            "This run goes on under other versions (%s): its result may differ in the last bits.",
            ", ".join(changed),
        )


# -- what is read


def data_fingerprints(planned: Planned, device: str = "auto") -> dict[str, str]:
    """What tells the data of a recipe from other data, read as a run reads it; writes nothing."""
    return read_data(planned.start(Path(), "train", device), planned.plan, None)


def read_data(session: Session, plan: Plan, folder: Path | None) -> dict[str, str]:
    """Reads the data; gives its fingerprints. Without a folder nothing is written."""
    seed_everything(fold(seed_of(plan), "data"))  # a recipe's own code may shuffle or split
    read_all(session, plan.order, folder)
    return fingerprints(session, plan)


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
    files = {name: d for name, path in named_paths(plan).items() if (d := _digest(path))}
    return data | {n: d for n, d in files.items() if n.partition(".")[0] not in data}


def compare_data(folder: RunFolder, now: Mapping[str, str]) -> None:
    """Refuses to go on with other data than the run began with.

    Other files, as of word vectors, are in the checkpoint by then, or compared with what is.
    """
    if changed := [name for name in _changed_data(folder, now) if _data_of(name)]:
        said = _changed_files(changed, folder, now)
        again = worded("--again", "again=True")
        raise UserError(f"{said}. Restore them, or train anew with {again}.")


def _changed_data(folder: RunFolder, now: Mapping[str, str]) -> list[str]:
    """The names of what is another than the run has read; what it did not record is the same.

    Of data in several files its name is given, not theirs.
    """
    before, whole = folder.info.get("data", {}), (name for name in now if FILES not in name)
    return [name for name in whole if before.get(name, now[name]) != now[name]]


def _changed_files(names: Sequence[str], folder: RunFolder, now: Mapping[str, str]) -> str:
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
    told = list(dict.fromkeys(told))  # train_data and valid_data may be of the same files
    more = f", and {len(told) - SHOWN_FILES} more" if len(told) > SHOWN_FILES else ""
    files = f": {', '.join(told[:SHOWN_FILES])}{more}" if told else ""
    return (
        f"{' and '.join(names)} changed since {folder.path} was "
        f"{'finished' if folder.finished else 'started'}: the files have other content{files}"
    )


def _data_of(name: str) -> str | None:
    """The data that a setting is one of; None: of something else."""
    first = name.partition(".")[0]
    return first if first in DATA else None


def _whole(name: str) -> str:
    """The setting that a path is in: ``train_data.path.0`` is in ``train_data.path``."""
    return re.sub(r"(\.\d+)+$", "", name)


def named_paths(plan: Plan) -> dict[str, Path]:
    """The files and folders that deciding settings name, by the settings' dotted names."""
    found: dict[str, Path] = {}
    for name in deciding_names(plan):  # what an observer names may be what it writes
        node = plan.nodes[name]
        deciding = {p.name for p in node.wiring.settings if p.in_key}
        for setting, value in node.settings.items():
            if setting in deciding:
                found |= dict(_paths_in(value, f"{name}.{setting}"))
    initialize = plan.settings.get("trainer", {}).get("initialize")
    return found | ({"trainer.initialize": Path(initialize)} if initialize else {})


def _paths_in(value: Any, name: str) -> Iterator[tuple[str, Path]]:
    if isinstance(value, Path):
        yield name, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for entry in settings_of(value):
            if entry.in_key:
                yield from _paths_in(getattr(value, entry.name, None), f"{name}.{entry.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _paths_in(item, f"{name}.{key}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for number, item in enumerate(value):
            yield from _paths_in(item, f"{name}.{number}")


def _digest(path: Path) -> str | None:
    """The sha256 of a file, or of what says which checkpoint a folder gives; None of all else."""
    places = (path, *deciding_files(path))
    return next((sha256(place) for place in places if place.is_file()), None)


def _of_list(data: object) -> str | None:
    """The sha256 of rows in a list; None of what is none, and of ready batches."""
    if not isinstance(data, list | tuple):
        return None
    digest = hashlib.sha256()
    try:
        for row in data:
            digest.update(json.dumps(row, sort_keys=True).encode())
    except (TypeError, ValueError):  # tensors, or values of a type of the recipe's own
        return None
    return digest.hexdigest()

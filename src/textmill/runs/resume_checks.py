"""Whether a command means a run that exists, and what may change when it goes on."""

import logging
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from textmill.checkpoint.layout import folder_name, has_checkpoints, text_folder
from textmill.checkpoint.run_seal import RunSeal
from textmill.config.planning.key import key_settings, plan_files
from textmill.config.planning.plan import Plan
from textmill.config.values.raw_values import untyped
from textmill.config.values.scalars import parse_duration
from textmill.config.values.yaml_files import dump_yaml, read_yaml, yaml_nodes
from textmill.errors import CheckpointError, UserError, worded
from textmill.inference.load import edited_files
from textmill.recipes.planning import Planned
from textmill.run_folder.folder import RunFolder, command_line, versions
from textmill.run_folder.record import flat
from textmill.runtime.files import sha256
from textmill.text.processors.text_processor import TextProcessor
from textmill.training.loop import Trainer
from textmill.training.precision import Arithmetic, settled

LOG = logging.getLogger("textmill")


def allowed_changes(
    now: Planned, before: Planned, *, moved: Collection[str] = ()
) -> dict[str, Any]:
    """What the command changes in the run that it goes on with, planned with its words and without.

    Settings among ``moved`` name a place, which may be another as long as the content is the same.

    Returns:
        The changed settings by their dotted names, with the values before and now.

    Raises:
        UserError: Some of them decide what the run computes, or code of the recipe's own is not
            what it was; all of these are named.
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


LENGTH = ("max_steps", "max_epochs", "max_time")
"""The settings of ``trainer`` that say how long a run is."""


def same_again() -> str:
    """How what was asked for is trained anew."""
    return worded("the same command with --again", "the same call with again=True")


def length_of(plan: Plan) -> dict[str, Any]:
    """Those of :data:`LENGTH`, as a run is planned."""
    trainer = plan.settings.get("trainer", {})
    return {name: trainer[name] for name in LENGTH if name in trainer}


def length_changes(folder: RunFolder, plan: Plan) -> dict[str, Any]:
    """The settings of length that are others than a run's, as :func:`allowed_changes` has them."""
    lengths = (folder.info.get("length", {}), length_of(plan))
    before, now = ({f"trainer.{name}": value for name, value in of.items()} for of in lengths)
    return _changed(before, now)


def is_finished(folder: RunFolder, planned: Planned, *, extend: bool = False) -> bool:
    """Whether the run came to its end; a run of another length is named, not repeated.

    Raises:
        UserError: The run exists with another length, and is neither named nor to ``extend``; or it
            is finished, and longer.
    """
    info = folder.info
    if not info or not has_checkpoints(folder.path):
        return False
    before, now = info.get("length", {}), length_of(planned.plan)
    if before != now:
        changes = length_changes(folder, planned.plan)
        shorter = folder.finished and all(
            of["before"] and of["now"] and _size(of["now"]) < _size(of["before"])
            for of in changes.values()
        )
        if shorter and (extend or planned.run is not None):
            had = " ".join(f"{name}={of['before']}" for name, of in changes.items())
            raise UserError(
                f"{folder.path} is longer already ({had}, finished). Ask for that length, or for a "
                f"greater one. {named_again(folder, planned, 'Its result: ', [])}"
            )
        if not extend and planned.run is None:
            raise _other_length(folder, planned, changes, shorter=shorter)
    if folder.finished and before != now:
        _refuse_ended(folder, before, now)
    return folder.finished and before == now


def _refuse_ended(folder: RunFolder, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuses a greater length that a run has no use for, since another limit has ended it."""
    for name, count in (("max_epochs", "epochs"), ("max_steps", "steps")):
        limit, had = now.get(name), folder.info.get("result", {}).get(count, 0)
        if limit is not None and limit == before.get(name) and had >= limit:
            raise UserError(
                f"trainer.{name}={limit} has ended {folder.path}, and would end it again before "
                f"anything is trained. Set that, too: a greater one, or trainer.{name}=null."
            )


def _other_length(
    folder: RunFolder, planned: Planned, changes: Mapping[str, Any], *, shorter: bool
) -> UserError:
    """The error that names the run that exists, and how to go on with it."""
    was, words = (
        [f"{name}={'null' if of[when] is None else of[when]}" for name, of in changes.items()]
        for when in ("before", "now")
    )
    state = "finished" if folder.finished else "not finished"
    way = "It is longer already. Its result: " if shorter else "To go on with it: "
    return UserError(
        f"this run exists with another length: {folder.path} ({' '.join(was)}, {state}).\n"
        f"  {named_again(folder, planned, way, [] if shorter else words)}\n"
        f"  To train anew: {same_again()}"
    )


def named_again(folder: RunFolder, planned: Planned, way: str, words: list[str]) -> str:
    """What is typed, or called, to go on with a run by its folder."""
    own = planned.script is not None
    trust = ["--allow-code"] if own else [f"--include {name}" for name in planned.include]
    command = " ".join(["textmill train", str(folder.path), *words, *trust])
    arguments = [repr(str(folder.path)), *([repr(words)] if words else [])]
    call = f"textmill.train({', '.join([*arguments, *(['allow_code=True'] if own else [])])})"
    return f"{way}{worded(command, call)}"


def _size(limit: int | str) -> float:
    """A limit of a length, comparable: ``15m`` is longer than ``5m``."""
    return parse_duration(limit).total_seconds() if isinstance(limit, str) else limit


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
    # The path of a tokenizer's file is where, not what: the text processor is compared byte by
    # byte.
    both = [n for n in before if n in now and not n.startswith("tokenizer.")]
    lawful = [(str(change["before"]), str(change["now"])) for change in changes.values()]
    changed = [
        f"{n} was {before[n]}, is {now[n]}"
        for n in both
        if before[n] != now[n] and (str(before[n]), str(now[n])) not in lawful
    ]
    if changed:
        raise UserError(f"{folder.path} was built otherwise: {'; '.join(changed)}. {_anew()}")


def settle_precision(trainer: Any, folder: RunFolder) -> dict[str, str]:
    """Goes on with what trainer.precision=auto was at the run's first start; says what it is."""
    if not isinstance(trainer, Trainer):
        return {}
    asked, device = trainer.config.precision, str(trainer.task.device)
    before = folder.info.get("precision")
    precision = settled(asked, device, recorded=before)
    trainer.updates.arithmetic = Arithmetic(precision, device)
    if asked == "auto" and (precision, device) != ("fp32", "cpu"):
        since = "" if before is None else ", as when this run began"
        LOG.info("trainer.precision=auto: %s on %s%s.", precision, device, since)
    if (precision, device) == ("fp16", "cpu"):
        LOG.warning("trainer.precision=fp16: most processors compute it more slowly than fp32.")
    return {"precision": precision}


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
            f"{', '.join(changed)} "
            f"of {folder_name(newest.step)} differ from what the tokenizer is now; its training "
            f"text or its file changed. {_anew()}"
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

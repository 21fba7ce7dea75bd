"""Which run a command means, and what may change when it goes on.

Two rules. A run of the same key and the same data goes on to the length that is asked for, unless
it is longer already. Anything else is another run: it gets a folder of its own, and the difference
is printed; if a person named the folder, it is refused.
"""

import logging
import math
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import (
    CHECKPOINTS,
    folder_name,
    has_checkpoints,
    module_file,
    text_folder,
)
from textmill.checkpoint.parts import plain_parts
from textmill.config.planning.key import key_settings, plan_files, run_key, settings_key
from textmill.config.planning.plan import Plan
from textmill.config.values.typed_values import parse_duration
from textmill.data.data_files import first_file
from textmill.errors import CheckpointError, TextmillError, UserError, worded
from textmill.inference.load import edited_files
from textmill.recipes.planning import Planned, exports_of
from textmill.run_folder.folder import RunFolder, command_line, versions
from textmill.run_folder.record import flat, mapping, numbers
from textmill.runs.fingerprints import (
    changed_data,
    changes_sentence,
    data_of,
    moved_settings,
    named_content,
    whole_setting,
)
from textmill.runtime.files import sha256
from textmill.runtime.jsonl_log import read_lines
from textmill.text.processors.text_processor import TextProcessor

LOG = logging.getLogger("textmill")

LENGTH = {"max_steps": "steps", "max_epochs": "epochs", "max_time": "seconds"}
"""The settings of ``trainer`` that limit how long a run is, each with its unit."""


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    folder: Path
    """The run folder; ``textmill.load`` takes it."""
    result: dict[str, Any] = field(default_factory=dict)
    """Steps, the best value and its step, and the values on ``test_data``."""

    def _repr_html_(self) -> str:
        """The report, which a notebook shows in a frame of its own."""
        from textmill.runs.report.reporter import framed_report

        return framed_report(self.folder)

    def model_card(self, *, license: str | None = None) -> str:
        """The run's model card: Markdown that ``textmill model-card`` writes as ``README.md``.

        ``license`` is an identifier, such as ``apache-2.0``.
        """
        from textmill.runs.report.model_card import model_card

        return model_card(self.folder, license=license)

    @property
    def history(self) -> list[dict[str, Any]]:
        """All that was measured, in order: ``pandas.DataFrame(run.history)`` makes a table of it.

        Each entry has ``split`` (train, valid, test), ``step``, ``epoch``, ``seconds`` since the
        start, and the values by name. Empty if the reporter ``jsonl`` was left out.
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
    folder = RunFolder.place(planned.name, key, run_dir, again=again)
    if run_dir is not None and folder.has_other(key):
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
    """The first run, in this folder or a numbered one beside it, that the command can go on with.

    Beside a folder that a person named there is none. ``read`` reads the data and returns its
    fingerprints, and is called only if a run is there.
    """
    difference, now = "", None
    for run in [folder] if named else folder.numbered():
        if not (run.info and has_checkpoints(run.path)):
            if difference:
                LOG.warning("%s With this it is another run: %s", difference, run.path)
            return run
        for name, content in named_content(planned.plan).items():
            setting = whole_setting(name)
            if (
                setting not in changes
                and data_of(setting)
                and not first_file(content.path).exists()
            ):
                LOG.warning(
                    "%s (%s) is gone, so it is not compared with what %s has read. If it was "
                    "moved, this goes on: textmill train %s %s=ITS_NEW_PLACE",
                    *(setting, content.path, run.path, run.path, setting),
                )
                return run
        difference = _longer(run, planned.plan)
        if named and not run.finished and not difference:
            return run  # its data is compared when it is read
        if not difference:
            now = read() if now is None else now
            if changed := changed_data(run, now):
                difference = f"{changes_sentence(changed, run, now)}."
        if not difference:
            return run
    raise UserError(
        f"{difference} With this it is another run: {same_again()} trains it beside the old one. "
        f"{'The result of the old one' if folder.finished else 'To go on with the old one'}: "
        + worded(f"textmill train {folder.path}", f"textmill.train({str(folder.path)!r})")
    )


def _longer(run: RunFolder, plan: Plan) -> str:
    """Says that a run has passed a limit that was changed; empty if it has not."""
    changes = length_changes(run, plan)
    newest = run.newest if changes else None
    if newest is None:
        return ""
    parts: Mapping[str, Any] = {}
    with suppress(CheckpointError):  # a damaged one still tells its step
        parts = plain_parts(run.path / CHECKPOINTS / folder_name(newest.step), newest)
    place = mapping(mapping(parts, "clock"), "now")
    epochs = place.get("epochs", run.result.get("epochs", 0))
    epochs += bool(mapping(parts, "data").get("taken"))  # one that has begun counts
    reached = {"steps": newest.step, "epochs": epochs, "seconds": place.get("seconds", 0)}
    if newest.step < run.result.get("steps", 0):  # its last checkpoint was pruned, or is damaged
        begun = run.result.get("epochs", epochs) + 1  # whether the next had begun is not known
        reached |= {"steps": run.result["steps"], "epochs": begun}
        spent = changes.get("trainer.max_time", {}).get("before")
        reached["seconds"] = _in_units(spent) if spent is not None else math.inf
    for name, unit in LENGTH.items():
        limit = changes.get(f"trainer.{name}", {}).get("now")
        if limit is not None and reached[unit] > _in_units(limit):
            has = f"{reached[unit]:,.0f} {unit}"
            return f"{run.path} is longer already: it has {has} (trainer.{name}={limit})."
    return ""


def _in_units(limit: Any) -> float:
    return parse_duration(limit).total_seconds() if isinstance(limit, str) else float(limit)


def is_finished(folder: RunFolder, planned: Planned) -> bool:
    """Whether the run came to its end, and that is the end that is asked for."""
    ended = bool(folder.info) and has_checkpoints(folder.path) and folder.finished
    return ended and not length_changes(folder, planned.plan)


def ended_run(folder: RunFolder, planned: Planned | None = None) -> Run:
    """The result of a finished run; refuses what is ``planned`` but would not be written now."""
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


def warn_of_new_code(folder: RunFolder, planned: Planned) -> None:
    """Warns, before a new run, if only code tells it from an older one: the newest is named."""
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
    """Says which code changed since a run of the same settings; empty for another run."""
    with suppress(TextmillError):  # a damaged record is reported where its run is used
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
    """What a person types to train the same anew."""
    return worded("the same command with --again", "the same call with again=True")


def _named_again(folder: RunFolder, planned: Planned, way: str) -> str:
    own = planned.script is not None
    trust = ["--allow-code"] if own else [f"--include {name}" for name in planned.include]
    command = " ".join(["textmill train", str(folder.path), *trust])
    call = f"textmill.train({str(folder.path)!r}{', allow_code=True' if own else ''})"
    return f"{way}{worded(command, call)}"


# -- what may change


def allowed_changes(now: Planned, before: Planned) -> dict[str, Any]:
    """The settings that a command changes in the run that it goes on with, which may change.

    By their dotted names, with the values ``before`` and ``now``: the run is planned without the
    words of the command, and with them.
    """
    assert now.run is not None
    if edited := edited_files(now.run, plan_files(now.plan)):
        raise UserError(
            f"{now.run} cannot go on: {edited} changed since the run was trained. Restore it; "
            "or train anew with it: name the recipe itself."
        )
    other = {
        **_changed(before.plan.swaps, now.plan.swaps),
        **_changed(flat(key_settings(before.plan)), flat(key_settings(now.plan))),
    }
    moved = moved_settings(RunFolder(now.run), now.plan) if other else ()
    if blocked := [name for name in other if name not in moved]:
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
    """The settings of a plan that limit how long the run is."""
    trainer = plan.settings.get("trainer", {})
    return {name: trainer[name] for name in LENGTH if name in trainer}


def length_changes(folder: RunFolder, plan: Plan) -> dict[str, Any]:
    """The limits in which a plan differs from a run, as :func:`allowed_changes` returns them."""
    lengths = (folder.info.get("length", {}), length_of(plan))
    before, now = ({f"trainer.{name}": value for name, value in of.items()} for of in lengths)
    return _changed(before, now)


def record_changes(folder: RunFolder, changes: Mapping[str, Any]) -> None:
    """Prints what changed, and keeps it in ``run.json`` with the step from which it holds."""
    if not changes:
        return
    newest = folder.newest
    step = None if newest is None else newest.step
    for name, values in changes.items():
        LOG.info("%s: %s -> %s", name, values["before"], values["now"])
    entry = {"step": step, "command": command_line(), "settings": dict(changes)}
    folder.write_info(changes=[*folder.info.get("changes", []), entry])


def compare_data(folder: RunFolder, now: Mapping[str, str], plan: Plan) -> None:
    """Refuses to go on with other data than the run began with, or another teacher.

    Other files, such as word vectors, are in the checkpoint by then, or compared with what is.
    """
    asked = {name for name, content in named_content(plan).items() if content.is_asked}
    if changed := [n for n in changed_data(folder, now) if data_of(n) or n in asked]:
        again = worded("--again", "again=True")
        raise UserError(
            f"{changes_sentence(changed, folder, now)}. Restore them, or train anew with {again}."
        )


def compare_text(folder: RunFolder, text: TextProcessor) -> None:
    """Refuses to go on with another text processor than the one the weights were trained with."""
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
    changed = sorted(_changed(saved, now))
    if changed:
        raise UserError(
            f"the text processor is not the one {folder.path} was trained with: "
            f"{', '.join(changed)} of {folder_name(newest.step)} differ from what the tokenizer is "
            f"now; its training text or its file changed. {_anew()}"
        )


def _anew() -> str:
    return f"Restore what it was, or train anew: {same_again()}."


def warn_of_versions(folder: RunFolder) -> None:
    """Warns if a run goes on under other versions: bitwise equality is promised for the same."""
    starts = folder.info.get("starts") or []
    before = starts[-1].get("versions", {}) if starts and isinstance(starts[-1], dict) else {}
    now = versions()
    changed = [f"{n} {before[n]} -> {now[n]}" for n in now if n in before and before[n] != now[n]]
    if changed:
        LOG.warning(
            "This run goes on under other versions (%s): its result may differ in the last bits.",
            ", ".join(changed),
        )

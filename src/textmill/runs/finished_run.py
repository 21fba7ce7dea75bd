"""A run that has ended: its folder, its result, and how it went."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import module_file
from textmill.errors import UserError
from textmill.recipes.planning import Planned, exports_of
from textmill.run_folder.diff import mapping
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import numbers
from textmill.runs.resume_checks import same_again
from textmill.runtime.jsonl_log import read_lines

LOG = logging.getLogger("textmill")


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


def ended_run(folder: RunFolder, planned: Planned | None = None) -> Run:
    """A run that is finished, which is said; of one that is ``planned`` anew all must be there.

    Raises:
        UserError: Parts or exports are asked for that it did not write at its end.
    """
    settings = planned.plan.settings.get("trainer", {}) if planned else {}
    names = settings.get("save_modules") or ()
    missing = [n for n in names if not module_file(folder.path, n).is_file()]
    if missing:
        raise UserError(
            f"{folder.path} is finished, so trainer.save_modules={','.join(missing)} would save "
            "nothing: parts are saved when a run ends. Another run takes them from the whole one "
            "by trainer.initialize and trainer.initialize_from; or train anew: "
            f"{same_again()}."
        )
    for form in exports_of(planned.plan) if planned else ():
        if not (folder.path / "export" / form.folder).is_dir():
            raise UserError(
                f"{folder.path} is finished, so trainer.export={form.folder} would export nothing. "
                f"Export it now: textmill export {folder.path} {form.words}"
            )
    LOG.info("This run is finished: %s", folder.path)
    return Run(folder.path, folder.result)

"""A run that has ended: its folder, its result, and how it went."""

import html
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import module_file
from textmill.errors import UserError
from textmill.metrics.reporters.html_page import Markup, page, section
from textmill.recipes.planning import Planned, exports_of
from textmill.run_folder.diff import mapping
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import numbers
from textmill.runs.report import curves
from textmill.runs.resume_checks import same_again
from textmill.runtime.files import write_atomic
from textmill.runtime.jsonl_log import read_lines

__all__ = ["Plot", "Run", "ended_run"]

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

    def plot(self, *names: str) -> "Plot":
        """Drawings of values, by default all: a notebook shows them, ``save`` writes a page.

        Raises:
            UserError: Nothing of these names was measured.
        """
        lines = list(read_lines(self.folder / "metrics.jsonl"))
        drawn = curves(lines, names)
        if not drawn.html:
            known = {name for line in lines for name in numbers(line)}
            listed = ", ".join(sorted(name for name in known if "/" not in name))
            raise UserError(
                f"{self.folder} has no values {', '.join(names)} to draw; its metrics.jsonl has: "
                f"{listed or 'none'}."
            )
        return Plot(str(self.folder), drawn)


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


@dataclass(frozen=True)
class Plot:
    """Drawings of a run's values."""

    title: str
    """Above them."""
    drawings: Markup
    """One for each value."""

    @property
    def html(self) -> str:
        """A whole page, without scripts."""
        return page(self.title, "", section("Curves", self.drawings))

    def save(self, path: str | Path) -> Path:
        """Writes the page to a file, which a browser shows."""
        write_atomic(Path(path), self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        """What a notebook shows: a page of its own, so that no style reaches the notebook's."""
        inner = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{inner}" width="100%" height="600" frameborder="0"></iframe>'

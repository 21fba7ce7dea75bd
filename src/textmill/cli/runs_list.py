"""``textmill runs list``: runs with their state, result, and the settings that tell them apart."""

import argparse
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textmill.errors import TextmillError, UserError

if TYPE_CHECKING:
    from textmill.launch.slurm import QueuedJob

LOG = logging.getLogger("textmill")

WRITTEN = ("run.json", "metrics.jsonl")
"""What a run at work writes again and again."""
HEADER = ("run", "recipe", "state", "steps", "last written", "MB", "best", "settings")
SORTED = ("best", "name", "written")
QUEUE_SECONDS = 5
"""How long is waited for Slurm's answer."""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the action."""
    parser.description = (
        "Lists the runs in a folder, those of a recipe together, the best first, with "
        "the settings in which they differ. Without a folder: those in runs, and those that "
        "--run-dir put elsewhere from this working directory."
    )
    parser.add_argument("roots", nargs="*", metavar="FOLDER", help="where runs are (default: runs)")
    parser.add_argument(
        "--sort", choices=SORTED, default="best", help="what comes first (default: best)"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the table."""
    from textmill.metrics.tables import text_table

    roots = getattr(args, "roots", [])
    jobs = _waiting(roots)
    runs = [Listed.read(path) for path in _found(roots, empty=not jobs)]
    runs = _with_jobs(runs, jobs)
    if runs:
        runs.sort(key=_ORDERS[getattr(args, "sort", "best")])
        differing = _differing(runs)
        print(text_table(HEADER, [one.cells(differing.get(one.recipe, ())) for one in runs]))
    return 0


def _waiting(roots: Sequence[str]) -> dict[Path, "QueuedJob"]:
    """The jobs of Slurm that train a run, or are to, by its folder.

    Slurm is asked only if jobs from this directory are on record; the list does not wait long.
    """
    from textmill.launch.slurm import queued_jobs, recorded_jobs

    if not recorded_jobs():
        return {}
    try:
        jobs = queued_jobs(within=QUEUE_SECONDS)
    except UserError as error:
        LOG.warning("%s", error)
        return {}
    if not jobs:
        return {}
    from textmill.launch.watch import EVALUATIONS

    places = {Path(job.name).absolute(): job for job in jobs}
    under = [Path(root).absolute() for root in roots] or [Path("/")]
    return {
        place: job
        for place, job in places.items()
        if place.parent.name != EVALUATIONS and any(map(place.is_relative_to, under))
    }


def _with_jobs(runs: Sequence["Listed"], jobs: Mapping[Path, "QueuedJob"]) -> list["Listed"]:
    """The runs with those that wait, or whose job has not begun to write."""
    listed = {run.path.absolute(): run for run in runs}
    for place, job in jobs.items():
        known = listed.get(place)
        if known is None or job.state == "PENDING":
            state = "waits" if job.state == "PENDING" else "starts"
            said = replace(known or Listed(Path(job.name)), state=f"{state}: job {job.number}")
            listed[place] = said if said.best else replace(said, best=f"log: {job.log}")
    return list(listed.values())


def _found(roots: Sequence[str], *, empty: bool) -> list[Path]:
    from textmill.run_folder.folder import ROOT, remembered_places, runs_in

    elsewhere = {} if roots else remembered_places()
    found: dict[Path, Path] = {}
    for root in [Path(root) for root in roots] or [ROOT]:
        here = runs_in(root)
        found |= {path.absolute(): path for path in here if path.absolute() not in found}
        if empty and not (here or elsewhere):
            print(f"No runs in {root}.")
    return list({**found, **elsewhere}.values())


@dataclass(frozen=True)
class Listed:
    """A run in the list; a folder that another program wrote, or that is damaged, is one too."""

    path: Path
    recipe: str = "-"
    state: str = "unreadable"
    steps: str = "-"
    best: str = ""
    """The selected value as it is shown; of a folder that cannot be read, why."""
    loss: float = math.inf
    """The selected value where lower is better, else negated; infinite where it is not known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """By their dotted names."""

    @classmethod
    def read(cls, path: Path) -> "Listed":
        """Reads a run folder, whatever is wrong with it."""
        from textmill.metrics.tables import format_value
        from textmill.run_folder.folder import RunFolder
        from textmill.run_folder.record import flat, saved_settings, state_of

        try:
            info = RunFolder(path).info
            result = info.get("result") or {}
            chosen = (result.get("best") or {}).items()
            best = {name: float(value) for name, value in chosen if name != "step"}
            settings: Mapping[str, Any] = {}
            with suppress(TextmillError, OSError):
                settings = flat(saved_settings(path))
            return cls(
                path,
                recipe=str(info.get("recipe", "-")),
                state=state_of(info),
                steps=_steps(path, result),
                best=", ".join(f"{name} {format_value(name, v)}" for name, v in best.items()),
                loss=_as_loss(best, info.get("selected_by")),
                settings=settings,
            )
        except (TextmillError, ValueError, TypeError, AttributeError, OSError) as error:
            return cls(path, best=str(error))

    def cells(self, differing: Sequence[str]) -> list[str]:
        """The run's line, with those of its settings that differ among runs of its recipe."""
        from textmill.config.help import written
        from textmill.runtime.files import size_of

        set_here = {n: self.settings[n] for n in differing if self.settings.get(n) is not None}
        shown = [f"{name}={written(value)}" for name, value in set_here.items()]
        said = [str(self.path), self.recipe, self.state, self.steps]
        return [
            *said,
            _time(self.written),
            f"{size_of(self.path) / 1e6:,.1f}",
            self.best,
            " ".join(shown),
        ]

    @property
    def written(self) -> float:
        """When it wrote to last, in seconds since 1970; 0 where it cannot be told."""
        last = 0.0
        for name in WRITTEN:
            with suppress(OSError):  # not there, or gone meanwhile
                last = max(last, (self.path / name).lstat().st_mtime)
        return last


_ORDERS: dict[str, Any] = {
    "best": lambda run: (run.recipe == "-", run.recipe, run.loss, str(run.path)),
    "name": lambda run: str(run.path),
    "written": lambda run: (-run.written, str(run.path)),
}


def _differing(runs: Sequence[Listed]) -> dict[str, list[str]]:
    """The settings in which the runs of a recipe differ, by the recipe."""
    by_recipe: dict[str, list[Mapping[str, Any]]] = {}
    for one in runs:
        if one.settings:
            by_recipe.setdefault(one.recipe, []).append(one.settings)
    found: dict[str, list[str]] = {}
    for recipe, settings in by_recipe.items():
        parts = [{name.partition(".")[0] for name in of_one} for of_one in settings]
        for name in dict.fromkeys(name for of_one in settings for name in of_one):
            # Of what some runs have not, such as test_data, its place says enough.
            everywhere = all(name.partition(".")[0] in known for known in parts)
            equal = all(of_one.get(name) == settings[0].get(name) for of_one in settings)
            if not equal and (everywhere or name.endswith(".path")):
                found.setdefault(recipe, []).append(name)
    return found


def _as_loss(best: Mapping[str, float], selected: object) -> float:
    """The selected value, so that lower is better; infinite where a run does not say which is."""
    better = selected.get("better") if isinstance(selected, Mapping) else None
    value = next(iter(best.values()), math.nan)
    found = {"higher": -value, "lower": value}.get(str(better), math.nan)
    return math.inf if math.isnan(found) else found


def _steps(path: Path, result: Mapping[str, Any]) -> str:
    """Steps that a finished run took; of another, those that its last checkpoint has."""
    from textmill.checkpoint.saved import SavedCheckpoints

    if "steps" in result:
        return f"{result['steps']:,}"
    last = SavedCheckpoints.of(path).pointer("last")
    return "-" if last is None else f"{last.step:,}"


def _time(seconds: float) -> str:
    """The minute of a time; a dash if nothing was written."""
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}" if seconds else "-"

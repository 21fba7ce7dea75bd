"""``textmill runs``: list, verify, make plain, compare, report on and prune run folders."""

import argparse
import logging
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textmill.errors import CheckpointError, TextmillError, UserError
from textmill.runtime.logging import printable

if TYPE_CHECKING:
    from textmill.launch.slurm import QueuedJob

LOG = logging.getLogger("textmill")

TITLES = {
    "setting": "Settings",
    "code": "Code",
    "version": "Versions",
    "git": "Repository",
    "data": "Data",
    "result": "Results",
}

WRITTEN = ("run.json", "metrics.jsonl")
"""Files that a run writes to while it trains."""
HEADER = ("run", "recipe", "state", "steps", "last written", "MB", "best", "settings")
SORTED = ("best", "name", "written")
QUEUE_SECONDS = 5
"""Seconds that Slurm has for its answer."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(perform=_list)
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION")
    for name, (line, add_arguments, perform) in ACTIONS.items():
        action = actions.add_parser(name, help=line)
        add_arguments(action)
        action.set_defaults(perform=perform)


def run(args: argparse.Namespace) -> int:
    code: int = args.perform(args)
    return code


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists the runs in a folder, those of a recipe together, the best first, with "
        "the settings in which they differ. Without a folder: those in runs, and those that "
        "--run-dir put elsewhere from this working directory."
    )
    parser.add_argument("roots", nargs="*", metavar="FOLDER", help="where runs are (default: runs)")
    parser.add_argument(
        "--sort", choices=SORTED, default="best", help="what comes first (default: best)"
    )


def _list(args: argparse.Namespace) -> int:
    from textmill.metrics.tables import text_table

    roots = getattr(args, "roots", [])
    jobs = _waiting(roots)
    runs = _with_jobs([Listed.read(path) for path in _found(roots, empty=not jobs)], jobs)
    if runs:
        runs.sort(key=_ORDERS[getattr(args, "sort", "best")])
        differing = _differing(runs)
        print(text_table(HEADER, [one.cells(differing.get(one.recipe, ())) for one in runs]))
    return 0


def _waiting(roots: Sequence[str]) -> dict[Path, "QueuedJob"]:
    """Slurm's jobs that train runs or wait to, by the folders of the runs.

    Slurm is asked only if jobs from this directory are on record.
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
    from textmill.launch.worth import EVALUATIONS

    places = {Path(job.name).absolute(): job for job in jobs}
    under = [Path(root).absolute() for root in roots] or [Path("/")]
    return {
        place: job
        for place, job in places.items()
        if place.parent.name != EVALUATIONS and any(map(place.is_relative_to, under))
    }


def _with_jobs(runs: Sequence["Listed"], jobs: Mapping[Path, "QueuedJob"]) -> list["Listed"]:
    """The runs, and those that wait or whose job has not written anything yet."""
    listed = {run.path.absolute(): run for run in runs}
    for place, job in jobs.items():
        known = listed.get(place)
        if known is None or job.state == "PENDING":
            state = "waits" if job.state == "PENDING" else "starts"
            one = replace(known or Listed(Path(job.name)), state=f"{state}: job {job.number}")
            listed[place] = one if one.best else replace(one, best=f"log: {job.log}")
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
    """A run in the list, also one that cannot be read."""

    path: Path
    recipe: str = "-"
    state: str = "unreadable"
    steps: str = "-"
    best: str = ""
    """The selected value as it is shown; why a folder cannot be read."""
    loss: float = math.inf
    """The selected value, negated if higher is better; infinite if it is not known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """By their dotted names."""

    @classmethod
    def read(cls, path: Path) -> "Listed":
        from textmill.metrics.tables import format_value
        from textmill.run_folder.folder import RunFolder
        from textmill.run_folder.record import (
            flat,
            mapping,
            numbers,
            saved_settings,
            selected_by,
            state_of,
        )

        try:
            info = RunFolder(path).info
            result = mapping(info, "result")
            best = numbers(mapping(result, "best"), ("step",))
            metric, sign = selected_by(info)
            loss = -sign * best.get(metric, math.nan)
            settings: Mapping[str, Any] = {}
            with suppress(TextmillError, OSError):
                settings = flat(saved_settings(path))
            return cls(
                path,
                recipe=str(info.get("recipe", "-")),
                state=state_of(info),
                steps=_steps(path, result),
                best=", ".join(f"{name} {format_value(name, v)}" for name, v in best.items()),
                loss=math.inf if math.isnan(loss) else loss,
                settings=settings,
            )
        except (TextmillError, ValueError, TypeError, AttributeError, OSError) as error:
            return cls(path, best=str(error))

    def cells(self, differing: Sequence[str]) -> list[str]:
        """The cells of its line, with the settings that differ among the runs of its recipe."""
        from textmill.config.values.raw_values import written
        from textmill.runtime.files import size_of

        set_here = {n: self.settings[n] for n in differing if self.settings.get(n) is not None}
        shown = [f"{name}={written(value)}" for name, value in set_here.items()]
        return [
            str(self.path),
            self.recipe,
            self.state,
            self.steps,
            f"{datetime.fromtimestamp(self.written):%Y-%m-%d %H:%M}" if self.written else "-",
            f"{size_of(self.path) / 1e6:,.1f}",
            self.best,
            " ".join(shown),
        ]

    @property
    def written(self) -> float:
        """When it last wrote, in seconds since 1970; 0 if that is not known."""
        last = 0.0
        for name in WRITTEN:
            with suppress(OSError):  # it may be missing
                last = max(last, (self.path / name).lstat().st_mtime)
        return last


_ORDERS: dict[str, Any] = {
    "best": lambda run: (run.recipe == "-", run.recipe, run.loss, str(run.path)),
    "name": lambda run: str(run.path),
    "written": lambda run: (-run.written, str(run.path)),
}


def _differing(runs: Sequence[Listed]) -> dict[str, list[str]]:
    by_recipe: dict[str, list[Mapping[str, Any]]] = {}
    for one in runs:
        if one.settings:
            by_recipe.setdefault(one.recipe, []).append(one.settings)
    found: dict[str, list[str]] = {}
    for recipe, settings in by_recipe.items():
        parts = [{name.partition(".")[0] for name in of_one} for of_one in settings]
        for name in dict.fromkeys(name for of_one in settings for name in of_one):
            # If only some runs have an ingredient, such as test_data, its path is enough.
            everywhere = all(name.partition(".")[0] in known for known in parts)
            equal = all(of_one.get(name) == settings[0].get(name) for of_one in settings)
            if not equal and (everywhere or name.endswith(".path")):
                found.setdefault(recipe, []).append(name)
    return found


def _steps(path: Path, result: Mapping[str, Any]) -> str:
    from textmill.checkpoint.saved import SavedCheckpoints

    if "steps" in result:
        return f"{result['steps']:,}"
    last = SavedCheckpoints.of(path).pointer("last")
    return "-" if last is None else f"{last.step:,}"


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compares every byte of a run's checkpoints, its config.yaml, the recipe's own "
        "code, best.json and last.json with what the run wrote."
    )
    parser.add_argument("run", help="the folder of a run")


def _verify(args: argparse.Namespace) -> int:
    """Prints a line for each checkpoint, and for each other problem."""
    from textmill.checkpoint.calibration import Calibration
    from textmill.checkpoint.saved import SavedCheckpoints
    from textmill.run_folder.folder import refuse_no_run
    from textmill.runs.sharing.pushed import left_out_of, unexpected

    folder, wrong = Path(args.run), list[str]()
    refuse_no_run(folder)
    lacking = left_out_of(folder)
    saved = SavedCheckpoints.of(folder)
    try:
        changed = saved.seal.changed_code() if saved.seal else []
        wrong += [f"{name}: it is not as the run wrote it" for name in changed]
    except CheckpointError as error:
        saved.seal = None  # each checkpoint is still compared with its own manifest
        wrong.append(str(error))
    paths = saved.paths()
    bad = 0
    for path in paths:
        problems = unexpected(saved.verify(path), path)
        bad += bool(problems)
        print(printable(f"{path.name}: {'ok' if not problems else '; '.join(problems)}"))
    wrong += _pointer_problems(saved, folder, any_saved=bool(paths) and not lacking)
    if lacking:
        print(f"{len(lacking)} files were not pushed: the state of the training")
    try:
        Calibration.read(saved.folder)
    except CheckpointError as error:
        wrong.append(str(error))
    for problem in wrong:
        print(printable(problem))
    failed = bool(bad or wrong)
    plural = "" if len(paths) == 1 else "s"
    counted = f"{len(paths)} checkpoint{plural}, {bad} damaged" if paths else "no checkpoint"
    print(counted, file=sys.stderr if failed else sys.stdout)
    return 1 if failed else 0


def _pointer_problems(saved: Any, folder: Path, *, any_saved: bool) -> list[str]:
    """What is wrong with ``last.json`` and ``best.json``, a line each.

    ``last.json`` is there once anything was saved; ``best.json`` once something was selected.
    """
    from textmill.checkpoint.layout import BEST, LAST
    from textmill.run_folder.folder import RunFolder, is_of_lightning

    try:
        run = RunFolder(folder)
        of_textmill = not is_of_lightning(folder)  # there a ModelCheckpoint knows the best
        best = run.result["best"]["step"] if run.finished and of_textmill else None
    except (TextmillError, ValueError, TypeError, LookupError, AttributeError):
        best = None  # run.json is damaged
    found = []
    for which, name, wanted in (("last", LAST, any_saved), ("best", BEST, best is not None)):
        try:
            place, pointer = saved.pointed(which)
            if pointer is None:
                found += [f"{name}: missing"] if wanted else []
                continue
            if not pointer.fits(place):
                found.append(f"{name}: {place.name} is not the checkpoint that it points to")
            if which == "best" and best not in (None, pointer.step):
                found.append(f"{name}: it points to step {pointer.step}, but run.json has {best}")
        except (TextmillError, OSError) as error:
            found.append(str(error) if name in str(error) else f"{name}: {error}")
    return found


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compares settings, code, versions, data and results of two runs, side by "
        "side. What is equal is left out, but for results."
    )
    parser.add_argument("first", help="the folder of a run")
    parser.add_argument("second", help="the folder of another")
    parser.add_argument(
        "--html", metavar="FILE", help="also write a page: values, curves, rows that changed"
    )


def _compare(args: argparse.Namespace) -> int:
    from textmill.metrics.tables import text_table
    from textmill.run_folder.diff import compare
    from textmill.run_folder.record import Record, state_of

    first, second = (Record.read(Path(name)) for name in (args.first, args.second))
    for name, path, record in (("A", args.first, first), ("B", args.second, second)):
        print(printable(f"{name}  {path} ({state_of(record.info)})"))
    found = compare(first, second)
    for kind, title in TITLES.items():
        lines = [line for line in found if line.kind == kind]
        if not lines:
            print(f"\n{title}: {'none' if kind == 'result' else 'the same'}")
            continue
        rows = [[line.name, line.first, line.second, line.change] for line in lines]
        header = [title.lower(), "A", "B", "B - A" if kind == "result" else ""]
        print(f"\n{text_table(header, rows)}")
    if args.html:
        from textmill.runs.report.compare import write_comparison

        page = write_comparison(Path(args.first), Path(args.second), Path(args.html))
        print(f"\n{printable(str(page))}")
    return 0


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes the report of a run anew: how good its answers are, which are wrong, curves, "
        "settings, data, and what tells it from another run. One file, without network."
    )
    parser.add_argument("run", help="the folder of a run")
    parser.add_argument(
        "--against", metavar="RUN", help="the run to compare with (default: the last one beside it)"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="the file to write (default: report.html in the run)"
    )


def _report(args: argparse.Namespace) -> int:
    from textmill.runs.report.reporter import write_report

    path = write_report(
        Path(args.run),
        against=Path(args.against) if args.against else None,
        target=Path(args.output) if args.output else None,
    )
    print(printable(str(path)))
    return 0


def _add_figures(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes the figures of a run's report as pictures, a file for each, drawn by matplotlib."
    )
    parser.add_argument("run", help="the folder of a run")
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--format", choices=("png", "svg"), default="png", help="default: png")


def _figures(args: argparse.Namespace) -> int:
    from textmill.runs.report.figures import write_figures

    for path in write_figures(Path(args.run), Path(args.output), args.format):
        print(printable(str(path)))
    return 0


def _add_prune(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Deletes checkpoints of finished runs: all but the best and the newest. It "
        "says what it would free, and asks. A run that is not finished, or that a process works "
        "in, is never touched."
    )
    parser.add_argument("root", nargs="?", default="runs", help="where runs are (default: runs)")
    parser.add_argument(
        "--keep",
        type=int,
        default=1,
        metavar="N",
        help="newest checkpoints of a run that stay besides the best (default: 1)",
    )
    parser.add_argument(
        "--older-than", metavar="AGE", help="only runs not written to for so long: 12h, 30d, 8w"
    )
    parser.add_argument(
        "--whole-runs",
        action="store_true",
        help="delete whole run folders, with the best checkpoint and the record",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    parser.add_argument("--yes", action="store_true", help="delete without asking")


def _prune(args: argparse.Namespace) -> int:
    from textmill.run_folder.prune import age, plan_prune, prune

    older = None if args.older_than is None else age(args.older_than)
    plan = plan_prune(Path(args.root), keep=args.keep, older_than=older, whole_runs=args.whole_runs)
    for run, why in plan.kept.items():
        print(printable(f"stays    {run}: {why}"))
    for item in plan.deletions:
        print(printable(f"deletes  {item.path} ({_megabytes(item.size)})"))
    if not plan.deletions:
        print("Nothing to delete.")
        return 0
    total = (
        f"{len(plan.deletions)} folder{'s' * (len(plan.deletions) > 1)}, {_megabytes(plan.size)}"
    )
    if args.dry_run:
        print(f"It would free {total}; nothing was deleted.")
        return 0
    if not args.yes:
        if not sys.stdin.isatty():
            raise UserError(
                f"It would free {total}. Nothing was deleted, as there is no terminal to ask on: "
                "add --yes to delete, or --dry-run to look."
            )
        if input(f"Delete {total}? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing was deleted.")
            return 0
    print(f"Freed {_megabytes(prune(plan))}.")
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


ACTIONS = {
    "list": ("list runs with their state, result and settings (the default)", _add_list, _list),
    "verify": (
        "verify every byte of a run's checkpoints, and what says what they mean",
        _add_verify,
        _verify,
    ),
    "compare": ("show what tells one run from another", _add_compare, _compare),
    "report": ("write report.html: one file that shows a run in a browser", _add_report, _report),
    "figures": ("write the figures of a report as PNG or SVG", _add_figures, _figures),
    "prune": ("delete checkpoints that are not needed, or whole old runs", _add_prune, _prune),
}
"""The line of help of each action, what adds its arguments, and what performs it."""

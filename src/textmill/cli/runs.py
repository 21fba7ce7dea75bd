"""``textmill runs``: list, verify, make plain, compare, report on and prune run folders."""

import argparse
import sys
from pathlib import Path
from typing import Any

from textmill.cli import runs_list
from textmill.errors import CheckpointError, TextmillError, UserError
from textmill.runtime.logging import printable

TITLES = {
    "setting": "Settings",
    "code": "Code",
    "version": "Versions",
    "git": "Repository",
    "data": "Data",
    "result": "Results",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the actions."""
    parser.set_defaults(perform=runs_list.run)
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION")
    for name, (line, add_arguments, perform) in ACTIONS.items():
        action = actions.add_parser(name, help=line)
        add_arguments(action)
        action.set_defaults(perform=perform)


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    code: int = args.perform(args)
    return code


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compares every byte of a run's checkpoints, its config.yaml, the recipe's own "
        "code, best.json and last.json with what the run wrote."
    )
    parser.add_argument("run", help="the folder of a run")


def _verify(args: argparse.Namespace) -> int:
    """Prints a line for each checkpoint, and for each other thing that is wrong."""
    from textmill.checkpoint.saved import SavedCheckpoints

    folder = _run_folder(args.run)
    saved = SavedCheckpoints.of(folder)
    wrong = _seal_problems(saved)
    paths = saved.paths()
    bad = 0
    for path in paths:
        problems = saved.verify(path)
        bad += bool(problems)
        print(printable(f"{path.name}: {'ok' if not problems else '; '.join(problems)}"))
    wrong += _pointer_problems(saved, folder, any_saved=bool(paths))
    for problem in wrong:
        print(printable(problem))
    failed = bool(bad or wrong)
    plural = "" if len(paths) == 1 else "s"
    counted = f"{len(paths)} checkpoint{plural}, {bad} damaged" if paths else "no checkpoint"
    print(counted, file=sys.stderr if failed else sys.stdout)
    return 1 if failed else 0


def _seal_problems(saved: Any) -> list[str]:
    """What is wrong with ``config.yaml`` and the code beside it."""
    try:
        seal = saved.seal
    except CheckpointError as error:
        saved.seal = None  # each checkpoint is still compared with its own manifest
        return [str(error)]
    return [f"{name}: it is not as the run wrote it" for name in seal.changed_code()]


def _pointer_problems(saved: Any, folder: Path, *, any_saved: bool) -> list[str]:
    """What is wrong with ``last.json`` and ``best.json``, a line each.

    ``last.json`` is there once anything was saved; ``best.json`` once something was selected.
    """
    from textmill.checkpoint.layout import BEST, LAST
    from textmill.run_folder.folder import RunFolder
    from textmill.run_folder.lightning_run import is_of_lightning

    try:
        run = RunFolder(folder)
        of_textmill = not is_of_lightning(folder)  # else a ModelCheckpoint knows the best
        best = run.result["best"]["step"] if run.finished and of_textmill else None
    except (TextmillError, ValueError, TypeError, LookupError, AttributeError):
        best = None  # it does not say what it ended with
    found = []
    for which, name, wanted in (("last", LAST, any_saved), ("best", BEST, best is not None)):
        try:
            pointer = saved.pointer(which)
            if pointer is not None:
                place = saved.folder / pointer.folder
                if not place.is_dir():
                    found.append(f"{name}: it points to {place.name}, which is gone")
                elif not pointer.fits(place):
                    found.append(f"{name}: {place.name} is not the checkpoint that it points to")
                if which == "best" and best not in (None, pointer.step):
                    found.append(
                        f"{name}: it points to step {pointer.step}, but run.json has {best}"
                    )
            elif wanted:
                found.append(f"{name}: missing")
        except (TextmillError, OSError) as error:
            found.append(str(error) if name in str(error) else f"{name}: {error}")
    return found


def _add_consolidate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Makes the checkpoints of a run plain that ranks with trainer.data_parallelism=fsdp have "
        "saved in shards: one file for the model, one for the optimizer. Every byte is verified "
        "before. A run that ends does so itself; loading does not need it."
    )
    parser.add_argument("run", help="the folder of a run")


def _consolidate(args: argparse.Namespace) -> int:
    from textmill.checkpoint.consolidation import consolidate
    from textmill.checkpoint.saved import SavedCheckpoints
    from textmill.run_folder.folder import WRITTEN_FOLDERS
    from textmill.runtime.lock import Lock

    folder, bad = _run_folder(args.run), 0
    with Lock(folder, WRITTEN_FOLDERS):
        saved = SavedCheckpoints.of(folder)
        for path in saved.paths():
            try:
                saved.manifest(path)
                done = "made plain" if consolidate(path) else "plain already"
            except CheckpointError as error:
                bad, done = bad + 1, f"stays as it is: {error}"
            print(printable(f"{path.name}: {done}"))
    return 1 if bad else 0


def _run_folder(name: str) -> Path:
    from textmill.run_folder.folder import is_run_folder

    folder = Path(name)
    if not is_run_folder(folder):
        raise UserError(f"{folder} is not a run folder (no run.json and config.yaml in it).")
    return folder


def _add_diff(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compares settings, code, versions, data and results of two runs, side by "
        "side. What is equal is left out, but for results."
    )
    parser.add_argument("first", help="the folder of a run")
    parser.add_argument("second", help="the folder of another")


def _diff(args: argparse.Namespace) -> int:
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
    return 0


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes the report of a run anew: curves, answers, settings, data, "
        "environment, and what tells it from another run. One file, without scripts or network."
    )
    parser.add_argument("run", help="the folder of a run")
    parser.add_argument(
        "--against", metavar="RUN", help="the run to compare with (default: the last one beside it)"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="the file to write (default: report.html in the run)"
    )


def _report(args: argparse.Namespace) -> int:
    from textmill.runs.html_reporter import write_report

    path = write_report(
        Path(args.run),
        against=Path(args.against) if args.against else None,
        target=Path(args.output) if args.output else None,
    )
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
    for kept in plan.kept:
        print(printable(f"stays    {kept.run}: {kept.why}"))
    for item in plan.doomed:
        print(printable(f"deletes  {item.path} ({_megabytes(item.size)})"))
    if not plan.doomed:
        print("Nothing to delete.")
        return 0
    total = f"{len(plan.doomed)} folder{'s' * (len(plan.doomed) > 1)}, {_megabytes(plan.size)}"
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
    "list": (
        "list runs with their state, result and settings (the default)",
        runs_list.add,
        runs_list.run,
    ),
    "verify": (
        "verify every byte of a run's checkpoints, and what says what they mean",
        _add_verify,
        _verify,
    ),
    "consolidate": (
        "make checkpoints plain that several ranks have saved in shards",
        _add_consolidate,
        _consolidate,
    ),
    "diff": ("show what tells one run from another", _add_diff, _diff),
    "report": ("write report.html: one file that shows a run in a browser", _add_report, _report),
    "prune": ("delete checkpoints that are not needed, or whole old runs", _add_prune, _prune),
}
"""Action to its line of help, what adds its arguments, and what does it."""

"""``weft runs prune [FOLDER]``: make room."""

import argparse
import sys
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]


def add(actions: Any) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "prune",
        help="delete checkpoints that are not needed, or whole old runs",
        description="Deletes checkpoints of finished runs: all but the best and the newest. It "
        "says what it would free, and asks. A run that is not finished, or that a process works "
        "in, is never touched.",
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
    parser.set_defaults(perform=run)


def run(args: argparse.Namespace) -> int:
    """Says what goes, asks, deletes."""
    from weft.errors import UserError
    from weft.recipes.prune import age, plan_prune, prune
    from weft.runtime.terminal import printable

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

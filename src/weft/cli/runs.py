"""``weft runs list`` and ``weft runs verify RUN``: look after run folders."""

import argparse
import sys
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("runs", help="list runs, or verify every byte of one")
    actions = parser.add_subparsers(title="actions", dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list runs with their state and result")
    listed.add_argument("root", nargs="?", default="runs", help="where runs are (default: runs)")
    verified = actions.add_parser("verify", help="verify every byte of a run's checkpoints")
    verified.add_argument("run", help="the folder of a run")


def run(args: argparse.Namespace) -> int:
    """Lists or verifies."""
    return _list(Path(args.root)) if args.action == "list" else _verify(Path(args.run))


def _list(root: Path) -> int:
    from weft.errors import WeftError
    from weft.metrics.tables import text_table
    from weft.recipes.run_folder import RunFolder

    rows = []
    for file in sorted(root.glob("**/run.json")):
        folder = RunFolder(file.parent)
        try:
            info = folder.info
        except WeftError as error:
            rows.append([str(file.parent), "unreadable", str(error)])
            continue
        best = folder.result.get("best") or {}
        value = ", ".join(f"{k} {v:.4g}" for k, v in best.items() if k != "step")
        rows.append(
            [str(file.parent), "finished" if info.get("finished") else "not finished", value]
        )
    if not rows:
        print(f"No runs in {root}.")
        return 0
    print(text_table(["run", "state", "best"], rows))
    return 0


def _verify(run_folder: Path) -> int:
    from weft.checkpoint.store import Checkpoints
    from weft.errors import UserError
    from weft.recipes.run_folder import is_run_folder

    if not is_run_folder(run_folder):
        raise UserError(f"{run_folder} is not a run folder (no run.json and config.yaml in it).")
    store = Checkpoints(run_folder / "checkpoints")
    paths = sorted((run_folder / "checkpoints").glob("step-*"))
    bad = 0
    for path in paths:
        problems = store.verify(path)
        bad += bool(problems)
        print(f"{path.name}: {'ok' if not problems else '; '.join(problems)}")
    plural = "" if len(paths) == 1 else "s"
    print(f"{len(paths)} checkpoint{plural}, {bad} damaged", file=sys.stderr if bad else sys.stdout)
    return 1 if bad else 0

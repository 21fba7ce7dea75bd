"""``weft runs``: list, verify, compare, report on and prune run folders."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from stat import S_ISREG
from typing import Any

from weft.cli import runs_diff, runs_prune, runs_report

__all__ = ["add", "run"]

WRITTEN = ("run.json", "metrics.jsonl")
"""What a run at work writes again and again."""
ROOT = "runs"
"""Where ``weft train`` puts the folders of runs."""


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("runs", help="list, verify, compare and prune runs")
    parser.set_defaults(perform=lambda _: _list([ROOT]))
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION")
    listed = actions.add_parser("list", help="list runs with their state and result (the default)")
    listed.add_argument(
        "roots", nargs="*", metavar="FOLDER", help=f"where runs are (default: {ROOT})"
    )
    verified = actions.add_parser("verify", help="verify every byte of a run's checkpoints")
    verified.add_argument("run", help="the folder of a run")
    listed.set_defaults(perform=lambda args: _list(args.roots or [ROOT]))
    verified.set_defaults(perform=lambda args: _verify(Path(args.run)))
    for action in (runs_diff, runs_report, runs_prune):
        action.add(actions)


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    code: int = args.perform(args)
    return code


def _list(roots: Sequence[str]) -> int:
    from weft.metrics.tables import text_table

    found: dict[Path, list[str]] = {}
    for root in map(Path, roots):
        runs = [file.parent for file in sorted(root.glob("**/run.json"))]
        found |= {run: _row(run) for run in runs if run not in found}
        if not runs:
            print(f"No runs in {root}.")
    if found:
        header = ["run", "recipe", "state", "steps", "last written", "MB", "best"]
        print(text_table(header, list(found.values())))
    return 0


def _row(path: Path) -> list[str]:
    """A run's line; a folder that another program wrote, or that is damaged, has one too."""
    from weft.errors import WeftError
    from weft.metrics.formats import format_value
    from weft.recipes.record import state_of
    from weft.recipes.run_folder import RunFolder

    try:
        info = RunFolder(path).info
        result = info.get("result") or {}
        best = result.get("best") or {}
        value = ", ".join(
            f"{k} {format_value(k, float(v))}" for k, v in best.items() if k != "step"
        )
        said = [info.get("recipe", "-"), state_of(info), _steps(path, result)]
    except (WeftError, ValueError, TypeError, AttributeError, OSError) as error:
        said, value = ["-", "unreadable", "-"], str(error)
    return [str(path), *said, *_on_disk(path), value]


def _steps(path: Path, result: Mapping[str, Any]) -> str:
    """Steps that a finished run took; of another, those that its last checkpoint has."""
    from weft.checkpoint.pointer import Pointer

    if "steps" in result:
        return f"{result['steps']:,}"
    last = Pointer.read(path / "checkpoints" / "last.json")
    return "-" if last is None else f"{last.step:,}"


def _on_disk(path: Path) -> list[str]:
    """When a run wrote to last, local time, and its size in MB."""
    written, size = 0.0, 0
    for file in path.rglob("*"):
        with suppress(OSError):  # gone meanwhile: a run may be at work
            status = file.lstat()
            if S_ISREG(status.st_mode):
                size += status.st_size
            if file.name in WRITTEN and file.parent == path:
                written = max(written, status.st_mtime)
    return [f"{datetime.fromtimestamp(written):%Y-%m-%d %H:%M}", f"{size / 1e6:,.1f}"]


def _verify(run_folder: Path) -> int:
    from weft.checkpoint.store import Checkpoints
    from weft.errors import UserError
    from weft.recipes.run_folder import is_run_folder
    from weft.runtime.terminal import printable

    if not is_run_folder(run_folder):
        raise UserError(f"{run_folder} is not a run folder (no run.json and config.yaml in it).")
    folder = run_folder / "checkpoints"
    store = Checkpoints(folder)
    paths = sorted(folder.glob("step-*"))
    bad = 0
    for path in paths:
        problems = store.verify(path)
        bad += bool(problems)
        print(printable(f"{path.name}: {'ok' if not problems else '; '.join(problems)}"))
    wrong = _pointer_problems(run_folder, any_saved=bool(paths))
    for problem in wrong:
        print(printable(problem))
    failed = bool(bad or wrong)
    plural = "" if len(paths) == 1 else "s"
    counted = f"{len(paths)} checkpoint{plural}, {bad} damaged" if paths else "no checkpoint"
    print(counted, file=sys.stderr if failed else sys.stdout)
    return 1 if failed else 0


def _pointer_problems(run_folder: Path, *, any_saved: bool) -> list[str]:
    """What is wrong with ``last.json`` and ``best.json``, a line each.

    ``last.json`` is there once anything was saved; ``best.json`` once something was selected.
    """
    from weft.checkpoint.pointer import Pointer
    from weft.errors import WeftError

    folder, found = run_folder / "checkpoints", []
    for name, wanted in (("last.json", any_saved), ("best.json", _has_best(run_folder))):
        try:
            pointer = Pointer.read(folder / name)
            if pointer is not None:
                found += _pointed_problems(folder / pointer.folder, name, pointer)
            elif wanted:
                found.append(f"{name}: missing")
        except (WeftError, OSError) as error:
            found.append(str(error) if name in str(error) else f"{name}: {error}")
    return found


def _has_best(run_folder: Path) -> bool:
    """Whether the run says that it ended with a best checkpoint."""
    from weft.errors import WeftError
    from weft.recipes.run_folder import RunFolder

    try:
        return bool(RunFolder(run_folder).result.get("best"))
    except (WeftError, ValueError, TypeError, AttributeError):
        return False


def _pointed_problems(path: Path, name: str, pointer: Any) -> list[str]:
    import hashlib

    from weft.checkpoint.manifest import MANIFEST, Manifest, read_small

    if not path.is_dir():
        return [f"{name}: it points to {path.name}, which is gone"]
    data = read_small(path / MANIFEST)
    saved_since = Manifest.from_bytes(data).serial > pointer.serial  # and not yet pointed to
    if saved_since or hashlib.sha256(data).hexdigest() == pointer.manifest_sha256:
        return []
    return [f"{name}: {path.name} is not the checkpoint that it points to"]

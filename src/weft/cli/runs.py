"""``weft runs``: list, verify, compare, report on and prune run folders."""

import argparse
import sys
from pathlib import Path
from typing import Any

from weft.cli import runs_diff, runs_list, runs_prune, runs_report

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("runs", help="list, verify, compare and prune runs")
    parser.set_defaults(perform=runs_list.run)
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION")
    runs_list.add(actions)
    verified = actions.add_parser("verify", help="verify every byte of a run's checkpoints")
    verified.add_argument("run", help="the folder of a run")
    verified.set_defaults(perform=lambda args: _verify(Path(args.run)))
    for action in (runs_diff, runs_report, runs_prune):
        action.add(actions)


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    code: int = args.perform(args)
    return code


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

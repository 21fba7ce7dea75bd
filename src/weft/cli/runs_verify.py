"""``weft runs verify RUN``: whether a run is as it was written."""

import argparse
import sys
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]


def add(actions: Any) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "verify",
        help="verify every byte of a run's checkpoints, and what says what they mean",
        description="Compares every byte of a run's checkpoints, its config.yaml, the recipe's own "
        "code, best.json and last.json with what the run wrote.",
    )
    parser.add_argument("run", help="the folder of a run")
    parser.set_defaults(perform=run)


def run(args: argparse.Namespace) -> int:
    """Prints a line for each checkpoint, and for each other thing that is wrong."""
    from weft.checkpoint.saved import SavedCheckpoints
    from weft.errors import UserError
    from weft.run_folder.folder import is_run_folder
    from weft.runtime.logging import printable

    folder = Path(args.run)
    if not is_run_folder(folder):
        raise UserError(f"{folder} is not a run folder (no run.json and config.yaml in it).")
    saved = SavedCheckpoints.of(folder)
    wrong = _seal_problems(saved)
    paths = saved.paths()
    bad = 0
    for path in paths:
        problems = saved.verify(path)
        bad += bool(problems)
        print(printable(f"{path.name}: {'ok' if not problems else '; '.join(problems)}"))
    wrong += _pointer_problems(saved, best=_best_step(folder), any_saved=bool(paths))
    for problem in wrong:
        print(printable(problem))
    failed = bool(bad or wrong)
    plural = "" if len(paths) == 1 else "s"
    counted = f"{len(paths)} checkpoint{plural}, {bad} damaged" if paths else "no checkpoint"
    print(counted, file=sys.stderr if failed else sys.stdout)
    return 1 if failed else 0


def _seal_problems(saved: Any) -> list[str]:
    """What is wrong with ``config.yaml`` and the code beside it; that it has no seal is said."""
    from weft.errors import CheckpointError

    try:
        seal = saved.seal
    except CheckpointError as error:
        saved.seal = None  # each checkpoint is still compared with its own manifest
        return [str(error)]
    if not seal.whole:
        print("config.yaml: it has no seal, as the run was made before runs had one")
    return [f"{name}: it is not as the run wrote it" for name in seal.changed_code()]


def _pointer_problems(saved: Any, *, best: Any, any_saved: bool) -> list[str]:
    """What is wrong with ``last.json`` and ``best.json``, a line each.

    ``last.json`` is there once anything was saved; ``best.json`` once something was selected.
    """
    from weft.checkpoint.layout import BEST, LAST
    from weft.errors import WeftError

    found = []
    for which, name, wanted in (("last", LAST, any_saved), ("best", BEST, best is not None)):
        try:
            pointer = saved.pointer(which)
            if pointer is not None:
                found += _pointed_problems(saved.folder / pointer.folder, name, pointer)
                if which == "best" and best not in (None, pointer.step):
                    found.append(
                        f"{name}: it points to step {pointer.step}, but run.json has {best}"
                    )
            elif wanted:
                found.append(f"{name}: missing")
        except (WeftError, OSError) as error:
            found.append(str(error) if name in str(error) else f"{name}: {error}")
    return found


def _best_step(folder: Path) -> Any:
    """The step of the best checkpoint that a run says it ended with; None where it says none."""
    from weft.errors import WeftError
    from weft.run_folder.folder import RunFolder

    try:
        info = RunFolder(folder)
        return info.result["best"]["step"] if info.finished else None
    except (WeftError, ValueError, TypeError, LookupError, AttributeError):
        return None


def _pointed_problems(path: Path, name: str, pointer: Any) -> list[str]:
    if not path.is_dir():
        return [f"{name}: it points to {path.name}, which is gone"]
    if not pointer.fits(path):
        return [f"{name}: {path.name} is not the checkpoint that it points to"]
    return []

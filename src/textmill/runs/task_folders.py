"""The run folders of tasks that were trained together: each answers on its own, as any run."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS
from textmill.checkpoint.store import Checkpoints
from textmill.config.planning.key import plan_parts, run_key, settings_key
from textmill.config.planning.session import Session
from textmill.config.sources.own_files import own_files
from textmill.errors import UserError, worded
from textmill.inference.load import text_parts
from textmill.preflight.loadable import built_sizes
from textmill.recipes.planning import Planned
from textmill.run_folder.folder import PRETRAINED, RunFolder
from textmill.tasks.task import Task

PART = "part_of"
"""In ``run.json`` of such a folder: the name of the run that it was trained in."""


def refuse_part(run: Path) -> None:
    """Refuses to go on with one of several tasks alone."""
    if PART in RunFolder(run).info:
        whole = run.parent
        way = worded(f"textmill train {whole}", f"textmill.train({str(whole)!r})")
        raise UserError(f"{run} is a task of {whole}, and goes on with the others: {way}")


def write_tasks(
    planned: Planned, session: Session, folder: RunFolder, data: Mapping[str, str], *, step: int
) -> list[Path]:
    """Writes a run folder for each task, with its module's weights as they are now.

    What was written of the same run before is replaced. Returned are the folders.
    """
    found = []
    for name, own in session.tasks.items():
        if planned.named[name].like is None:
            found.append(folder.path / name)
            _write(planned, name, own, folder, data, step=step)
    return found


def _write(
    planned: Planned,
    name: str,
    own: Session,
    folder: RunFolder,
    data: Mapping[str, str],
    *,
    step: int,
) -> None:
    part, target = planned.alone(name), RunFolder(folder.path / name)
    if PART in target.info:
        shutil.rmtree(target.path)
    target.path.mkdir()
    plan, task = part.plan, own.get("task")
    assert isinstance(task, Task)
    code = own_files([*plan_parts(plan, observers=False), *text_parts(task.text)])
    target = RunFolder(target.path)
    run = target.identity
    target.write_config(
        planned.named[name].recipe,
        plan.settings,
        built_sizes(own, plan),
        run=run,
        parts={file.name: file.sha256 for file in code},
        swaps={},
        include=part.include,
    )
    kept = folder.info.get("pretrained")
    if kept and (folder.path / PRETRAINED).is_dir():
        shutil.copytree(folder.path / PRETRAINED, target.path / PRETRAINED)
    start = f"{name}."
    facts: dict[str, Any] = {
        "recipe": planned.named[name].recipe,
        "key": run_key(plan),
        "settings_key": settings_key(plan),
        "id": run,
        PART: folder.identity,
        "pretrained": kept,
        "max_tokens": folder.info.get("max_tokens"),
        "data": {n.removeprefix(start): of for n, of in data.items() if n.startswith(start)},
        "data_summary": {
            n.removeprefix(start): of
            for n, of in folder.info.get("data_summary", {}).items()
            if n.startswith(start)
        },
        "selected_by": folder.info.get("selected_by"),
    }
    target.write_start(Path.cwd(), facts)
    store = Checkpoints(target.path / CHECKPOINTS)
    store.save(step, {"model": task.module}, write_text=task.text.save)
    target.write_info(finished=True, result={"steps": step})

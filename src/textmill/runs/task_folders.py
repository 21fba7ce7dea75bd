"""Run folders of what no run of its own has trained: one of several tasks, or an ensemble."""

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
from textmill.run_folder.folder import PRETRAINED, RunFolder, remember_place
from textmill.runtime.files import new_folder
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
            _write_task(planned, name, own, folder, data, step=step)
    return found


def _write_task(
    planned: Planned,
    name: str,
    own: Session,
    folder: RunFolder,
    data: Mapping[str, str],
    *,
    step: int,
) -> None:
    part, info, start = planned.alone(name), folder.info, f"{name}."
    plan, task, recipe = part.plan, own.get("task"), planned.named[name].recipe
    summary = info.get("data_summary", {})
    data, summary = (
        {n.removeprefix(start): of for n, of in each.items() if n.startswith(start)}
        for each in (data, summary)
    )
    same = {fact: info.get(fact) for fact in ("pretrained", "max_tokens", "selected_by")}
    code = own_files([*plan_parts(plan, observers=False), *text_parts(task.text)])
    write_run(
        folder.path / name,
        task,
        recipe,
        plan.settings,
        built_sizes(own, plan),
        facts={
            "recipe": recipe,
            "key": run_key(plan),
            "settings_key": settings_key(plan),
            "data": data,
            "data_summary": summary,
            PART: folder.identity,
            **same,
        },
        step=step,
        pretrained=folder.path / PRETRAINED,
        parts={file.name: file.sha256 for file in code},
        include=part.include,
    )


def write_run(
    place: Path,
    task: Task,
    recipe: str | None,
    settings: Mapping[str, Any],
    built: Mapping[str, Any],
    *,
    facts: Mapping[str, Any],
    step: int = 0,
    pretrained: Path | None = None,
    **config: Any,
) -> None:
    """Writes the folder of a finished run that answers as a task does; it is whole or not there.

    A folder of that name is replaced. ``config`` is what
    ``RunFolder.write_config`` takes beside.
    """
    with new_folder(place, replace=True) as made:
        folder = RunFolder(made)
        run = folder.identity
        folder.write_config(recipe, settings, built, swaps={}, run=run, **config)
        if pretrained is not None and pretrained.is_dir():
            shutil.copytree(pretrained, made / PRETRAINED)
        folder.write_start(Path.cwd(), {**facts, "id": run})
        store = Checkpoints(made / CHECKPOINTS)
        store.save(step, {"model": task.module}, write_text=task.text.save)
        folder.write_info(finished=True, result={"steps": step})
    remember_place(place)

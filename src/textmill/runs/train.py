"""Training a recipe: from its name to a finished run folder."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS, has_checkpoints
from textmill.checkpoint.parts import Stateful
from textmill.checkpoint.store import Checkpoints
from textmill.config.planning.key import plan_parts, run_key, settings_key
from textmill.config.planning.overrides import Overrides, words_of
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.config.recipe import Recipe, experiments
from textmill.config.sources.open_recipe import stages_of
from textmill.config.sources.own_files import own_files
from textmill.config.values.raw_values import Entries
from textmill.data.mixture import Mixture
from textmill.errors import RunError, UserError
from textmill.exported.formats import format_of
from textmill.inference.load import text_parts
from textmill.models import fast
from textmill.preflight.baselines import comparable
from textmill.preflight.data_preview import (
    data_summary,
    first_row,
    mixed_sources,
    nothing_selected,
    shared_rows,
)
from textmill.preflight.disk_need import check_disk
from textmill.preflight.loadable import built_sizes
from textmill.preflight.max_tokens import settle_max_tokens
from textmill.preflight.odd_labels import odd_labels
from textmill.recipes.planning import Planned, exports_of, plan_recipe, run_named, seed_of
from textmill.recipes.rows_file import file_words
from textmill.run_folder.folder import SCRIPT, RunFolder, refuse_collision
from textmill.run_folder.pretrained import pretrained_of
from textmill.runs.fingerprints import read_data
from textmill.runs.resume import (
    Run,
    allowed_changes,
    choose_folder,
    compare_data,
    compare_text,
    ended_run,
    is_finished,
    length_changes,
    length_of,
    record_changes,
    refuse_other,
    run_of_data,
    warn_of_new_code,
    warn_of_versions,
)
from textmill.runs.run_lock import clean, entered, recorded
from textmill.runs.sharing.pushed import refuse_without_state
from textmill.runs.task_folders import refuse_part, write_tasks
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks
from textmill.runtime.seeds import fold, seed_everything
from textmill.tasks.task import Task
from textmill.training.linear_trainer import LinearTrainer
from textmill.training.loop import Trainer
from textmill.training.progress import Progress
from textmill.training.run_setup import check_takes_task, check_trainer

LOG = logging.getLogger("textmill")


def train(
    recipe: str | Path | Recipe,
    overrides: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    run_dir: str | Path | None = None,
    again: bool = False,
    allow_code: bool = False,
    device: str = "auto",
    ranks: Ranks | None = None,
) -> Run:
    """Trains a recipe, or goes on training it: the same call resumes a run that was interrupted.

    The stages of a recipe are trained one after another, each as a run that begins with the weights
    of the one before; the last is returned.

    Args:
        recipe: A script, an experiment's name, a YAML file, a Recipe, or a run to go on with.
        overrides: Settings as on the command line, ``"optimizer.lr=1e-3"``, or a dictionary of
            values by their dotted names, ``{"optimizer.lr": 1e-3}``, nested ones too. Rows may
            stand in place of a path, ``{"train_data.path": frame}``: a table or a list of dicts.
        configs: YAML files of settings, later ones win.
        run_dir: The run folder; by default ``runs/<recipe>/<key>``. Stages have theirs in it.
        again: Trains anew although the run exists, in the next free folder.
        allow_code: Whether code that a run folder brings may be executed.
        device: ``auto``, or a device as torch names it.
        ranks: The processes that train together, if the caller has joined them; by default those
            that the environment tells of, as torchrun does.

    Returns:
        The run.

    Raises:
        PlanError: Something is wrong with the recipe; it lists everything, and nothing was run.
        RunStoppedError: A signal came; everything is saved.

    Example:
        >>> run = train("translation/demo", ["trainer.max_steps=400"])  # doctest: +SKIP
        >>> run.result["best"]  # doctest: +SKIP
        {'step': 400, 'bleu': 93.1}
    """
    asked: dict[str, Any] = {"again": again, "allow_code": allow_code}
    overrides = file_words(overrides)
    with nullcontext(ranks) if ranks is not None else Ranks(Env.detect(device)) as ranks:
        asked["ranks"] = ranks
        run = None
        for name, settings in stages_of(recipe).items():
            words = words_of(overrides)
            words += [] if run is None else [f"trainer.initialize={run.folder}"]
            LOG.info("Stage %s:", name)
            place = None if run_dir is None else Path(run_dir, name)
            run = _run(recipe, words, configs=[*configs, settings], run_dir=place, **asked)
        return run or _run(recipe, overrides, configs=configs, run_dir=run_dir, **asked)


def _run(
    recipe: str | Path | Recipe,
    overrides: Overrides,
    *,
    configs: Sequence[str | Path | Entries],
    run_dir: str | Path | None,
    again: bool,
    allow_code: bool,
    ranks: Ranks,
) -> Run:
    """Trains one run, or goes on with it."""
    run = run_named(recipe)
    goes_on = run is not None and not again
    if run is not None and goes_on:
        refuse_other(run, run_dir)
        refuse_part(run)
        if not (overrides or configs) and RunFolder(run).finished:
            return ended_run(RunFolder(run))  # whoever made it, no code is needed to say so
        refuse_without_state(run)
    planned = plan_recipe(
        recipe, overrides, configs=configs, targets=["trainer"], allow_code=allow_code
    )
    refuse_before_start(planned)
    start = partial(start_session, planned, env=ranks.env, overrides=tuple(words_of(overrides)))

    def chosen() -> tuple[str, dict[str, Any]]:
        before = planned
        if goes_on and (overrides or configs):
            before = plan_recipe(run or "", targets=["trainer"], allow_code=allow_code)
        folder = choose_folder(planned, run_dir=run_dir, again=again)
        changes = allowed_changes(planned, before) if goes_on else {}
        folder = run_of_data(
            folder,
            planned,
            named=goes_on or run_dir is not None,
            read=lambda: read_data(start(folder), planned.plan, None),
            changes=changes,
        )
        if not goes_on and folder.info:
            changes = length_changes(folder, planned.plan)
        return str(folder.path), changes

    path, changes = ranks.from_main(chosen)
    folder = RunFolder(Path(path))
    if ranks.from_main(lambda: is_finished(folder, planned)):
        return ended_run(folder, planned)
    with entered(folder.path) if ranks.env.is_main else nullcontext():
        if ranks.env.is_main:
            if ranks.size == 1 and is_finished(folder, planned):
                return ended_run(folder, planned)  # by the process that had the folder till now
            warn_of_new_code(folder, planned)
            clean(folder, key=None if goes_on else run_key(planned.plan))
            if ranks.restart:
                LOG.warning(ranks.restart)
        result = _trained(planned, folder, start(folder), ranks, changes)
    return Run(folder.path, result)


def _trained(
    planned: Planned,
    folder: RunFolder,
    session: Session,
    ranks: Ranks,
    changes: Mapping[str, Any],
) -> dict[str, Any]:
    plan, writes = planned.plan, ranks.env.is_main
    with recorded(folder, writes=writes), pretrained_of(folder) as pretrained:
        _build_wrapped(session, plan, folder, ranks)
        # The others find what the first has fitted and encoded, and all of it in run.json.
        with ranks.main_first():
            trainer, built, facts = build_trainer(session, plan, folder)
            data = facts["data"]
            if writes:
                facts |= _facts(session, plan, folder, trainer)
                record_changes(folder, changes)  # not before all that can refuse to go on
                facts["pretrained"] = pretrained.keep()
                begin_run(planned, folder, session, built=built, facts=facts)
                if isinstance(trainer, Trainer):  # another cannot say what it saves
                    check_disk(trainer)
                LOG.info("Run folder: %s", folder.path)
                if ranks.size > 1:
                    LOG.info("%d ranks train together.", ranks.size)
        if isinstance(trainer, Trainer):
            trainer.fit()
            result = dict(trainer.summary)
        else:
            result = _fit_own(trainer, session.get("task"), folder.path, ranks)
        if writes:
            if isinstance(trainer, Trainer) and (epochs := _source_epochs(trainer)):
                result["sources"] = epochs
            places = {folder.path: session}
            if session.tasks:
                best = result.get("weights", result.get("best", {}))
                used = best.get("step", result["steps"])
                written = write_tasks(planned, session, folder, data, step=used)
                places = {path: session.tasks[path.name] for path in written}
                LOG.info("Each task is a run of its own: %s", ", ".join(map(str, written)))
            if exports := exports_of(plan):
                from textmill.runs.export import export_trained

                found = {path: export_trained(path, exports, own) for path, own in places.items()}
                named = {path.name: of for path, of in found.items()}
                result["exports"] = named if session.tasks else found[folder.path]
            folder.write_info(finished=True, result=result)
    return result


def _fit_own(trainer: Any, task: Task, folder: Path, ranks: Ranks) -> dict[str, Any]:
    """Trains a task with a trainer of the recipe's own; returns ``steps`` and ``epochs``.

    When its ``fit`` returns, the weights of the task's module are saved, with the text processor.
    One with ``state_dict`` and ``load_state_dict`` is saved beside them, and both are loaded before
    ``fit`` if there is a checkpoint. It divides the work of many ranks itself, by ``env``; the
    weights of the first one are saved.
    """
    store = Checkpoints(folder / CHECKPOINTS, writes=ranks.env.is_main)
    parts: dict[str, Stateful] = {"model": task.module}
    if isinstance(trainer, Stateful):
        parts["trainer"] = trainer
        with ranks.main_first():
            step = store.restore(parts)
        if step is not None:
            LOG.info(f"Resumed at step {step:,}.")
    elif store.last() is not None:
        LOG.warning(f"{type(trainer).__name__} has no state_dict: it trains anew.")
    progress = trainer.fit()
    if not isinstance(progress, Progress):
        found = "None" if progress is None else f"a {type(progress).__name__}"
        raise RunError(
            f"{type(trainer).__name__}.fit() returned {found}; wanted a "
            "textmill.training.Progress(steps=..., epochs=..., examples=...)."
        )
    with ranks.main_first():
        if store.writes:
            store.save(progress.steps, parts, write_text=task.text.save)
    return {"steps": progress.steps, "epochs": progress.epochs}


def refuse_before_start(planned: Planned) -> None:
    """Prints the plan's notes, and refuses, before anything is made, what would fail at the end."""
    for note in planned.plan.notes:
        LOG.info(note)
    check_takes_task(planned.plan.order)
    if planned.script is not None:
        refuse_collision(planned.script, planned.table.files)
    for form in exports_of(planned.plan):
        format_of(form.format).refuse_missing(writes=True)


def start_session(
    planned: Planned, folder: RunFolder, *, env: Env, overrides: tuple[str, ...]
) -> Session:
    """Starts building the ingredients for training in a folder."""
    key = run_key(planned.plan)
    return planned.start(
        folder.path, "train", env.device, {"env": env}, key=key, overrides=overrides
    )


def _facts(session: Session, plan: Plan, folder: RunFolder, trainer: Any) -> dict[str, Any]:
    """What ``run.json`` records before the first step; refuses exports that are not possible."""
    summary = folder.info.get("data_summary")
    if not summary:
        summary = data_summary(session, trainer)
        for name, facts in comparable(session, solved=isinstance(trainer, LinearTrainer)).items():
            summary[name] = {**summary.get(name, {}), **facts}
    selected_by = None  # a trainer of the recipe's own cannot say it
    if isinstance(trainer, Trainer) and (selection := trainer.selection) is not None:
        better = "higher" if selection.sign > 0 else "lower"
        selected_by = {"metric": selection.config.metric, "better": better}
    if exports := exports_of(plan):  # else no exporter is imported
        from textmill.preflight.export_checks import refuse_exports

        refuse_exports(exports, session)
    return {"data_summary": summary, "selected_by": selected_by}


def begin_run(
    planned: Planned,
    folder: RunFolder,
    session: Session,
    *,
    built: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> None:
    """Writes what the run is: its code, ``config.yaml``, and in ``run.json`` also this start."""
    plan, script, files = planned.plan, planned.script, planned.table.files
    warn_of_versions(folder)
    itself = script.resolve() if script else Path.cwd() / SCRIPT
    code = folder.write_sources(
        {
            SCRIPT if path == itself else path.relative_to(itself.parent).as_posix(): data
            for path, data in files.items()
        }
    )
    parts = [*plan_parts(plan, observers=False)]
    for each in session.each_task.values():
        parts += text_parts(each.get("task").text) if each.has("task") else []
    own = own_files(parts, script=files)
    experiment = planned.name if planned.name in experiments.names() else None
    run = folder.identity
    folder.write_config(
        SCRIPT if script is not None else experiment,
        plan.settings,
        built,
        run=run,
        parts={file.name: file.sha256 for file in own if file.path not in files},
        swaps=plan.swaps,
        include=planned.include,
        code=code,
    )
    known: dict[str, Any] = {"recipe": planned.name, "key": run_key(plan)}
    known |= {"settings_key": settings_key(plan), "id": run, "length": length_of(plan), **facts}
    folder.write_start(itself.parent, known, ranks=session.get("env").world_size)
    if (folder.path / "export").is_dir():
        from textmill.runs.export import tell_older_exports

        tell_older_exports(folder.path, but=[form.folder for form in exports_of(plan)])


def _source_epochs(trainer: Trainer) -> dict[str, float]:
    """Epochs that each source of a mixture has had, also logged; {} for other data.

    Rows that are too long to train on do not count.
    """
    batches = trainer.data.data
    mixture: Mixture | None = getattr(batches, "mixture", None)
    if mixture is None:
        return {}
    epochs = mixture.epochs(trainer.data.position)
    LOG.info("Epochs of each source: %s", ", ".join(f"{n} {e:g}" for n, e in epochs.items()))
    return epochs


def _build_wrapped(session: Session, plan: Plan, folder: RunFolder, ranks: Ranks) -> None:
    """Builds the module on all ranks at once if a function of the recipe's own takes ``env``.

    It may wrap the module for many ranks, as torch's DistributedDataParallel does: that exchanges
    messages with them.
    """
    node = session.nodes.get("module")
    if ranks.size == 1 or node is None or "env" not in node.needs:
        return
    with ranks.main_first():
        read_data(session, plan, folder.path)
        for name in node.needs:
            session.get(name)
    seed_everything(fold(seed_of(plan), "weights"))
    session.get("module")


def build_trainer(
    session: Session, plan: Plan, folder: RunFolder
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Builds the trainer with all it needs, and compares each part with what the run had.

    Returns:
        The trainer; what was built otherwise than it was set; facts for ``run.json``.
    """
    data = read_data(session, plan, folder.path)
    compare_data(folder, data, plan)
    seed_everything(fold(seed_of(plan), "weights"))
    # What max_tokens=auto stands for is measured once, at the run's first start.
    before, settings = folder.info.get("max_tokens"), plan.settings.get("trainer", {})
    cells = settle_max_tokens(session, settings, seed=seed_of(plan), recorded=before)
    if cells is not None:
        LOG.info("max_tokens=auto: batches of %s cells%s.", f"{cells:,}", _since(before))
    try:
        trainer = session.get("trainer")
    finally:
        _warn_at_first_look(session, plan, folder)
    check_trainer(trainer)
    facts: dict[str, Any] = {"max_tokens": cells}
    if isinstance(trainer, Trainer):
        facts["precision"] = _settled_precision(trainer, folder.info.get("precision"))
        facts["kernels"] = _settled_kernels(trainer, folder)
        if sentence := mixed_sources(trainer.data.data):
            LOG.info(sentence)
    built = built_sizes(session, plan)
    if session.has("task"):
        compare_text(folder, session.get("task").text)
    if folder.newest is not None:
        data |= folder.info.get("data", {})  # also of files that its weights began with
    return trainer, built, {"data": data, **facts}


def _settled_precision(trainer: Trainer, before: Any) -> str:
    """Sets the precision of a run; ``auto`` stays what it was at the run's first start."""
    asked, device = trainer.config.precision, str(trainer.task.device)
    precision = trainer.updates.compute_in(before)  # hosts may differ: rank 0 has recorded its own
    if asked == "auto" and (precision, device) != ("fp32", "cpu"):
        LOG.info("trainer.precision=auto: %s on %s%s.", precision, device, _since(before))
    if (precision, device) == ("fp16", "cpu"):
        LOG.warning("trainer.precision=fp16: most processors compute it more slowly than fp32.")
    return precision


def _settled_kernels(trainer: Trainer, folder: RunFolder) -> dict[str, str]:
    """Sets how a run's steps are computed on a CPU; ``auto`` stays what it was, too."""
    try:
        trainer.fast = fast.settled(trainer.config.fast, folder.info.get("kernels"))
    except (KeyError, TypeError, UserError) as error:
        raise RunError(
            f"{folder.path / 'run.json'}: 'kernels' is not what a run writes: {error}"
        ) from error
    return {name: getattr(trainer.fast, name) for name in fast.KERNELS}


def _since(before: object) -> str:
    return "" if before is None else ", as when this run began"


def _warn_at_first_look(session: Session, plan: Plan, folder: RunFolder) -> None:
    """Prints what a person sees at once to be wrong, and no program does.

    What needs every row is printed at the first start only: a million rows take seconds if the
    file is not held in memory, else a fifth of a second.
    """
    if "task" not in session.built:  # it could not be built, or is no component
        return
    plans = plan.tasks or {"": plan}
    for name, own in session.each_task.items():
        if not own.has("train_data"):
            continue
        text, data = own.get("task").text, own.get("train_data")
        if line := first_row(text, data, f"{name}.train_data".lstrip(".")):
            LOG.info(line)
        if has_checkpoints(folder.path):
            continue
        for warning in [*odd_labels(text, data, plans[name].settings), *shared_rows(own)]:
            LOG.warning(f"{name}: {warning}" if name else warning)
    if line := nothing_selected(plan):
        LOG.info(line)

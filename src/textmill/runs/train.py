"""Training a recipe: from its name to a finished run folder."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
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
from textmill.config.sources.own_files import own_files
from textmill.errors import RunError
from textmill.exported.formats import format_of
from textmill.inference.load import text_parts
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
from textmill.run_folder.folder import (
    SCRIPT,
    RunFolder,
    command_line,
    git_state,
    hardware,
    refuse_collision,
    remember_place,
    versions,
)
from textmill.run_folder.pretrained import pretrained_of
from textmill.runs.resume import (
    Run,
    allowed_changes,
    choose_folder,
    compare_built,
    compare_data,
    compare_text,
    ended_run,
    is_finished,
    length_changes,
    length_of,
    moved_settings,
    read_data,
    record_changes,
    refuse_other,
    run_of_data,
    tell_edited,
    warn_of_versions,
)
from textmill.runs.run_lock import clean, entered, recorded
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks
from textmill.runtime.seeds import fold, seed_everything
from textmill.tasks.task import MixedBatches, Task
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

    Args:
        recipe: A script, an experiment's name, a YAML file, a Recipe, or a run to go on with.
        overrides: Settings as on the command line, ``"optimizer.lr=1e-3"``, or a dictionary of
            values by their dotted names, ``{"optimizer.lr": 1e-3}``, nested ones too.
        configs: YAML files of settings, later ones win.
        run_dir: The run folder; by default ``runs/<recipe>/<key>``.
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
    run = run_named(recipe)
    with nullcontext(ranks) if ranks is not None else Ranks(Env.detect(device)) as ranks:
        if run is not None and not again:
            refuse_other(run, run_dir)
            if not (overrides or configs) and RunFolder(run).finished:
                return ended_run(RunFolder(run))  # whoever made it, no code is needed to say so
        planned = plan_recipe(
            recipe, overrides, configs=configs, targets=["trainer"], allow_code=allow_code
        )
        refuse_before_start(planned)
        words, env = tuple(words_of(overrides)), ranks.env
        goes_on = run is not None and not again

        def chosen() -> tuple[str, dict[str, Any]]:
            """The folder, and what the command changes in the run that is there."""
            folder, changes = choose_folder(planned, run_dir=run_dir, again=again), {}
            if goes_on:
                before = planned
                if overrides or configs:
                    before = plan_recipe(folder.path, targets=["trainer"], allow_code=allow_code)
                moved = moved_settings(folder, planned.plan)
                changes = allowed_changes(planned, before, moved=moved)
            folder = run_of_data(
                folder,
                planned,
                named=goes_on or run_dir is not None,
                read=lambda: read_data(
                    start_session(planned, folder, env=env, overrides=words), planned.plan, None
                ),
                changes=changes,
            )
            if not goes_on and folder.info:
                changes = length_changes(folder, planned.plan)
            return str(folder.path), changes

        path, changes = ranks.from_main(chosen)
        folder = RunFolder(Path(path))
        if ranks.from_main(lambda: is_finished(folder, planned)):
            return ended_run(folder, planned)
        with entered(folder.path) if env.is_main else nullcontext():
            if env.is_main:
                if ranks.size == 1 and is_finished(folder, planned):
                    return ended_run(folder, planned)  # by the process that had the folder till now
                tell_edited(folder, planned)
                clean(folder, key=None if goes_on else run_key(planned.plan))
                if ranks.restart:
                    LOG.warning(ranks.restart)
            session = start_session(planned, folder, env=env, overrides=words)
            with recorded(folder, writes=env.is_main), pretrained_of(folder) as pretrained:
                _make_wrapped(session, planned.plan, folder, ranks)
                # Others find what the first has fitted and encoded, and all of it in run.json.
                with ranks.main_first():
                    trainer, built, facts = build_trainer(session, planned.plan, folder, changes)
                    if env.is_main:
                        facts |= _facts(session, planned.plan, folder, trainer)
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
                    result = fit_own(trainer, session.get("task"), folder.path, ranks)
                if env.is_main:
                    if isinstance(trainer, Trainer) and (sources := source_epochs(trainer)):
                        result["sources"] = sources
                    if exports := exports_of(planned.plan):
                        from textmill.runs.export import export_trained

                        result["exports"] = export_trained(folder.path, exports, session)
                    folder.write_info(finished=True, result=result)
    return Run(folder.path, result)


def fit_own(trainer: Any, task: Task, folder: Path, ranks: Ranks) -> dict[str, Any]:
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
    """Says the plan's notes, and refuses before anything is made what would fail at the end."""
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
    """What builds the ingredients."""
    key = run_key(planned.plan)
    given = {"env": env}
    return planned.start(folder.path, "train", env.device, given, key=key, overrides=overrides)


def _facts(session: Session, plan: Plan, folder: RunFolder, trainer: Any) -> dict[str, Any]:
    """What is known of a run before its first step, once its exports are found to be possible."""
    summary = folder.info.get("data_summary") or data_summary(session, trainer)
    selected_by = None  # a trainer of the recipe's own cannot say it
    if isinstance(trainer, Trainer) and (selection := trainer.selection) is not None:
        better = "higher" if selection.sign > 0 else "lower"
        selected_by = {"metric": selection.config.metric, "better": better}
    if exports := exports_of(plan):  # else nothing of it is imported
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
    """Writes what the run is, and remembers where."""
    own = [*plan_parts(planned.plan, observers=False)]
    own += text_parts(session.get("task").text) if session.has("task") else []
    files, kept = own_files(own, script=planned.table.files), planned.table.files
    elsewhere = {file.name: file.sha256 for file in files if file.path not in kept}
    ranks = session.get("env").world_size
    write(folder, planned, built, facts, elsewhere=elsewhere, ranks=ranks)
    remember_place(folder.path)
    if (folder.path / "export").is_dir():
        from textmill.runs.export import tell_older_exports

        tell_older_exports(folder.path, but=[form.folder for form in exports_of(planned.plan)])


def source_epochs(trainer: Trainer) -> dict[str, float]:
    """How many epochs each source of a mixture has had, which is said; nothing of other data.

    Of the rows that are trained on: those that are too long are in no epoch.
    """
    batches = trainer.data.data
    mixture = batches.mixture if isinstance(batches, MixedBatches) else None
    if mixture is None:
        return {}
    epochs = mixture.epochs(trainer.data.position)
    LOG.info("Epochs of each source: %s", ", ".join(f"{n} {e:g}" for n, e in epochs.items()))
    return epochs


def _make_wrapped(session: Session, plan: Plan, folder: RunFolder, ranks: Ranks) -> None:
    """Makes a module on all ranks at once where a function of the recipe's own does, of ``env``.

    It may wrap it for many ranks, as in torch's DistributedDataParallel, and that talks to them.
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
    session: Session, plan: Plan, folder: RunFolder, changes: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The trainer with all it needs, each compared with what the folder's run had.

    Returns:
        The trainer; what was built otherwise than it was set; what the data were found to be.
    """
    data = read_data(session, plan, folder.path)
    compare_data(folder, data)
    seed_everything(fold(seed_of(plan), "weights"))
    # What max_tokens=auto stands for is found once, at the run's first start.
    before, settings = folder.info.get("max_tokens"), plan.settings.get("trainer", {})
    cells = settle_max_tokens(session, settings, seed=seed_of(plan), recorded=before)
    if cells is not None:
        since = "" if before is None else ", as when this run began"
        LOG.info("max_tokens=auto: batches of %s cells%s.", f"{cells:,}", since)
    try:
        trainer = session.get("trainer")
    finally:
        _tell_first_look(session, plan, folder)
    check_trainer(trainer)
    found: dict[str, Any] = {"max_tokens": cells}
    if isinstance(trainer, Trainer):
        # auto stays what it was at the run's first start.
        asked, device, before = (
            trainer.config.precision,
            str(trainer.task.device),
            folder.info.get("precision"),
        )
        precision = found["precision"] = trainer.updates.compute_in(before)
        if asked == "auto" and (precision, device) != ("fp32", "cpu"):
            since = "" if before is None else ", as when this run began"
            LOG.info("trainer.precision=auto: %s on %s%s.", precision, device, since)
        if (precision, device) == ("fp16", "cpu"):
            LOG.warning("trainer.precision=fp16: most processors compute it more slowly than fp32.")
    if isinstance(trainer, Trainer) and (said := mixed_sources(trainer.data.data)):
        LOG.info(said)
    built = built_sizes(session, plan)
    compare_built(folder, {k: v for k, v in session.compared.items() if k in built}, changes)
    if session.has("task"):
        compare_text(folder, session.get("task").text)
    if folder.newest is not None:
        data |= folder.info.get("data", {})  # what its weights began with, though it is gone since
    return trainer, built, {"data": data, **found}


def _tell_first_look(session: Session, plan: Plan, folder: RunFolder) -> None:
    """Says what a person sees at once to be wrong, and no program does.

    What asks for each row is said at the first start only: of a file that is not held in memory a
    million rows take seconds; of others a fifth of one.
    """
    if "task" not in session.built:  # it could not be, or is none of a component's
        return
    text, data = session.get("task").text, session.get("train_data")
    for line in filter(None, (first_row(text, data), nothing_selected(plan))):
        LOG.info(line)
    if has_checkpoints(folder.path):
        return
    for warning in [*odd_labels(text, data, plan.settings), *shared_rows(session)]:
        LOG.warning(warning)


def write(
    folder: RunFolder,
    planned: Planned,
    built: Mapping[str, Any],
    data: Mapping[str, Any],
    *,
    elsewhere: Mapping[str, str],
    ranks: int,
) -> None:
    """Writes everything that says what this run is; every start of it is kept."""
    plan, script = planned.plan, planned.script
    warn_of_versions(folder)
    itself = script.resolve() if script else Path.cwd() / SCRIPT
    code = folder.write_sources(
        {
            SCRIPT if path == itself else path.relative_to(itself.parent).as_posix(): data
            for path, data in planned.table.files.items()
        }
    )
    named = planned.name if planned.name in experiments.names() else None
    recipe = SCRIPT if script is not None else named
    run = folder.identity
    made_of: dict[str, Any] = {"swaps": plan.swaps, "include": planned.include, "code": code}
    folder.write_config(recipe, plan.settings, built, run=run, parts=elsewhere, **made_of)
    start = {
        "command": command_line(),
        "versions": versions(),
        "git": git_state(itself.parent),
        "hardware": hardware(),
        "ranks": ranks,
    }
    folder.write_info(
        recipe=planned.name,
        key=run_key(plan),
        settings_key=settings_key(plan),
        id=run,
        length=length_of(plan),
        starts=[*(folder.info.get("starts") or []), start],
        **data,
        finished=False,
        stopped=None,
        failed=None,
    )

"""Training a recipe: from its name to a finished run folder."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import has_checkpoints
from textmill.config.planning.key import plan_parts, run_key, settings_key
from textmill.config.planning.overrides import Overrides, words_of
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.config.recipe import Recipe, experiments
from textmill.config.sources.own_files import own_files
from textmill.errors import UserError, worded
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
from textmill.runs.data_checks import compare_data, moved_settings, read_data, run_of_data
from textmill.runs.finished_run import Run as Run
from textmill.runs.finished_run import ended_run
from textmill.runs.resume_checks import (
    allowed_changes,
    compare_built,
    compare_text,
    is_finished,
    length_changes,
    length_of,
    record_changes,
    settle_precision,
    warn_of_versions,
)
from textmill.runs.run_lock import (
    choose_folder,
    clean,
    entered,
    recorded,
    refuse_other,
    tell_edited,
)
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks
from textmill.runtime.seeds import fold, seed_everything
from textmill.tasks.batches.row_batches import MixedBatches
from textmill.training.loop import Trainer
from textmill.training.own_trainer import check_takes_task, check_trainer, fit

LOG = logging.getLogger("textmill")


def train(
    recipe: str | Path | Recipe,
    overrides: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    run_dir: str | Path | None = None,
    again: bool = False,
    extend: bool = False,
    allow_code: bool = False,
    device: str = "auto",
) -> Run:
    """Trains a recipe, or goes on training it: the same call resumes a run that was interrupted.

    Args:
        recipe: A script, an experiment's name, a YAML file, a Recipe, or a run to go on with.
        overrides: Settings as on the command line, ``"optimizer.lr=1e-3"``, or a dictionary of
            values by their dotted names, ``{"optimizer.lr": 1e-3}``, nested ones too.
        configs: YAML files of settings, later ones win.
        run_dir: The run folder; by default ``runs/<recipe>/<key>``.
        again: Trains anew although the run exists, in the next free folder.
        extend: Goes on with the run that exists though the length that is asked for is another.
        allow_code: Whether code that a run folder brings may be executed.
        device: ``auto``, or a device as torch names it.

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
    if again and extend:
        words = worded("--again", "again=True"), worded("--extend", "extend=True")
        raise UserError(f"{words[0]} trains anew, {words[1]} goes on: leave one of them out.")
    with Ranks(Env.detect(device)) as ranks:
        return train_ranks(
            recipe,
            overrides,
            configs=configs,
            run_dir=run_dir,
            again=again,
            extend=extend,
            allow_code=allow_code,
            ranks=ranks,
        )


def train_ranks(
    recipe: str | Path | Recipe,
    overrides: Overrides,
    *,
    configs: Sequence[str | Path],
    run_dir: str | Path | None,
    again: bool,
    extend: bool,
    allow_code: bool,
    ranks: Ranks,
) -> Run:
    """Trains as :func:`train`, as one of ranks that have found each other."""
    run = run_named(recipe)
    if run is not None and not again:
        refuse_other(run, run_dir)
        if not (overrides or configs) and RunFolder(run).finished:
            return ended_run(RunFolder(run))  # whoever made it, no code is needed to say so
    plan = partial(plan_recipe, targets=["trainer"], allow_code=allow_code)
    planned = plan(recipe, overrides, configs=configs)
    refuse_before_start(planned)
    goes_on = planned.run is not None and not again
    named = goes_on or run_dir is not None
    start = partial(start_session, planned, env=ranks.env, overrides=tuple(words_of(overrides)))

    def found() -> RunFolder:
        folder = choose_folder(planned, run_dir=run_dir, again=again)
        read = partial(read_data, start(folder), planned.plan, None)
        options: dict[str, Any] = {"changes": changes(folder), "read": read, "extend": extend}
        return run_of_data(folder, planned, named=named, **options)

    def changes(folder: RunFolder) -> dict[str, Any]:
        if not goes_on:
            return length_changes(folder, planned.plan) if extend and folder.info else {}
        moved = moved_settings(folder, planned.plan)
        return allowed_changes(planned, plan(recipe), moved=moved)

    folder = RunFolder(Path(ranks.from_main(lambda: str(found().path))))
    if ranks.from_main(lambda: is_finished(folder, planned, extend=extend)):
        return ended_run(folder, planned)
    if not ranks.env.is_main:
        return _fit(planned, folder, changes(folder), start(folder), ranks=ranks)
    with entered(folder.path):
        # By the process that had the folder until now.
        if ranks.size == 1 and is_finished(folder, planned, extend=extend):
            return ended_run(folder, planned)
        tell_edited(folder, planned)
        clean(folder, key=None if goes_on else run_key(planned.plan))
        if ranks.restart:
            LOG.warning(ranks.restart)
        return _fit(planned, folder, changes(folder), start(folder), ranks=ranks)


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


def _fit(
    planned: Planned,
    folder: RunFolder,
    changes: Mapping[str, Any],
    session: Session,
    *,
    ranks: Ranks,
) -> Run:
    with recorded(folder, writes=ranks.env.is_main), pretrained_of(folder) as pretrained:
        _make_wrapped(session, planned.plan, folder, ranks)
        with ranks.main_first():  # others find what it has fitted and encoded, and in run.json all
            trainer, built, found = build_trainer(session, planned.plan, folder, changes)
            if ranks.env.is_main:
                facts = _facts(session, planned.plan, folder, trainer)
                record_changes(folder, changes)  # not before all that can refuse to go on
                facts |= {**found, "pretrained": pretrained.keep()}
                begin_run(planned, folder, session, built=built, facts=facts)
                if isinstance(trainer, Trainer):  # another cannot say what it saves
                    check_disk(trainer)
                LOG.info("Run folder: %s", folder.path)  # not before all that can be refused
                if ranks.size > 1:
                    LOG.info("%d ranks train together.", ranks.size)
        result = fit(trainer, session.get("task"), folder.path, ranks)
        if not ranks.env.is_main:
            return Run(folder.path, result)
        if isinstance(trainer, Trainer) and (sources := source_epochs(trainer)):
            result["sources"] = sources
        if exports := exports_of(planned.plan):
            from textmill.runs.export import export_trained

            result["exports"] = export_trained(folder.path, exports, session)
        folder.write_info(finished=True, result=result)
    return Run(folder.path, result)


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
    found = {"max_tokens": cells, **settle_precision(trainer, folder)}
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

"""Several runs of one config: each combination of values, or what Optuna proposes.

A config asks for it by ``hydra.mode: MULTIRUN``, as the template's ``hparams_search`` does, and a
person by ``-m``.
"""

import hashlib
import itertools
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textmill.config.registry import suggest
from textmill.errors import UserError
from textmill.interop.hydra.config import (
    ComposedConfig,
    ConfigError,
    HydraRun,
    compose_config,
    refusals,
)
from textmill.interop.hydra.reporting import split_and_name
from textmill.metrics.tables import format_value
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import numbers
from textmill.runs.resume import Run
from textmill.runs.run_lock import entered
from textmill.runs.study import Study, import_optuna
from textmill.runtime.jsonl_log import read_lines

LOG = logging.getLogger("textmill")
COMMAND = "hydra/sweeper=optuna"


def sweeps_in(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The words that set one value, and Hydra's sweep for each other one by its name.

    Example:
        >>> plain, sweeps = sweeps_in(["trainer=cpu", "model.lr=0.1,0.2"])
        >>> plain, list(sweeps)
        (['trainer=cpu'], ['model.lr'])
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    with refusals("with these words"):
        read = OverridesParser.create().parse_overrides([*words])
    both = [*zip(words, read, strict=True)]
    plain = [word for word, each in both if not each.is_sweep_override()]
    return plain, {
        word.partition("=")[0]: each.value() for word, each in both if each.is_sweep_override()
    }


def search(
    run: HydraRun,
    typed: Mapping[str, Any],
    train: Callable[[ComposedConfig, Path], Run],
    *,
    run_dir: str | Path | None,
    again: bool,
) -> Run:
    """Trains all in one folder, one after the other; the same command goes on with them.

    ``typed`` are the sweeps of the command line, which replace those of the sweeper. Returns the
    best run that Optuna found; if all combinations were trained, the last.
    """
    base, settings = run.composed, run.composed.sweeper
    params = settings.get("params") or {}
    fixed, sweeps = sweeps_in([f"{name}={value}" for name, value in params.items()])
    sweeps |= typed
    if not sweeps or any(_values(sweep) == [] for sweep in sweeps.values()):
        raise ConfigError(
            "nothing is searched: hydra.sweeper.params or a word of the command line has to give "
            "each setting several values."
        )

    def composed(words: Sequence[str]) -> ComposedConfig:
        return compose_config(base.folder, base.name, [*fixed, *base.words, *words])

    first = {name: (_values(sweep) or [sweep.start])[0] for name, sweep in sweeps.items()}
    composed([f"{name}={value}" for name, value in first.items()]).resolved("RUN")
    of_optuna = "optuna" in str(settings.get("_target_", ""))
    deciding = [settings.get(name) for name in ("direction", "sampler", "study_name")]
    content = [run.key, {name: str(sweep) for name, sweep in sweeps.items()}, deciding]
    digest = hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()[:12]
    folder = RunFolder.place(run.name, f"search-{digest}", run_dir, again=again)
    if of_optuna:
        return _by_optuna(base, settings, sweeps, composed, train, folder.path)
    axes = []
    for name, sweep in sweeps.items():
        if (values := _values(sweep)) is None:
            raise UserError(
                f"{name}={sweep}: has no end of values. Name them (0.1,0.2), or let Optuna "
                f"choose: {COMMAND}."
            )
        axes.append([f"{name}={value}" for value in values])
    done, count = None, math.prod(map(len, axes))
    with entered(folder.path):
        for number, words in enumerate(itertools.product(*axes)):
            LOG.info("Run %d of %d: %s", number + 1, count, " ".join(words))
            done = train(composed(words), folder.path / f"{number:03d}")
    assert done is not None, "a sweep has values"
    return done


def _values(sweep: Any) -> list[str] | None:
    """The values of a sweep as words; None for an interval."""
    from hydra.core.override_parser.types import ChoiceSweep, RangeSweep, Transformer

    if isinstance(sweep, ChoiceSweep):
        return [str(Transformer.encode(value)) for value in sweep.list]
    return [str(v) for v in sweep.range()] if isinstance(sweep, RangeSweep) else None


def _by_optuna(
    base: ComposedConfig,
    settings: Mapping[str, Any],
    sweeps: Mapping[str, Any],
    composed: Callable[[Sequence[str]], ComposedConfig],
    train: Callable[[ComposedConfig, Path], Run],
    folder: Path,
) -> Run:
    """Makes the trials that are left; returns the run of the best."""
    optuna = import_optuna(COMMAND)
    metric = str(base.resolved("RUN").get("optimized_metric") or "")
    if not metric:
        raise UserError("optimized_metric: wanted the value that Optuna optimizes, as val/loss.")
    total = settings.get("n_trials") or 20
    direction = str(settings.get("direction") or "minimize")
    sampled = dict(settings.get("sampler") or {"_target_": "optuna.samplers.TPESampler"})
    if not isinstance(total, int):
        raise ConfigError(f"hydra.sweeper.n_trials={total}: wanted a number.")
    if sampled["_target_"].endswith("GridSampler"):
        grid = {name: _values(sweep) or [] for name, sweep in sweeps.items()}
        total = min(total, math.prod(map(len, grid.values())))  # each is tried once
        sampled["search_space"] = grid

    def sampler(number: int) -> Any:
        from hydra.utils import instantiate

        with refusals(base.name):
            seed = int(sampled.get("seed") or 0)  # by it a grid is shuffled, once
            return instantiate({**sampled, "seed": seed + number * ("search_space" not in sampled)})

    with refusals(base.name):
        spaces = {name: _space(optuna.distributions, sweep) for name, sweep in sweeps.items()}
        sampler(0)  # what is wrong with it is told before anything is written
        optuna.create_study(direction=direction)
    with entered(folder):
        study = Study(
            folder,
            str(settings.get("study_name") or "hydra"),
            total,
            spaces,
            sampler,
            what=COMMAND,
            direction=direction,
        )
        while (trial := study.take()) is not None:
            number, words = trial.number, [f"{n}={v}" for n, v in trial.params.items()]
            LOG.info("Trial %d: %s", number, " ".join(words))
            run = train(composed(words), folder / f"{number:03d}")
            value = _measured(run, metric)  # of one that fails the trial stays open
            study.tell(number, value)
            LOG.info("Trial %d: %s %s", number, metric, format_value(metric, value))
        best = study.study.best_trial
        words = [f"{name}={value}" for name, value in best.params.items()]
        shown = format_value(metric, best.value)
        LOG.info("The best of %d: %s with %s %s", len(study.trials), " ".join(words), metric, shown)
    place = RunFolder(folder / f"{best.number:03d}")
    return Run(place.path, place.result)


def _space(distributions: Any, sweep: Any) -> Any:
    from hydra.core.override_parser.types import IntervalSweep

    if isinstance(sweep, IntervalSweep):
        ends, log = (sweep.start, sweep.end), "log" in sweep.tags
        if all(isinstance(end, int) for end in ends):
            return distributions.IntDistribution(*ends, log=log)
        return distributions.FloatDistribution(*ends, log=log)
    return distributions.CategoricalDistribution(_values(sweep))


def _measured(run: Run, metric: str) -> float:
    """The last value that a run has logged under a name."""
    wanted = split_and_name(metric, "valid")
    found, known = None, dict[str, None]()
    for line in read_lines(run.folder / "metrics.jsonl"):
        for name, value in numbers(line).items():
            split = str(line.get("split"))
            known[f"{split}/{name}"] = None
            found = value if (split, name) == wanted else found
    if found is None or not math.isfinite(found):
        hint = suggest("/".join(wanted), known)
        raise UserError(
            f"optimized_metric={metric}: {run.folder} has logged "
            f"{'no such value' if found is None else found}. {hint}It has: {', '.join(known)}."
        )
    return found

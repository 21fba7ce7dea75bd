"""Several runs of one config: each combination of values, or what Optuna proposes.

A config says so by ``hydra.mode: MULTIRUN``, as the template's ``hparams_search`` does, and a
person by ``-m``. Hydra's plugin for Optuna wants it below 3; its settings are read here.
"""

import hashlib
import itertools
import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.registry import suggest
from textmill.errors import Problem, RunStoppedError, UserError
from textmill.interop.hydra.config import (
    ComposedConfig,
    ConfigError,
    compose_config,
    not_an_override,
)
from textmill.interop.hydra.logged_names import split_and_name
from textmill.interop.hydra.sweeper import kind_of, wrong_settings
from textmill.interop.hydra.targets import locate
from textmill.metrics.tables import format_value
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import numbers
from textmill.runs.resume import Run
from textmill.runs.run_lock import entered
from textmill.runs.study import Study, import_optuna
from textmill.runtime.jsonl_log import read_lines

LOG = logging.getLogger("textmill")
COMMAND = "hydra/sweeper=optuna"
MOST_RUNS = 10_000
"""Combinations of values that are run one after the other."""
_SAMPLERS = {
    "tpe": "TPESampler", "random": "RandomSampler", "cmaes": "CmaEsSampler",
    "nsgaii": "NSGAIISampler", "motpe": "TPESampler", "grid": "BruteForceSampler",
}  # fmt: skip
"""The classes of Optuna for what ``hydra/sweeper/sampler=`` can name."""

Train = Callable[[ComposedConfig, Path], Run]


def sweeps_in(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The words that set one value, and of the others what each stands for, by its name.

    Raises:
        ConfigError: A word is not one of Hydra's.

    Example:
        >>> plain, sweeps = sweeps_in(["trainer=cpu", "model.lr=0.1,0.2"])
        >>> plain, list(sweeps)
        (['trainer=cpu'], ['model.lr'])
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import OverrideParseException

    plain: list[str] = []
    sweeps: dict[str, Any] = {}
    for word in words:
        try:
            (found,) = OverridesParser.create().parse_overrides([word])
        except OverrideParseException as error:
            raise ConfigError("that is asked for", [not_an_override(error)]) from error
        if found.is_sweep_override():
            sweeps[word.partition("=")[0]] = found.value()
        else:
            plain.append(word)
    return plain, sweeps


@dataclass(frozen=True)
class HydraSearch:
    """Several runs in one folder, one after the other; the same command goes on with them.

    Args:
        base: The config without what is searched.
        words: What was typed of single values.
        sweeps: What stands for several, by its name: of the command line, and of
            ``hydra.sweeper.params`` where that has another.
    """

    base: ComposedConfig
    words: tuple[str, ...]
    sweeps: Mapping[str, Any]

    @classmethod
    def of(
        cls, base: ComposedConfig, words: Sequence[str], typed: Mapping[str, Any]
    ) -> "HydraSearch":
        """The search that a config and words describe.

        Raises:
            ConfigError: A parameter of the sweeper cannot be read, or none is there.
        """
        settings = base.sweeper
        if problems := [*wrong_settings(settings, base.written)]:
            raise ConfigError(base.name, problems)
        params = settings.get("params") or settings.get("search_space") or {}
        written = [f"{n}={v}" for n, v in params.items() if not isinstance(v, Mapping)]
        fixed, sweeps = sweeps_in(written)
        spaces = {n: v for n, v in params.items() if isinstance(v, Mapping)}
        found = {**spaces, **sweeps, **typed}
        if not found:
            why = "nothing is searched: hydra.sweeper.params is empty, and no word has two values."
            raise ConfigError(base.name, [Problem(why, base.written.place("hydra.mode"))])
        if empty := [n for n, sweep in found.items() if _values(sweep) == []]:
            problems = [
                base.written.problem(name, f"{found[name]} has no value.") for name in empty
            ]
            raise ConfigError(base.name, problems)
        return cls(base, (*fixed, *words), found)

    @property
    def is_of_optuna(self) -> bool:
        """Whether Optuna proposes values; else each combination is run."""
        return "optuna" in str(self.base.sweeper.get("_target_", ""))

    @property
    def study_name(self) -> str:
        """What the config calls Optuna's study; nothing where it does not."""
        return str(self.base.sweeper.get("study_name") or "")

    def folder(self, name: str, key: str, *, run_dir: str | Path | None, again: bool) -> RunFolder:
        """Where the runs are: below the folder that is named, or one of the search's own key."""
        deciding = ["direction", "sampler", *(["study_name"] if self.study_name else [])]
        settings = {n: self.base.sweeper.get(n) for n in deciding}
        said = json.dumps([key, {n: str(s) for n, s in self.sweeps.items()}, settings], default=str)
        digest = hashlib.sha256(said.encode()).hexdigest()[:12]
        if run_dir is None:
            return RunFolder.place(name, f"search-{digest}", again=again)
        return RunFolder(Path(run_dir)).free() if again else RunFolder(Path(run_dir))

    def run(self, folder: Path, train: Train) -> Run:
        """Trains all; gives the best run, or the last where nothing says which is.

        Raises:
            ConfigError: The config does not take a name that is searched.
            UserError: A value that is searched is continuous, and Optuna is not asked; or the
                value to optimize was not logged.
        """
        self.composed([f"{name}={_first(sweep)}" for name, sweep in self.sweeps.items()])
        with entered(folder):
            if self.is_of_optuna:
                if (jobs := self.base.sweeper.get("n_jobs")) not in (None, 1):
                    LOG.info("hydra.sweeper.n_jobs=%s: of no effect here, one at a time.", jobs)
                return _Trials(self, folder, train).best()
            done = None
            combinations = list(self._combinations())
            for number, words in enumerate(combinations):
                LOG.info("Run %d of %d: %s", number + 1, len(combinations), " ".join(words))
                done = train(self.composed(words), folder / f"{number:03d}")
        assert done is not None, "a sweep has values"
        return done

    def composed(self, words: Sequence[str]) -> ComposedConfig:
        """The config of one of the runs."""
        written = self.base.written
        return compose_config(written.folder, self.base.name, [*self.words, *words])

    def _combinations(self) -> Iterator[list[str]]:
        axes = []
        for name, sweep in self.sweeps.items():
            values = _values(sweep)
            if values is None:
                raise UserError(
                    f"{name}={sweep}: has no end of values. Name them (0.1,0.2), or let Optuna "
                    "choose: hydra/sweeper=optuna."
                )
            axes.append([f"{name}={value}" for value in values])
        if (count := math.prod(map(len, axes))) > MOST_RUNS:
            raise UserError(f"{count:,} combinations; {MOST_RUNS:,} are run at most.")
        yield from map(list, itertools.product(*axes))


def _first(sweep: Any) -> Any:
    """A value of a sweep."""
    if isinstance(sweep, Mapping):
        return sweep["choices"][0] if kind_of(sweep) == "categorical" else sweep["low"]
    values = _values(sweep)
    return sweep.start if values is None else values[0]


def _values(sweep: Any) -> list[str] | None:
    """The values of a sweep as words; None of an interval."""
    from hydra.core.override_parser.types import ChoiceSweep, RangeSweep, Transformer

    if isinstance(sweep, ChoiceSweep):
        return [str(Transformer.encode(value)) for value in sweep.list]
    return [str(v) for v in sweep.range()] if isinstance(sweep, RangeSweep) else None


class _Trials:
    """The trials of a search that Optuna proposes, one after the other."""

    def __init__(self, search: HydraSearch, folder: Path, train: Train) -> None:
        import_optuna(COMMAND)
        self.search, self.folder, self.train = search, folder, train
        self.settings = search.base.sweeper
        self.metric = search.base.resolved("RUN").get("optimized_metric")
        if not self.metric:
            raise UserError(
                "optimized_metric: wanted the value that Optuna optimizes, as val/loss; the config "
                "has none."
            )
        self._sampler(0)  # what is wrong with it is told before anything is written
        self.study = Study(
            folder,
            search.study_name or "hydra",
            int(self.settings.get("n_trials") or 20),
            self._sampler,
            what=COMMAND,
            direction=str(self.settings.get("direction") or "minimize"),
        )

    def best(self) -> Run:
        """Makes the trials that are not made yet; gives the run of the best.

        Raises:
            UserError: Each trial failed.
        """
        while (trial := self.study.take()) is not None:
            self._make(trial)
        if self._failed == (count := len(self.study.trials)):
            raise UserError(f"{self.folder}: each of the {count} trials failed.")
        best = self.study.study.best_trial
        shown = format_value(str(self.metric), best.value)
        words = " ".join(f"{name}={value}" for name, value in best.params.items())
        LOG.info("The best of %d: %s with %s %s", self.study.total, words, self.metric, shown)
        place = RunFolder(self._place(best.number))
        return Run(place.path, place.result)

    @property
    def _failed(self) -> int:
        """Trials that failed, and are not made again."""
        return sum(trial.state.name == "FAIL" for trial in self.study.trials)

    def _make(self, trial: Any) -> None:
        """Makes a trial; one that fails beyond what is allowed stays open, and is made again."""
        number, sweeps = trial.number, self.search.sweeps
        words = [f"{name}={_suggested(trial, name, sweep)}" for name, sweep in sweeps.items()]
        LOG.info("Trial %d: %s", number, " ".join(words))
        try:
            run = self.train(self.search.composed(words), self._place(number))
            value = self._measured(run)
        except RunStoppedError:
            raise
        except Exception as error:
            rate = float(self.settings.get("max_failure_rate") or 0.0)
            if self._failed + 1 > rate * self.study.total:
                raise
            self.study.tell(number, state="FAIL")
            LOG.warning("Trial %d failed: %s: %s", number, type(error).__name__, error)
            return
        self.study.tell(number, value)
        LOG.info("Trial %d: %s %s", number, self.metric, format_value(str(self.metric), value))

    def _measured(self, run: Run) -> float:
        """The last value of that name that a run has logged."""
        wanted = split_and_name(str(self.metric), "valid")
        found, known = None, dict[str, None]()
        for line in read_lines(run.folder / "metrics.jsonl"):
            for name, value in numbers(line).items():
                split = str(line.get("split"))
                known[f"{split}/{name}"] = None
                found = value if (split, name) == wanted else found
        if found is None or not math.isfinite(found):
            hint = suggest("/".join(wanted), known)
            raise UserError(
                f"optimized_metric={self.metric}: {run.folder} has logged "
                f"{'no such value' if found is None else found}. {hint}It has: {', '.join(known)}."
            )
        return found

    def _place(self, number: int) -> Path:
        return self.folder / f"{number:03d}"

    def _sampler(self, number: int) -> Any:
        """The sampler that is asked for; seeded by the trial, so that a restart changes nothing."""
        given = dict(self.settings.get("sampler") or {"_target_": "tpe"})
        target = str(given.pop("_target_"))
        name = _SAMPLERS.get(target.rpartition(".")[2])
        kind = locate(f"optuna.samplers.{name}" if name else target)
        given["seed"] = int(given.get("seed") or 0) + number
        try:
            return kind(**{n: v for n, v in given.items() if not n.startswith("_")})
        except TypeError as error:
            raise UserError(f"hydra.sweeper.sampler: {error}") from error


def _suggested(trial: Any, name: str, sweep: Any) -> str:
    """What a study proposes for a setting, as a word of Hydra's."""
    from hydra.core.override_parser.types import IntervalSweep, RangeSweep

    if isinstance(sweep, Mapping):  # the sweeper's older way to write it
        kind, step = kind_of(sweep), sweep.get("step")
        if kind == "categorical":
            return str(trial.suggest_categorical(name, list(sweep["choices"])))
        log = bool(sweep.get("log"))
        if kind == "int":
            return str(
                trial.suggest_int(name, sweep["low"], sweep["high"], step=step or 1, log=log)
            )
        return repr(trial.suggest_float(name, sweep["low"], sweep["high"], step=step, log=log))
    if isinstance(sweep, IntervalSweep):
        ends, log = (sweep.start, sweep.end), "log" in sweep.tags
        if all(isinstance(end, int) for end in ends):
            return str(trial.suggest_int(name, *ends, log=log))
        return repr(trial.suggest_float(name, *ends, log=log))
    if isinstance(sweep, RangeSweep) and isinstance(sweep.start, int):
        stop, step = int(sweep.stop or 0), int(sweep.step)
        return str(trial.suggest_int(name, sweep.start, stop, step=step))
    return str(trial.suggest_categorical(name, _values(sweep)))

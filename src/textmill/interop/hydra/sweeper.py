"""The settings of Hydra's sweeper, of the plugin for Optuna too: what of them can be no search."""

from collections.abc import Iterator, Mapping
from typing import Any

from textmill.config.registry import suggest
from textmill.errors import Problem
from textmill.interop.hydra.config import WrittenConfigs
from textmill.interop.hydra.stand_ins import SWEEPER

_SPACES = ("float", "int", "categorical")
"""The types of a space that is written out."""


def wrong_settings(settings: Mapping[str, Any], written: WrittenConfigs) -> Iterator[Problem]:
    """What of a sweeper's settings can be no search."""
    place = "hydra.sweeper"
    if "optuna" in str(settings.get("_target_", "")):
        yield from _wrong_of_optuna(settings, written)
    trials, direction = settings.get("n_trials"), settings.get("direction") or "minimize"
    if trials is not None and (not isinstance(trials, int) or trials < 1):
        why = f"wanted a number of runs from 1, found {trials!r}."
        yield written.problem(f"{place}.n_trials", why, trials)
    if direction not in ("minimize", "maximize"):
        why = f"wanted minimize or maximize, found {direction!r}."
        yield written.problem(f"{place}.direction", why)
    sampler = settings.get("sampler") or {}
    seed = sampler.get("seed") if isinstance(sampler, Mapping) else None
    if seed is not None and not isinstance(seed, int):
        yield written.problem(f"{place}.sampler.seed", f"wanted a whole number, found {seed!r}.")
    params = settings.get("params") or settings.get("search_space") or {}
    if not isinstance(params, Mapping):
        yield written.problem(f"{place}.params", f"wanted values by name, found {params!r}.")
        return
    for name, space in params.items():
        if kind_of(space) not in ("", *_SPACES):
            why = f"wanted a type of {', '.join(_SPACES)}, found {kind_of(space)!r}."
            yield written.problem(f"{place}.params.{name}", why)
            continue
        needed = ["choices"] if kind_of(space) == "categorical" else ["low", "high"]
        if isinstance(space, Mapping) and (
            lacks := [n for n in needed if space.get(n) in (None, [])]
        ):
            why = f"a space of the type {kind_of(space)} needs {' and '.join(lacks)}."
            yield written.problem(f"{place}.params.{name}", why)


_NOT_HERE = {
    "storage": "what a study knows is in trials.jsonl of its folder, a journal of Optuna's",
    "custom_search_space": "a space that code makes is not read; params takes all kinds",
}
"""Settings of the plugin that are not honoured, and why."""


def _wrong_of_optuna(settings: Mapping[str, Any], written: WrittenConfigs) -> Iterator[Problem]:
    place = "hydra.sweeper"
    for name in sorted(settings.keys() - SWEEPER.keys() - {"sampler"}):
        why = f"Optuna's sweeper has no '{name}'. {suggest(name, SWEEPER)}"
        yield written.problem(f"{place}.{name}", why.rstrip())
    for name, why in _NOT_HERE.items():
        if (value := settings.get(name)) is not None:
            yield written.problem(f"{place}.{name}", f"found {value!r}: {why}. Leave it null.")
    rate = settings.get("max_failure_rate") or 0.0
    if not isinstance(rate, int | float) or not 0 <= rate <= 1:
        why = f"wanted a share of the runs from 0 to 1, found {rate!r}."
        yield written.problem(f"{place}.max_failure_rate", why, rate)


def kind_of(space: Any) -> str:
    """The type of a space that is written out; nothing of values that are not."""
    return str(space.get("type", "float")) if isinstance(space, Mapping) else ""

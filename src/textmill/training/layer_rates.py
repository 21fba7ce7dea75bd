"""Learning rates by layer: where a parameter stands, whether it learns, and how fast."""

import difflib
import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mode
from typing import Any

import torch
from torch import nn

from textmill.errors import UserError

SHOWN_NAMES = 5
"""Names of parameters in an error; a model has hundreds."""


def depths(module: nn.Module) -> dict[nn.Parameter, int]:
    """How deep each parameter of a stack of layers lies: 1 in the last layer, 2 in the one before.

    A stack is an ``nn.ModuleList`` that is in no other; each counts for itself, so an encoder's
    last layer and a decoder's are both 1 deep.
    """
    found: dict[nn.Parameter, int] = {}
    for stack in _stacks(module):
        layers = [list(layer.parameters()) for layer in stack]
        filled = [parameters for parameters in layers if parameters]
        for index, parameters in enumerate(filled):
            for parameter in parameters:
                found.setdefault(parameter, len(filled) - index)
    return found


def input_parameters(module: nn.Module) -> set[nn.Parameter]:
    """The parameters of embeddings: of parts whose class is called that, outside the stacks."""
    parts = (part for part in module.modules() if "Embedding" in type(part).__name__)
    return {parameter for part in parts for parameter in part.parameters()} - depths(module).keys()


def hidden_matrices(module: nn.Module) -> set[nn.Parameter]:
    """The matrices of the layers; of a module without a stack, all that embed nothing."""
    inside = depths(module).keys() or set(module.parameters()) - input_parameters(module)
    return {parameter for parameter in inside if parameter.ndim == 2}


def layer_width(module: nn.Module) -> int | None:
    """How many features the layers have: what most sides of their matrices have.

    None: there is no layer.
    """
    sides = [side for matrix in hidden_matrices(module) for side in matrix.shape]
    return mode(sorted(sides)) if sides else None


def matching(module: nn.Module, globs: Iterable[str], *, setting: str) -> Iterator[nn.Parameter]:
    """The parameters whose name matches one of the globs, where ``*`` is any text, dots included.

    A tied parameter has several names. A glob that matches nothing is refused, by its ``setting``.
    """
    named = list(module.named_parameters(remove_duplicate=False))
    for glob in globs:
        found = [parameter for name, parameter in named if fnmatch.fnmatchcase(name, glob)]
        if not found:
            raise UserError(
                f"{setting} names '{glob}', which no parameter of the module matches. "
                f"{_nearest(glob, [name for name, _ in named])}"
            )
        yield from found


def _stacks(module: nn.Module) -> Iterator[nn.ModuleList]:
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield child
        else:
            yield from _stacks(child)


def _nearest(glob: str, names: Sequence[str]) -> str:
    parts = {".".join(name.split(".")[:end]) for name in names for end in range(1, name.count("."))}
    parts |= {name.partition(".")[0] for name in names if "." in name}
    known = [*(f"{part}.*" for part in sorted(parts)), *names]
    if glob.startswith("*."):  # compared with what stands between two dots, not with whole names
        known = [f"*.{word}.*" for word in sorted({w for part in parts for w in part.split(".")})]
    near = difflib.get_close_matches(glob, known, n=3)
    if near:
        return f"Did you mean {' or '.join(repr(name) for name in near)}?"
    more = f", ... ({len(names)} names)" if len(names) > SHOWN_NAMES else ""
    return f"Names are: {', '.join(names[:SHOWN_NAMES])}{more}."


Groups = list[dict[str, Any]]


def freeze(module: nn.Module, globs: Sequence[str]) -> str | None:
    """Holds the parameters that match still: they get no gradient, and no optimizer has them.

    Returns a line that says how many are frozen; None where none was asked for.
    """
    for parameter in matching(module, globs, setting="optimizer.freeze"):
        parameter.requires_grad_(False)
    if not globs:
        return None
    every = list(module.parameters())
    frozen = [parameter for parameter in every if not parameter.requires_grad]
    if len(frozen) == len(every):
        raise UserError(
            f"optimizer.freeze={list(globs)} freezes all {len(every)} tensors of the module; "
            "nothing is left to train."
        )
    counts = [sum(p.numel() for p in parameters) for parameters in (frozen, every)]
    return (
        f"Frozen: {counts[0]:,} of {counts[1]:,} parameters, "
        f"in {len(frozen):,} of {len(every):,} tensors."
    )


def rate_factors(
    module: nn.Module, *, rates: Mapping[str, float], layer_decay: float
) -> dict[nn.Parameter, float]:
    """The factor on the learning rate of each parameter for which it is not 1.

    With ``layer_decay`` d a layer that lies k deep in its stack (1: the last) has d ** k, the
    embeddings have d ** (n + 1) below the longest stack's n layers, and all else 1 (Clark et al.
    2020, section 3.2; in the numbering of Bao et al. 2022). ``rates`` are factors by glob on top of
    that; of several that match the last counts.
    """
    factors: dict[nn.Parameter, float] = {}
    if layer_decay != 1:
        deep = depths(module)
        if not deep:
            raise UserError(
                f"optimizer.layer_decay={layer_decay} needs a stack of layers (an nn.ModuleList); "
                f"{type(module).__name__} has none. Write optimizer.rates by name instead."
            )
        deep |= dict.fromkeys(input_parameters(module), max(deep.values()) + 1)
        factors = {parameter: layer_decay**depth for parameter, depth in deep.items()}
    chosen = {
        parameter: factor
        for glob, factor in rates.items()
        for parameter in matching(module, [glob], setting="optimizer.rates")
    }
    return factors | {p: factors.get(p, 1.0) * factor for p, factor in chosen.items()}


def split_by_rate(groups: Groups, factors: Mapping[nn.Parameter, float], *, lr: float) -> Groups:
    """Groups of one learning rate each, that of the highest first; frozen parameters are left out.

    ``lr`` is the rate of groups that say none, and 1 the factor of parameters that have none.
    """
    split: Groups = []
    for group in groups:
        by_factor: dict[float, list[nn.Parameter]] = {}
        for parameter in group["params"]:
            if parameter.requires_grad:
                by_factor.setdefault(factors.get(parameter, 1.0), []).append(parameter)
        rate = group.get("lr", lr)
        split += [
            {**group, "params": parameters, "lr": rate * factor}
            for factor, parameters in sorted(by_factor.items(), key=lambda item: -item[0])
        ]
    return split


def present_rate(optimizer: torch.optim.Optimizer, peaks: Sequence[float]) -> float:
    """The optimizer's own rate as the schedule has it now, whatever factors its groups have.

    ``peaks`` are the rates of the groups without the schedule.
    """
    first: float = optimizer.param_groups[0]["lr"]
    own: float = optimizer.defaults.get("lr", peaks[0])
    return first if own == peaks[0] or not peaks[0] else own * (first / peaks[0])

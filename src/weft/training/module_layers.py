"""Where each parameter of a module stands: in which layer of a stack, or at the input."""

import difflib
import fnmatch
from collections.abc import Iterable, Iterator, Sequence

from torch import nn

from weft.errors import UserError

__all__ = ["depths", "hidden_matrices", "input_parameters", "matching"]

SHOWN_NAMES = 5
"""Names of parameters in an error; a model has hundreds."""


def depths(module: nn.Module) -> dict[nn.Parameter, int]:
    """How deep each parameter of a stack of layers lies: 1 in the last layer, 2 in the one before.

    A stack is an ``nn.ModuleList`` that is in no other; each counts for itself, so an encoder's
    last layer and a decoder's are both 1 deep.

    Example:
        >>> module = nn.ModuleDict({"layers": nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])})
        >>> [(name, depths(module)[p]) for name, p in module.named_parameters() if "bias" in name]
        [('layers.0.bias', 2), ('layers.1.bias', 1)]
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
    """The parameters of embeddings: of every part whose class is called that, outside the stacks.

    Example:
        >>> module = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 1))
        >>> [len(input_parameters(module)), len(list(module.parameters()))]
        [1, 3]
    """
    parts = (part for part in module.modules() if "Embedding" in type(part).__name__)
    return {parameter for part in parts for parameter in part.parameters()} - depths(module).keys()


def hidden_matrices(module: nn.Module) -> set[nn.Parameter]:
    """The matrices of the layers; of a module without a stack, all that embed nothing."""
    inside = depths(module).keys() or set(module.parameters()) - input_parameters(module)
    return {parameter for parameter in inside if parameter.ndim == 2}


def matching(module: nn.Module, globs: Iterable[str], *, setting: str) -> Iterator[nn.Parameter]:
    """The parameters whose name matches one of the globs, where ``*`` is any text, dots included.

    Args:
        module: Its ``named_parameters`` have the names; a tied one has several.
        globs: As ``encoder.*`` or ``*.bias``.
        setting: Where the globs were written, for the error.

    Raises:
        UserError: A glob matches nothing.

    Example:
        >>> module = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
        >>> [tuple(p.shape) for p in matching(module, ["0.*"], setting="optimizer.freeze")]
        [(1, 2), (1,)]
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
    """The names, and the parts of the module, that the glob may have meant."""
    parts = {".".join(name.split(".")[:end]) for name in names for end in range(1, name.count("."))}
    parts |= {name.partition(".")[0] for name in names if "." in name}
    known = [*(f"{part}.*" for part in sorted(parts)), *names]
    near = difflib.get_close_matches(glob, known, n=3)
    if near:
        return f"Did you mean {' or '.join(repr(name) for name in near)}?"
    more = f", ... ({len(names)} names)" if len(names) > SHOWN_NAMES else ""
    return f"Names are: {', '.join(names[:SHOWN_NAMES])}{more}."

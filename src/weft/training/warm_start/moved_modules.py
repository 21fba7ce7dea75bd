"""Where another model has what a model is made of: by the same name, or one level in or out."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

__all__ = ["below", "fits", "moved", "moved_modules"]


def moved_modules(wanted: Mapping[str, Any], found: Mapping[str, Tensor]) -> dict[str, str]:
    """Submodules that the other model has one level further out or further in.

    The ``text.encoder`` of a classifier is the ``encoder`` of a tagger. A submodule is looked for
    elsewhere only where the other model has nothing of its name, and found where one place alone
    has a tensor of the same name; of several, one of the same shape.

    Args:
        wanted: The state of the model here.
        found: That of the other one.

    Returns:
        Names there by those here.

    Example:
        >>> import torch
        >>> here = {"text.encoder.weight": torch.zeros(2), "scores.bias": torch.zeros(3)}
        >>> moved_modules(here, {"encoder.weight": torch.zeros(2), "bias": torch.zeros(9)})
        {'text.encoder': 'encoder'}
        >>> moved_modules({"encoder.weight": torch.zeros(2)}, here)
        {'encoder': 'text.encoder'}
    """
    tops = sorted({key.partition(".")[0] for key in found if "." in key})
    pairs = dict[str, str]()
    for here in _submodules(wanted):
        if below(found, here) or any(here.startswith(f"{name}.") for name in pairs):
            continue
        inner, keys = here.partition(".")[2], below(wanted, here)
        places = [inner] if inner else [f"{top}.{here}" for top in tops]
        for like in (_named, fits):
            places = [
                there
                for there in places
                if any(like(wanted, found, key, moved(key, here, there)) for key in keys)
            ]
            if len(places) == 1:
                pairs[here] = places[0]
                break
    return pairs


def _submodules(keys: Iterable[str]) -> list[str]:
    """Names of modules and of modules in these, the outer ones first."""
    parts = [key.split(".")[:-1] for key in keys]
    names = dict.fromkeys(".".join(words[:depth]) for depth in (1, 2) for words in parts)
    return [name for name in names if name]


def _named(wanted: Mapping[str, Any], found: Mapping[str, Tensor], here: str, there: str) -> bool:
    return here in wanted and there in found


def below(keys: Iterable[str], name: str) -> list[str]:
    """The keys of a submodule, or all for ``""``.

    Example:
        >>> below(["encoder.weight", "encoders.weight"], "encoder")
        ['encoder.weight']
    """
    return [key for key in keys if not name or key == name or key.startswith(f"{name}.")]


def moved(key: str, here: str, there: str) -> str:
    """What a key in ``here`` is called in ``there``.

    Example:
        >>> moved("text.encoder.weight", "text.encoder", "encoder"), moved("weight", "", "old")
        ('encoder.weight', 'old.weight')
    """
    return f"{there}.{key[len(here) :].lstrip('.')}".strip(".")


def fits(wanted: Mapping[str, Any], found: Mapping[str, Tensor], here: str, there: str) -> bool:
    """Whether a tensor here can take the numbers of one there."""
    value = wanted[here]
    return isinstance(value, Tensor) and there in found and value.shape == found[there].shape

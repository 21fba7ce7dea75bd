"""Splits the state of an object into tensors and plain JSON, and joins the two again, bitwise.

Tensors go to a safetensors file, everything else into JSON with a few marked forms, all of them
objects with one key that starts with ``$``:

- ``{"$tensor": name}``: the tensor of that name; tied tensors share one name
- ``{"$float": hex}``: NaN or an infinity: the eight bytes of the float, big-endian
- ``{"$tuple": [...]}``: a tuple
- ``{"$dict": [[key, value], ...]}``: a dict whose keys are not all strings, or start with ``$``
"""

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from textmill.errors import CheckpointError

MAX_DEPTH = 64
"""No optimizer nests deeper than 5; a deeper state is one that contains itself."""

_DTYPES_REFUSED = frozenset({torch.complex128, torch.complex32})
_Identity = tuple[int, int, torch.dtype, tuple[int, ...], tuple[int, ...]]


def split_state(state: Mapping[Any, Any]) -> tuple[dict[str, Tensor], Any]:
    """Takes the tensors out of a nested state, such as ``state_dict()`` of an optimizer.

    Args:
        state: Dicts, lists, tuples, tensors, None, bool, int, float, str and numpy scalars, nested.

    Returns:
        The tensors by the dotted path of their first place (they are not copied), and the rest as
        JSON.

    Raises:
        CheckpointError: something else is in there; names its path and type.
    """
    splitter = _Splitter()
    plain = splitter.split(state, "", 0)
    return splitter.tensors, plain


def join_state(tensors: Mapping[str, Tensor], plain: Any) -> Any:
    """The inverse of :func:`split_state`: tied tensors are one object again."""
    if isinstance(plain, list):
        return [join_state(tensors, item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((key, value),) = plain.items()
        if key.startswith("$"):
            return _join_form(tensors, key, value)
    return {key: join_state(tensors, value) for key, value in plain.items()}


def _join_form(tensors: Mapping[str, Tensor], key: str, value: Any) -> Any:
    if key == "$tensor" and isinstance(value, str):
        if value not in tensors:
            raise CheckpointError(f"The tensor {value!r} is named, but not stored.")
        return tensors[value]
    if key == "$float" and isinstance(value, str):
        try:
            return struct.unpack(">d", bytes.fromhex(value))[0]
        except (ValueError, struct.error) as error:
            raise CheckpointError(f"{value!r} does not spell the bytes of a float.") from error
    if key == "$tuple" and isinstance(value, list):
        return tuple(join_state(tensors, item) for item in value)
    if key == "$dict" and isinstance(value, list):
        try:
            return {join_state(tensors, k): join_state(tensors, v) for k, v in value}
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"A dict is not stored as pairs: {error}.") from error
    raise CheckpointError(f"The form {key!r} with a {type(value).__name__} is unknown.")


class _Splitter:
    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[_Identity, str] = {}

    def split(self, value: Any, path: str, depth: int) -> Any:
        """Returns the JSON form of a value, and remembers its tensors."""
        if depth > MAX_DEPTH:
            raise CheckpointError(
                f"The state at {_short(path)} is nested deeper than {MAX_DEPTH} levels: "
                f"it may contain itself."
            )
        if isinstance(value, Tensor):
            return {"$tensor": self._name(value, path)}
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):  # JSON writes the shortest text that reads back as the same
            is_exact = math.isfinite(value)
            return float(value) if is_exact else {"$float": struct.pack(">d", value).hex()}
        if isinstance(value, Mapping):
            return self._split_mapping(value, path, depth)
        if isinstance(value, list | tuple):
            items = [self.split(v, _join(path, i), depth + 1) for i, v in enumerate(value)]
            return {"$tuple": items} if isinstance(value, tuple) else items
        raise CheckpointError(
            f"The state at {_short(path)} is a {_type_name(value)}, which is not saved: "
            f"a state is made of tensors, numbers, strings, None, lists and dicts."
        )

    def _split_mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> Any:
        pairs = [(key, self.split(v, _join(path, key), depth + 1)) for key, v in value.items()]
        if all(isinstance(key, str) and not key.startswith("$") for key, _ in pairs):
            return dict(pairs)
        return {"$dict": [[self._key(key, path), item] for key, item in pairs]}

    def _key(self, key: Any, path: str) -> Any:
        if key is None or isinstance(key, bool | int | float | str | tuple | np.generic):
            return self.split(key, _join(path, "key"), MAX_DEPTH - 4)
        raise CheckpointError(
            f"The state at {_short(path)} has a key of type {_type_name(key)}, which is not saved: "
            f"keys are strings, numbers, None and tuples of these."
        )

    def _name(self, tensor: Tensor, path: str) -> str:
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.dtype in _DTYPES_REFUSED:
            raise CheckpointError(
                f"The tensor at {_short(path)} is {tensor.dtype} in layout {tensor.layout}, "
                f"which is not saved: make it a dense tensor of a common type."
            )
        # The memory it shows and how: equal for two tensors exactly when they are tied.
        place = tensor.data_ptr(), tensor.device.index or 0
        identity = *place, tensor.dtype, tuple(tensor.shape), tensor.stride()
        if identity in self._names:
            return self._names[identity]
        name, number = path, 1
        while name in self.tensors or name in ("", "__metadata__"):  # {"a.b": x, "a": {"b": y}}
            number += 1
            name = f"{path}#{number}"
        self.tensors[name] = tensor.detach()
        if tensor.numel():  # all empty tensors have the same address and are not tied for it
            self._names[identity] = name
        return name


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _short(path: str) -> str:
    return f"'{path[:200]}'" if path else "the top"

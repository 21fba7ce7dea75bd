"""What `batch` does with a list of examples: padded tensors of integers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from textmill.errors import DataError


def collate(items: Sequence[Any], *, pad_idx: int | None = None) -> Any:
    """Examples to one batch.

    Args:
        items: Sequences of integers (lists, 1-d arrays or tensors), integers, tuples or dicts of
            these, or anything else.
        pad_idx: Fills short sequences up; None where all must be of one length.

    Returns:
        For sequences of integers a tensor int64[items, longest]; for integers int64[items]; for
        tuples and dicts a tuple or dict of batches; for anything else, text for example, a list.

    Raises:
        DataError: Lengths differ and there is no ``pad_idx``, or examples differ in kind.

    Example:
        >>> collate([([4, 5], "a"), ([6], "b")], pad_idx=0)
        (tensor([[4, 5],
                [6, 0]]), ['a', 'b'])
    """
    first = items[0]
    if isinstance(first, tuple):
        if len({len(item) for item in items}) > 1:
            raise DataError("batch: wanted tuples of one length, found several lengths.")
        return tuple(collate(part, pad_idx=pad_idx) for part in zip(*items, strict=True))
    if isinstance(first, Mapping):
        for item in items:
            if item.keys() != first.keys():
                raise DataError(
                    f"batch: wanted the keys {', '.join(map(str, first))}, "
                    f"found {', '.join(map(str, item))}."
                )
        return {key: collate([item[key] for item in items], pad_idx=pad_idx) for key in first}
    if isinstance(first, int | np.integer) and not isinstance(first, bool):
        return torch.tensor([int(item) for item in items], dtype=torch.int64)
    if isinstance(first, np.ndarray | torch.Tensor | list):
        return _padded(items, pad_idx)
    return list(items)


def _padded(items: Sequence[Any], pad_idx: int | None) -> Any:
    arrays = [np.asarray(item) for item in items]
    filled = [array for array in arrays if array.size]
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in filled):
        return list(items)
    lengths = np.array([array.size for array in arrays])
    longest = int(lengths.max())
    if pad_idx is None and (lengths != longest).any():
        raise DataError(
            f"batch: sequences of {lengths.min()} to {longest} items in one batch need pad_idx."
        )
    batch = np.full((len(arrays), longest), pad_idx or 0, dtype=np.int64)
    if filled:
        batch[np.arange(longest) < lengths[:, None]] = np.concatenate(filled)
    return torch.from_numpy(batch)

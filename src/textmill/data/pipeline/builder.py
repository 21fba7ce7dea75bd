"""The verbs: a chain that says what is done, and becomes a pipeline by ``and_return``."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from textmill.data.pipeline import cursors
from textmill.data.pipeline.cursors import Cursor, DataPipeline, PipelineNode, longest
from textmill.errors import DataError, UserError

T = TypeVar("T")
U = TypeVar("U")


class PipelineBuilder(Generic[T]):
    """A chain of verbs. Each verb gives a new chain; nothing is read before ``and_return``.

    Example:
        >>> from textmill.data import from_sequence
        >>> pipeline = from_sequence(range(5)).map(lambda n: n * n).bucket(2).and_return()
        >>> list(pipeline)
        [[0, 1], [4, 9], [16]]
    """

    def __init__(self, node: PipelineNode[T]) -> None:
        self.node = node

    def _then(
        self, words: str, verb: Callable[..., Any], **settings: Any
    ) -> "PipelineBuilder[Any]":
        """The chain with one more verb, called ``words`` in its signature."""
        return _chain(f"{self.node.signature}.{words}", [self.node], verb, **settings)

    def map(self, function: Callable[[T], U]) -> "PipelineBuilder[U]":
        """``function(item)`` of each item; an error names the item and, of read_text, the line."""
        return self._then("map", cursors.apply, function=function, keeps=False)

    def filter(self, function: Callable[[T], object]) -> "PipelineBuilder[T]":
        """The items of which ``function(item)`` is true."""
        return self._then("filter", cursors.apply, function=function, keeps=True)

    def shuffle(self, window: int, *, seed: int = 0) -> "PipelineBuilder[T]":
        """Shuffles each window of items; the order is a pure function of (seed, epoch, window).

        Args:
            window: Items held at once; the length of the data or more shuffles it whole.
            seed: Another seed gives another order.
        """
        check_count("shuffle", "window", window)
        check_count("shuffle", "seed", seed, least=0)
        words = f"shuffle({window}, seed={seed})"
        return self._then(words, cursors.shuffle, window=window, seed=seed)

    def shard(self, index: int, count: int) -> "PipelineBuilder[T]":
        """Every ``count``-th item from number ``index`` on; all indices together give all items."""
        check_count("shard", "count", count)
        check_count("shard", "index", index, least=0)
        if index >= count:
            raise UserError(f"shard: index must be below count {count}, found {index}.")
        return self._part(f"shard({index}, {count})", start=index, step=count)

    def bucket(self, n: int, *, drop_remainder: bool = False) -> "PipelineBuilder[list[T]]":
        """Lists of ``n`` items; the last is shorter, or dropped."""
        check_count("bucket", "n", n)
        drop = ", drop_remainder" if drop_remainder else ""
        words = f"bucket({n}{drop})"
        return self._then(words, cursors.bucket, n=n, drop_remainder=drop_remainder)

    def bucket_by_length(
        self,
        sizes: Sequence[tuple[int, int]],
        *,
        length: Callable[[T], int] = longest,
        skip_long: bool = False,
    ) -> "PipelineBuilder[list[T]]":
        """Lists of items of like length, each given when it is full; the rest at the end.

        Args:
            sizes: Pairs of (items in a list, longest length that goes into it).
            length: The length of an item; that of its longest part by default.
            skip_long: Leave items out that are longer than all; by default they are an error.
        """
        if not sizes:
            raise UserError(
                "bucket_by_length: wanted pairs of (items, longest length), found none."
            )
        for n, long in sizes:
            check_count("bucket_by_length", "items", n)
            check_count("bucket_by_length", "longest length", long, least=0)
        ordered = sorted(((int(n), int(long)) for n, long in sizes), key=lambda pair: pair[1])
        how: dict[str, Any] = {"sizes": ordered, "length": length, "skip_long": skip_long}
        return self._then(f"bucket_by_length({ordered})", cursors.bucket_by_length, **how)

    def pack(
        self, length: int, *, drop_remainder: bool = False
    ) -> "PipelineBuilder[NDArray[np.int64]]":
        """Joins all sequences of ids and cuts them into blocks, int64[length], without padding.

        For language models: encode with an end mark, ``shuffle``, then ``pack(512).batch(16)``.

        Args:
            length: Ids of a block; a sequence goes on in the next block where one ends.
            drop_remainder: Leave out a last block of fewer.
        """
        check_count("pack", "length", length)
        drop = ", drop_remainder" if drop_remainder else ""
        how: dict[str, Any] = {"length": length, "drop_remainder": drop_remainder}
        return self._then(f"pack({length}{drop})", cursors.pack, **how)

    def batch(
        self, n: int, *, pad_idx: int | None = None, drop_remainder: bool = False
    ) -> "PipelineBuilder[Any]":
        """Batches of ``n`` examples: int64[n, longest] of sequences of ids, a tuple of tuples.

        ``pad_idx`` fills short sequences up; the last batch is smaller, or dropped.
        """
        return self.bucket(n, drop_remainder=drop_remainder).collate(pad_idx=pad_idx)

    def collate(self, *, pad_idx: int | None = None) -> "PipelineBuilder[Any]":
        """Makes each list of examples (of bucket, bucket_by_length) a batch, as ``batch`` does."""
        return self.map(partial(collate, pad_idx=pad_idx))

    def repeat(self, n: int | None = None) -> "PipelineBuilder[T]":
        """``n`` epochs as one (each with an order of its own), or all of them without end."""
        if n is not None:
            check_count("repeat", "n", n)
        opened = partial(Cursor, partial(cursors.repeat, node=self.node, n=n), [])
        return PipelineBuilder(PipelineNode(f"{self.node.signature}.repeat({n})", opened))

    def take(self, n: int) -> "PipelineBuilder[T]":
        """The first ``n`` items of each epoch."""
        check_count("take", "n", n, least=0)
        return self._part(f"take({n})", stop=n)

    def skip(self, n: int) -> "PipelineBuilder[T]":
        """All but the first ``n`` items of each epoch."""
        check_count("skip", "n", n, least=0)
        return self._part(f"skip({n})", start=n)

    def _part(
        self, words: str, *, start: int = 0, stop: int | None = None, step: int = 1
    ) -> "PipelineBuilder[T]":
        return self._then(words, cursors.part, start=start, stop=stop, step=step)

    def prefetch(self, n: int) -> "PipelineBuilder[T]":
        """A thread makes up to ``n`` items ahead."""
        check_count("prefetch", "n", n)
        # Working ahead changes no position: a state fits the pipeline with and without it.
        opened = partial(cursors.Prefetch, self.node, n=n)
        return PipelineBuilder(PipelineNode(self.node.signature, opened))

    def and_return(self) -> DataPipeline[T]:
        """The pipeline: an iterable of which one iteration is one epoch."""
        return DataPipeline(self.node)


Pipelines = PipelineBuilder[Any] | DataPipeline[Any]


def zip_pipelines(
    pipelines: Sequence[Pipelines], *, shortest: bool = False
) -> PipelineBuilder[tuple[Any, ...]]:
    """Tuples of one item of each pipeline, which are read anew: their own positions do not matter.

    It ends with the ``shortest``; by default unequal lengths are an error.
    """
    extra = ", shortest" if shortest else ""
    return _several("zip", pipelines, cursors.zipped, extra, shortest=shortest)


def concat_pipelines(pipelines: Sequence[Pipelines]) -> PipelineBuilder[Any]:
    """The items of the first pipeline, then those of the second, and so on."""
    return _several("concat", pipelines, cursors.in_order)


def round_robin_pipelines(pipelines: Sequence[Pipelines]) -> PipelineBuilder[Any]:
    """One item of each pipeline in turn; those that have ended are left out."""
    return _several("round_robin", pipelines, cursors.in_turn)


def sample_pipelines(
    pipelines: Sequence[Pipelines], *, weights: Sequence[float] | None = None, seed: int = 0
) -> PipelineBuilder[Any]:
    """Each item from a pipeline drawn by weight, until all have ended.

    ``weights`` are one positive number each, of any sum; equal by default. The draws are a pure
    function of (seed, epoch, number of the item).
    """
    weights = [1.0] * len(pipelines) if weights is None else weights
    if len(weights) != len(pipelines) or not all(weight > 0 for weight in weights):
        raise UserError(f"sample: wanted {len(pipelines)} positive weights, found {list(weights)}.")
    check_count("sample", "seed", seed, least=0)
    weights = [float(weight) for weight in weights]
    extra = f", {weights}, seed={seed}"
    return _several("sample", pipelines, cursors.sample, extra, weights=weights, seed=seed)


def _several(
    verb: str,
    pipelines: Sequence[Pipelines],
    generator: Callable[..., Any],
    extra: str = "",
    **settings: Any,
) -> PipelineBuilder[Any]:
    """The chain that begins with a verb over several."""
    if not pipelines:
        raise UserError(f"{verb}: wanted at least one pipeline, found none.")
    nodes = [pipeline.node for pipeline in pipelines]
    signature = f"{verb}([{', '.join(node.signature for node in nodes)}]{extra})"
    return _chain(signature, nodes, generator, **settings)


def _chain(
    signature: str, nodes: Sequence[PipelineNode[Any]], verb: Callable[..., Any], **settings: Any
) -> PipelineBuilder[Any]:
    opened = partial(Cursor, partial(verb, **settings), nodes)
    return PipelineBuilder(PipelineNode(signature, opened))


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


def check_count(verb: str, name: str, value: Any, *, least: int = 1) -> None:
    """Raises unless ``value`` is an integer of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"{verb}: {name} must be an integer of at least {least}, found {value!r}.")

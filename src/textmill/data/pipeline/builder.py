"""The verbs: a chain that says what is done, and becomes a pipeline by ``and_return``."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from textmill.config.validators import refuse_read_once
from textmill.data.pipeline.collate import collate
from textmill.data.pipeline.combining import Concat, RoundRobin, Sample, Zip
from textmill.data.pipeline.grouping import Bucket, BucketByLength, Pack, Shuffle, longest
from textmill.data.pipeline.node import Cursor, DataPipeline, PipelineNode
from textmill.data.pipeline.prefetching import Prefetch
from textmill.data.pipeline.sources import SequenceSource, TextLinesSource, check_count
from textmill.data.pipeline.transforms import Apply, Repeat, Slice
from textmill.errors import UserError

T = TypeVar("T")
U = TypeVar("U")


class PipelineBuilder(Generic[T]):
    """A chain of verbs. Each verb gives a new chain; nothing is read before ``and_return``.

    Example:
        >>> pipeline = from_sequence(range(5)).map(lambda n: n * n).bucket(2).and_return()
        >>> list(pipeline)
        [[0, 1], [4, 9], [16]]
    """

    def __init__(self, node: PipelineNode[T]) -> None:
        self.node = node

    def _then(
        self, verb: str, cursor: Callable[..., Cursor[U]], **settings: Any
    ) -> "PipelineBuilder[U]":
        """The chain with one more verb, as its signature says it."""
        opened = partial(cursor, self.node, **settings)
        return PipelineBuilder(PipelineNode(f"{self.node.signature}.{verb}", opened))

    def map(self, function: Callable[[T], U]) -> "PipelineBuilder[U]":
        """``function(item)`` of each item; an error names the item and, of read_text, the line."""
        return self._then("map", Apply, function=function, keeps=False)

    def filter(self, function: Callable[[T], object]) -> "PipelineBuilder[T]":
        """The items of which ``function(item)`` is true."""
        return self._then("filter", Apply, function=function, keeps=True)

    def shuffle(self, window: int, *, seed: int = 0) -> "PipelineBuilder[T]":
        """Shuffles each window of items; the order is a pure function of (seed, epoch, window).

        Args:
            window: SequenceSource held at once; what is at least the length of the data shuffles it
                whole.
            seed: Another seed, another order.
        """
        check_count("shuffle", "window", window)
        check_count("shuffle", "seed", seed, least=0)
        return self._then(f"shuffle({window}, seed={seed})", Shuffle, window=window, seed=seed)

    def shard(self, index: int, count: int) -> "PipelineBuilder[T]":
        """Every ``count``-th item from number ``index`` on; all indices together give all items."""
        check_count("shard", "count", count)
        check_count("shard", "index", index, least=0)
        if index >= count:
            raise UserError(f"shard: index must be below count {count}, found {index}.")
        return self._then(f"shard({index}, {count})", Slice, start=index, step=count)

    def bucket(self, n: int, *, drop_remainder: bool = False) -> "PipelineBuilder[list[T]]":
        """Lists of ``n`` items; the last is shorter, or dropped."""
        check_count("bucket", "n", n)
        drop = ", drop_remainder" if drop_remainder else ""
        return self._then(f"bucket({n}{drop})", Bucket, n=n, drop_remainder=drop_remainder)

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
        return self._then(
            f"bucket_by_length({ordered})",
            BucketByLength,
            sizes=ordered,
            length=length,
            skip_long=skip_long,
        )

    def pack(
        self, length: int, *, drop_remainder: bool = False
    ) -> "PipelineBuilder[NDArray[np.int64]]":
        """Joins all sequences of ids and cuts them into blocks, int64[length], without padding.

        For language models: encode with an end mark, ``shuffle``, then ``pack(512).batch(16)``.

        Args:
            length: Ids of a block; a sequence goes on in the next block where one ends.
            drop_remainder: Leave out a last block of fewer.

        Example:
            >>> ids = from_sequence([[5, 6, 3], [7, 3], [8, 9, 3]])
            >>> [block.tolist() for block in ids.pack(4).and_return()]
            [[5, 6, 3, 7], [3, 8, 9, 3]]
        """
        check_count("pack", "length", length)
        drop = ", drop_remainder" if drop_remainder else ""
        return self._then(
            f"pack({length}{drop})", Pack, length=length, drop_remainder=drop_remainder
        )

    def batch(
        self, n: int, *, pad_idx: int | None = None, drop_remainder: bool = False
    ) -> "PipelineBuilder[Any]":
        """Batches of ``n`` examples: int64[n, longest] of sequences of ids, a tuple of tuples.

        Args:
            n: Examples in a batch.
            pad_idx: Fills short sequences up.
            drop_remainder: Leave out a last batch of fewer.
        """
        return self.bucket(n, drop_remainder=drop_remainder).collate(pad_idx=pad_idx)

    def collate(self, *, pad_idx: int | None = None) -> "PipelineBuilder[Any]":
        """Makes each list of examples (of bucket, bucket_by_length) a batch, as ``batch`` does."""
        return self.map(partial(_collate, pad_idx=pad_idx))

    def zip(
        self, *others: "Pipelines", shortest: bool = False
    ) -> "PipelineBuilder[tuple[Any, ...]]":
        """Tuples of one item of this chain and of each of the others."""
        return zip_pipelines([self, *others], shortest=shortest)

    def concat(self, *others: "Pipelines") -> "PipelineBuilder[Any]":
        """The items of this chain, then those of the others."""
        return concat_pipelines([self, *others])

    def round_robin(self, *others: "Pipelines") -> "PipelineBuilder[Any]":
        """One item of each chain in turn, until all have ended."""
        return round_robin_pipelines([self, *others])

    def sample(
        self, *others: "Pipelines", weights: Sequence[float] | None = None, seed: int = 0
    ) -> "PipelineBuilder[Any]":
        """Each item from a chain drawn by weight, until all have ended."""
        return sample_pipelines([self, *others], weights=weights, seed=seed)

    def repeat(self, n: int | None = None) -> "PipelineBuilder[T]":
        """``n`` epochs as one (each with an order of its own), or all of them without end."""
        if n is not None:
            check_count("repeat", "n", n)
        return self._then(f"repeat({n})", Repeat, n=n)

    def take(self, n: int) -> "PipelineBuilder[T]":
        """The first ``n`` items of each epoch."""
        check_count("take", "n", n, least=0)
        return self._then(f"take({n})", Slice, stop=n)

    def skip(self, n: int) -> "PipelineBuilder[T]":
        """All but the first ``n`` items of each epoch."""
        check_count("skip", "n", n, least=0)
        return self._then(f"skip({n})", Slice, start=n)

    def prefetch(self, n: int) -> "PipelineBuilder[T]":
        """A thread makes up to ``n`` items ahead; the state is that of the last item handed out."""
        check_count("prefetch", "n", n)
        # Working ahead changes no position: a state fits the pipeline with and without it.
        return PipelineBuilder(PipelineNode(self.node.signature, partial(Prefetch, self.node, n=n)))

    def and_return(self) -> DataPipeline[T]:
        """The pipeline: an iterable of which one iteration is one epoch."""
        return DataPipeline(self.node)


Pipelines = PipelineBuilder[Any] | DataPipeline[Any]


def read_text(
    path: Path | str, *, rtrim: bool = True, skip_header: int = 0
) -> PipelineBuilder[str]:
    """The lines of a UTF-8 text file.

    Args:
        path: The file. It is opened when the first item is asked for.
        rtrim: Cut white space off the end of each line; the line's own end (LF, CR LF) always goes.
        skip_header: Lines to leave out at the start.

    Raises:
        UserError: When iterated: the file cannot be read.
        DataError: When iterated: a line is not UTF-8 or longer than a megabyte; it names the line.
    """
    check_count("read_text", "skip_header", skip_header, least=0)
    cursor = partial(TextLinesSource, Path(path), rtrim=rtrim, skip_header=skip_header)
    return PipelineBuilder(PipelineNode(f"read_text(skip_header={skip_header})", cursor))


def from_sequence(items: Sequence[T]) -> PipelineBuilder[T]:
    """The items of a list or another sequence, not copied."""
    refuse_read_once(items, "from_sequence's argument")
    return PipelineBuilder(
        PipelineNode(f"from_sequence({len(items)} items)", partial(SequenceSource, items))
    )


def zip_pipelines(
    pipelines: Sequence[Pipelines], *, shortest: bool = False
) -> PipelineBuilder[tuple[Any, ...]]:
    """Tuples of one item of each pipeline, which are read anew: their own positions do not matter.

    Args:
        pipelines: Pipelines or chains.
        shortest: End with the first that ends; by default unequal lengths are an error.

    Example:
        >>> pairs = zip_pipelines([from_sequence("ab"), from_sequence([[1], [2, 3]])])
        >>> list(pairs.batch(2, pad_idx=0).and_return())
        [(['a', 'b'], tensor([[1, 0],
                [2, 3]]))]
    """
    extra = ", shortest" if shortest else ""
    return _several("zip", _nodes("zip", pipelines), Zip, extra, shortest=shortest)


def concat_pipelines(pipelines: Sequence[Pipelines]) -> PipelineBuilder[Any]:
    """The items of the first pipeline, then those of the second, and so on."""
    return _several("concat", _nodes("concat", pipelines), Concat)


def round_robin_pipelines(pipelines: Sequence[Pipelines]) -> PipelineBuilder[Any]:
    """One item of each pipeline in turn; those that have ended are left out."""
    return _several("round_robin", _nodes("round_robin", pipelines), RoundRobin)


def sample_pipelines(
    pipelines: Sequence[Pipelines], *, weights: Sequence[float] | None = None, seed: int = 0
) -> PipelineBuilder[Any]:
    """Each item from a pipeline drawn by weight, until all have ended.

    Args:
        pipelines: Pipelines or chains.
        weights: One positive number each, of any sum; equal by default.
        seed: The draws are a pure function of (seed, epoch, number of the item).
    """
    nodes = _nodes("sample", pipelines)
    weights = [1.0] * len(nodes) if weights is None else weights
    if len(weights) != len(nodes) or not all(weight > 0 for weight in weights):
        raise UserError(f"sample: wanted {len(nodes)} positive weights, found {list(weights)}.")
    check_count("sample", "seed", seed, least=0)
    weights = [float(weight) for weight in weights]
    return _several(
        "sample", nodes, Sample, f", {weights}, seed={seed}", weights=weights, seed=seed
    )


def _nodes(verb: str, pipelines: Sequence[Pipelines]) -> tuple[PipelineNode[Any], ...]:
    if not pipelines:
        raise UserError(f"{verb}: wanted at least one pipeline, found none.")
    return tuple(pipeline.node for pipeline in pipelines)


def _several(
    verb: str,
    nodes: Sequence[PipelineNode[Any]],
    cursor: Callable[..., Cursor[T]],
    extra: str = "",
    **settings: Any,
) -> PipelineBuilder[T]:
    """The chain that begins with a verb over several."""
    sources = ", ".join(node.signature for node in nodes)
    return PipelineBuilder(
        PipelineNode(f"{verb}([{sources}]{extra})", partial(cursor, nodes, **settings))
    )


def _collate(items: Sequence[Any] | Mapping[str, Any], pad_idx: int | None) -> Any:
    assert isinstance(items, Sequence)
    return collate(items, pad_idx=pad_idx)

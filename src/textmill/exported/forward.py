"""How each kind of exported model answers: from padded columns to outputs, without torch."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.exported.random_field import RandomField

Arrays = Mapping[str, NDArray[Any]]
WINDOWS = 64
"""Most parts of a context that are read in one batch."""


class ColumnGraph(Protocol):
    """A graph that can be run."""

    def run(self, arrays: Arrays, /) -> list[NDArray[Any]]: ...


def graph_inputs(columns: Arrays, lengths: Arrays) -> dict[str, NDArray[Any]]:
    """Columns and lengths by the names that a graph's inputs have."""
    return {**columns, **{f"{role}.lengths": each for role, each in lengths.items()}}


class Forward(ABC):
    """Runs a batch through a graph. Fields of a subclass are numbers or arrays."""

    name: ClassVar[str]
    """Its name in a manifest."""

    @abstractmethod
    def __call__(self, graph: ColumnGraph, columns: Arrays, lengths: Arrays) -> Iterable[Any]:
        """For each row an input of the text processor's ``decode``.

        Args:
            graph: Computes.
            columns: Padded columns by role, one place at least. *Shape:* ``[B, L, *]``.
            lengths: Real places by role. *Shape:* ``[B]``.
        """


@dataclass(frozen=True)
class RowForward(Forward):
    """The graph has an output for each row."""

    name = "row"

    @override
    def __call__(self, graph: ColumnGraph, columns: Arrays, lengths: Arrays) -> Iterable[Any]:
        outputs = graph.run(graph_inputs(columns, lengths))
        return outputs[0] if len(outputs) == 1 else zip(*outputs, strict=True)


@dataclass(frozen=True)
class TagForward(Forward):
    """The last two outputs are each word's label, as a number, and its probability."""

    name = "tags"

    @override
    def __call__(self, graph: ColumnGraph, columns: Arrays, lengths: Arrays) -> Iterable[Any]:
        *others, numbers, chances = graph.run(graph_inputs(columns, lengths))
        longest = int(lengths["words"].max(initial=0))
        if numbers.ndim != 2 or numbers.shape != chances.shape or numbers.shape[1] < longest:
            raise ValueError(f"labels of words are {numbers.shape} and {chances.shape}")
        if not np.issubdtype(numbers.dtype, np.integer) or (numbers < 0).any():
            raise ValueError("labels of words are no numbers of labels")
        return _cut(others, numbers, chances, lengths["words"])


@dataclass(frozen=True)
class CrfForward(Forward):
    """The last output scores each word's labels; a random field finds the best sequence."""

    name = "crf"
    transitions: NDArray[np.float32]
    """As :class:`RandomField` takes them."""

    @cached_property
    def field(self) -> RandomField:
        return RandomField(self.transitions)

    @override
    def __call__(self, graph: ColumnGraph, columns: Arrays, lengths: Arrays) -> Iterable[Any]:
        *others, scores = graph.run(graph_inputs(columns, lengths))
        wanted = *columns["words"].shape[:2], len(self.transitions) - 2
        if scores.shape != wanted:
            raise ValueError(f"scores of labels are {scores.shape}, not {wanted}")
        real = np.arange(scores.shape[1]) < lengths["words"][:, None]
        numbers, chances = self.field.decode_with_chances(scores, real)
        return _cut(others, numbers, chances, lengths["words"])


def _cut(
    others: Sequence[NDArray[Any]],
    numbers: NDArray[Any],
    chances: NDArray[Any],
    lengths: NDArray[Any],
) -> Iterable[Any]:
    """Each row's part of what the graph gave, of labels of words those of its words."""
    for *said, number, chance, end in zip(*others, numbers, chances, lengths.tolist(), strict=True):
        yield (*said, number[:end], chance[:end])


@dataclass(frozen=True)
class WindowForward(Forward):
    """The graph reads a question with a part of a context and scores where answers start and end.

    A context is read in parts that overlap, see
    :class:`textmill.models.readers.answer_spans.Windows`.
    """

    name = "windows"
    size: int
    """Most tokens of a part."""
    stride: int
    """Tokens from the beginning of a part to that of the next."""
    longest: int
    """Most tokens of an answer."""
    threshold: float
    """As ``task.no_answer_threshold``."""
    pads: Mapping[str, int]
    """Padding ids of a context's columns, by role."""

    @override
    def __call__(self, graph: ColumnGraph, columns: Arrays, lengths: Arrays) -> Iterable[Any]:
        for row, end in enumerate(lengths["context"].tolist()):
            own = {role: column[row] for role, column in columns.items()}
            begins = np.arange(0, max(end - self.size, 0) + self.stride, self.stride)
            ends = np.minimum(end - begins, self.size)
            read = partial(self._read, graph, own, {r: each[row] for r, each in lengths.items()})
            made = [
                read(begins=begins[first : first + WINDOWS], ends=ends[first : first + WINDOWS])
                for first in range(0, len(begins), WINDOWS)
            ]
            start, last, odds = (np.concatenate(each) for each in zip(*made, strict=True))
            best = _centred(begins, ends, end)
            inside = np.arange(end) - begins[best]
            yield self._answer(start[best, inside], last[best, inside], float(odds.min()))

    def _read(
        self,
        graph: ColumnGraph,
        columns: Arrays,
        lengths: Arrays,
        *,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Scores of starts, of ends, and of having no answer, for some parts of a row.

        The last are minus infinity if the model always answers. *Shape:* ``[N, size]`` twice, and
        ``[N]``.
        """
        parts, count = self._parts(columns, begins, ends), len(begins)
        sizes = {
            role: np.repeat(each, count) if role.startswith("question") else ends
            for role, each in lengths.items()
        }
        start, last, *none = graph.run(graph_inputs(parts, sizes))
        width = parts["context"].shape[1]
        shapes = [each.shape for each in (start, last, *none)]
        if shapes[:2] != [(count, width)] * 2 or shapes[2:] not in ([], [(count,)]):
            raise ValueError(f"scores of {count} parts of {width} tokens are {shapes}")
        around = ((0, 0), (0, self.size - width))
        odds = none[0] if none else np.full(count, -np.inf)
        return np.pad(start, around), np.pad(last, around), odds

    def _parts(
        self, columns: Arrays, begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """The columns of a row for each of its parts: the question again, and that much context."""
        place, parts = np.arange(max(int(ends.max()), 1)), dict[str, NDArray[Any]]()
        for role, column in columns.items():
            if role.startswith("question"):
                parts[role] = np.repeat(column[None], len(begins), axis=0)
            else:
                parts[role] = column[np.minimum(begins[:, None] + place, len(column) - 1)]
                parts[role][place >= ends[:, None]] = self.pads[role]
        return parts

    def _answer(
        self, start: NDArray[Any], last: NDArray[Any], odds: float
    ) -> tuple[int, int, float, float]:
        """First and last token of the best answer, and the probabilities of it and of none."""
        none = -float(np.logaddexp(0, -odds))
        nothing = -1, -1, math.exp(none), math.exp(none)
        if not len(start):
            return nothing
        width = min(self.longest, len(start))
        ends = np.append(_log_softmax(last), np.full(width - 1, -np.inf))
        begins = _log_softmax(start) - np.logaddexp(0, odds)
        spans = begins[:, None] + np.lib.stride_tricks.sliding_window_view(ends, width)
        first, more = divmod(int(spans.argmax()), width)
        score = float(spans[first, more])
        if none - score > self.threshold:
            return nothing
        return first, first + more, math.exp(score), math.exp(none)


def _centred(begins: NDArray[np.int64], ends: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """The part in which each place is furthest from the edges; the first of equals."""
    best, furthest = np.zeros(length, np.int64), np.full(length, -1)
    for part, (begin, size) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        place = np.arange(size)
        context = np.minimum(place, size - 1 - place)
        better = begin + np.flatnonzero(context > furthest[begin : begin + size])
        furthest[better], best[better] = context[better - begin], part
    return best


def _log_softmax(scores: NDArray[Any]) -> NDArray[np.float64]:
    shifted = scores.astype(np.float64) - scores.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


FORWARDS: dict[str, type[Forward]] = {
    kind.name: kind for kind in (RowForward, TagForward, CrfForward, WindowForward)
}
"""By their names in a manifest."""

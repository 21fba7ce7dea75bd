"""A model that generates text, as two graphs of onnxruntime and a search beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textmill.exported.columns import MISFITS
from textmill.exported.manifest import ExportError
from textmill.exported.onnx import OnnxGraph
from textmill.exported.seq2seq import Forced, Found, Search, by_length
from textmill.exported.target_search import Target, search
from textmill.text.tokenizers.tokenizer import VocabInfo

ENCODE, STEP = "encode.onnx", "step.onnx"
"""Files of the graphs."""


class OnnxDecoder:
    """What :func:`textmill.exported.target_search.search` asks, by two graphs.

    The first gives arrays named ``memory.*``, which stay, and ``state.*``; the second takes both
    and ``tokens``, and gives ``logits`` and the new ones, ``next.state.*``.

    Args:
        folder: Where the graphs are.
        axes: Which axis of an array counts rows, by its name.
        device: As of :class:`OnnxGraph`.
        threads: As of :class:`OnnxGraph`.
    """

    def __init__(
        self, folder: Path, axes: Mapping[str, int], *, device: str = "auto", threads: int = 0
    ) -> None:
        self._encode = OnnxGraph(folder / ENCODE, device=device, threads=threads)
        self._step = OnnxGraph(folder / STEP, device=device, threads=threads)
        self._axes = axes
        kept, made = set(self._encode.outputs), set(self._step.outputs)
        states = {f"next.{name}" for name in kept if name.startswith("state.")}
        if kept != set(axes) or made != {"logits", *states}:
            raise ExportError(
                f"the graphs keep {', '.join(sorted(kept | made)):.200}, but 'axes' are of "
                f"{', '.join(axes):.200}"
            )
        self.state: dict[str, NDArray[Any]] = {}
        """What was read, by the names of its arrays."""

    def begin(self, sources: NDArray[np.int64]) -> None:
        """Reads sources of one length. *Shape:* ``[B, S]``."""
        self.state = self._encode.named({"source": sources})

    def step(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Reads a token of each row; gives logits. *Shape:* ``[N]`` to ``[N, V]``."""
        made = self._step.named({"tokens": tokens, **self.state})
        logits = made.pop("logits")
        self.state.update({name.removeprefix("next."): each for name, each in made.items()})
        return logits

    def select(self, rows: NDArray[np.int64], *, same_sources: bool = False) -> None:
        """Keeps these rows, in their order; a row may repeat."""
        for name, axis in self._axes.items():
            if not (same_sources and name.startswith("memory.")):
                self.state[name] = self.state[name].take(rows, axis=axis)


class OnnxSearch:
    """What :class:`textmill.exported.seq2seq.ExportedSeq2Seq` asks of a graph.

    Args:
        decoder: Reads tokens.
        search: How it searches.
        vocab: Facts of the text processor's vocabulary.
        prefix: Ids that every target begins with.
    """

    def __init__(
        self, decoder: OnnxDecoder, search: Search, *, vocab: VocabInfo, prefix: Sequence[int]
    ) -> None:
        self._decoder = decoder
        self._target = Target(
            search=search, prefix=list(prefix), eos_idx=vocab.eos_idx, unk_idx=vocab.unk_idx
        )

    def find(self, sources: Sequence[Sequence[int]], forced: Forced = None) -> list[list[Found]]:
        """Hypotheses of each source, the best first; those of one length are searched at once."""

        def answer(numbers: list[int]) -> list[list[Found]]:
            begun = forced and [forced[i] for i in numbers]
            target = replace(self._target, forced=begun)
            return find_targets(self._decoder, [sources[i] for i in numbers], target)

        return by_length(sources, answer)


def find_targets(
    decoder: OnnxDecoder, sources: Sequence[Sequence[int]], target: Target
) -> list[list[Found]]:
    """Hypotheses of sources of one length, the best first; one each at least.

    Raises:
        ExportError: The graphs give what no search can go on with.
    """
    try:
        found = search(decoder, np.array(sources, np.int64).reshape(len(sources), -1), target)
    except MISFITS as error:
        raise ExportError(f"The graphs and the text do not fit each other: {error}") from error
    if not all(found):
        raise ExportError("The graphs find no target: their scores order nothing.")
    return found

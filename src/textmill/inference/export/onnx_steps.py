"""A model that generates as two graphs of ONNX: reading sources, and reading one token."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.exported.onnx_search import ENCODE, STEP
from textmill.inference.export.ctranslate2_spec import NEVER
from textmill.inference.export.onnx import write_graph
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoder_state import DecoderState
from textmill.models.decoders.pretrained import PretrainedLanguageModel, PretrainedState
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq, PretrainedSeq2SeqState
from textmill.models.language_model import LstmLanguageModel, LstmState
from textmill.models.lstm_seq2seq import LstmDecoderState, LstmSeq2Seq
from textmill.models.transformer import Transformer

ROWS, PLACES, READ = 3, 5, 4
"""Of the examples: sources, their tokens, tokens of targets read before the step."""


@dataclass(frozen=True)
class StateTensors:
    """What a model keeps between tokens, as tensors: those that stay, then those that change."""

    memory: Mapping[str, tuple[int, ...]]
    """Names of what stays as it is; of each the axis of rows, then others that vary."""
    state: Mapping[str, tuple[int, ...]]
    """Likewise, of what each token changes."""
    tensors: Callable[[Any], Sequence[Tensor]]
    """Of a state, in that order."""
    state_of: Callable[[Sequence[Tensor]], Any]
    """The state that has them."""


STATES: dict[type[nn.Module], StateTensors] = {
    Transformer: StateTensors(
        {"memory.keys_values": (2, 4)},
        {"state.keys_values": (2, 4)},
        lambda state: [torch.stack(state.memory_keys_values), state.cache],
        lambda given: DecoderState.after(given[1], given[0].unbind(0), None),
    ),
    CausalTransformer: StateTensors(
        {},
        {"state.keys_values": (2, 4)},
        lambda state: [state.cache],
        lambda given: DecoderState.after(given[0], [], None),
    ),
    LstmSeq2Seq: StateTensors(
        {"memory.states": (0, 1)},
        {"state.carried": (2,), "state.fed": (0,)},
        lambda state: [state.memory, state.carried, state.fed],
        lambda given: LstmDecoderState(given[0], None, carried=given[1], fed=given[2]),
    ),
    PretrainedLanguageModel: StateTensors(
        {},
        {"state.keys_values": (2, 4)},
        lambda state: [state.keys_values],
        lambda given: PretrainedState.after(given[0]),
    ),
    PretrainedSeq2Seq: StateTensors(
        {"memory.keys_values": (2, 4)},
        {"state.keys_values": (2, 4)},
        lambda state: [state.memory_keys_values, state.keys_values],
        lambda given: PretrainedSeq2SeqState.after(given[1], given[0]),
    ),
    LstmLanguageModel: StateTensors(
        {},
        {"state.carried": (2,)},
        lambda state: [state.carried],
        lambda given: LstmState(given[0]),
    ),
}
"""By the class of the model, which is one of the library's."""


class _Encode(nn.Module):
    def __init__(self, model: Any, kept: StateTensors) -> None:
        super().__init__()
        self.model, self.kept = model, kept

    @override
    def forward(self, source: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.kept.tensors(_begun(self.model, source)))


class _Step(nn.Module):
    def __init__(self, model: Any, kept: StateTensors) -> None:
        super().__init__()
        self.model, self.kept = model, kept

    @override
    def forward(self, tokens: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        state = self.kept.state_of(given)
        logits = self.model.step(tokens, state)
        if len(getattr(self.model, "banned", ())):  # a graph gives finite numbers
            logits = logits.clamp(min=NEVER)
        return (logits, *self.kept.tensors(state)[len(self.kept.memory) :])


def _begun(model: Any, source: Tensor) -> Any:
    """The state of a model that has read sources of one length."""
    lengths = torch.full(source.shape[:1], source.shape[1], device=source.device)
    return model.start(model.encode(source, lengths))


def write(model: nn.Module, folder: Path) -> dict[str, Any]:
    """Writes both graphs.

    Args:
        model: One of those in :data:`STATES`.
        folder: Where to.

    Returns:
        The axis of rows of each array, as a manifest has it.

    Raises:
        UserError: Torch cannot make a graph of the model.
    """
    kept, device = STATES[type(model)], next(model.parameters()).device
    axes = {**kept.memory, **kept.state}
    source = torch.ones(ROWS, PLACES, dtype=torch.int64, device=device)
    write_graph(
        _Encode(model, kept), folder / ENCODE, {"source": source}, varying=[[0, 1]], outputs=[*axes]
    )
    generator: Any = model
    tokens = source[:, 0]
    with torch.inference_mode():
        state = _begun(generator, source)
        for _ in range(READ):
            generator.step(tokens, state)
        given = {n: t.clone() for n, t in zip(axes, kept.tensors(state), strict=True)}
    write_graph(
        _Step(model, kept),
        folder / STEP,
        {"tokens": tokens, **given},
        varying=[[0], *axes.values()],
        outputs=["logits", *(f"next.{name}" for name in kept.state)],
    )
    return {"axes": {name: varying[0] for name, varying in axes.items()}}

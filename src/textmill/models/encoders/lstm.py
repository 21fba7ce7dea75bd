"""LSTMs over a text, in one or both directions, from the state of the tokens before."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from typing_extensions import override

from textmill.config.validators import require
from textmill.models import registries
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.dropout import Dropout
from textmill.models.poolings import AttentionPooling, Pooling
from textmill.runtime.machine import has_bf16


@contextmanager
def lstm_numbers(x: Tensor) -> Iterator[Tensor]:
    """Surrounds an LSTM, and gives its input: in float32 where oneDNN has no bfloat16.

    There torch 2.13 finds no LSTM in bfloat16 for answers, which need no gradients.
    """
    if torch.is_autocast_enabled("cpu") and not has_bf16():
        with torch.autocast("cpu", enabled=False):
            yield x.float()
    else:
        yield x


def lstm_layers(
    dim: int, hidden_dim: int, num_layers: int, *, bidirectional: bool = False
) -> nn.ModuleList:
    """Layers that read vectors of ``dim`` features from left to right, or from both ends.

    A module each: torch's own dropout between layers draws masks that no recipe can speed up.
    """
    sizes = [dim] + [hidden_dim * (1 + bidirectional)] * (num_layers - 1)
    same: dict[str, bool] = {"batch_first": True, "bidirectional": bidirectional}
    return nn.ModuleList([nn.LSTM(size, hidden_dim, **same) for size in sizes])


def run_layers(
    layers: Iterable[nn.Module], x: Tensor, carried: Tensor | None, dropout: Dropout
) -> tuple[Tensor, Tensor]:
    """Runs :math:`L` layers, each with dropout after it, over tokens, :math:`(B,T,D)`.

    What is carried is the state after the tokens before, :math:`(2,L,B,H)`; None: there are none.
    It gives the last layer's output, :math:`(B,T,H)`, and the state after the last token.
    """
    after = []
    for number, layer in enumerate(layers):
        with lstm_numbers(x) as given:
            before = None
            if carried is not None:
                own = carried[:, number : number + 1].to(given.dtype)
                before = (own[0], own[1])
            x, last = layer(given, before)
        x = dropout(x)
        after.append(torch.cat(last))
    return x, torch.stack(after, dim=1)


@registries.encoders.register("lstm")
class LstmEncoder(SequenceEncoder):
    """A long short-term memory; with both directions pooled by attention (Lin et al. 2017).

    Source: Hochreiter and Schmidhuber 1997; Graves and Schmidhuber 2005 (both directions).
    """

    class Config(SequenceEncoder.Config):
        hidden_dim: int = 32
        """Features of each direction."""
        num_layers: int = 1
        """Layers, one over the other."""
        bidirectional: bool = True
        """Whether a token's vector depends on the tokens after it, too."""
        dropout: float = 0.0
        """Probability of dropping a feature between layers, in training."""

        def __post_init__(self) -> None:
            require(self, sizes=["hidden_dim", "num_layers"], shares=["dropout"])

        @override
        def default_pooling(self) -> Pooling.Config:
            return AttentionPooling.Config()

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        self.out_dim = config.hidden_dim * (2 if config.bidirectional else 1)
        size, layers, both = config.hidden_dim, config.num_layers, config.bidirectional
        self.layers = lstm_layers(dim, size, layers, bidirectional=both)
        self.dropout = Dropout(config.dropout)

    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        # Each way the direction from the end begins at each text's own last token.
        if torch.compiler.is_exporting():
            return self._graph(x, lengths)
        return self._turned(x, lengths) if x.device.type == "cpu" else self.read(x, lengths)[0]

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`forward`, without padding as torch has it, with where each text ended.

        That are the layers' states after the last token, directions side by side. *Shape:*
        :math:`(B,T,H)` and :math:`(2,L,B,H)`.
        """
        total = x.shape[1]
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        last = []
        for number, layer in enumerate(self.layers):
            if number:
                packed = packed._replace(data=self.dropout(packed.data))
            packed, ended = layer(packed)
            last.append(torch.stack(ended).transpose(1, 2).flatten(2))
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=total)
        return states, torch.stack(last, dim=1)

    def _turned(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The same over padding, which comes last in both directions, for each is turned round.

        On a CPU it takes 0.5 to 0.75 of the time: oneDNN has a layer for rows of one length alone.
        """
        places = torch.arange(x.shape[1])
        ends = lengths.cpu()[:, None]
        back = torch.where(places < ends, ends - 1 - places, places)
        for number, layer in enumerate(self.layers):
            if number:
                x = self.dropout(x)
            directions = [_run(layer, x, "")]
            if self.config.bidirectional:
                directions.append(_turn(_run(layer, _turn(x, back), "_reverse"), back))
            x = torch.cat(directions, dim=-1)
        return x

    def _graph(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The same by ONNX's own layer, which knows of lengths."""
        x, ends = x.transpose(0, 1), lengths.int()
        for layer in self.layers:
            x = _onnx_lstm(layer, x, ends, both=self.config.bidirectional)
        return x.transpose(0, 1)


GATES = [0, 3, 1, 2]
"""ONNX's order of an LSTM's gates (input, output, forget, cell) in torch's."""


def _onnx_lstm(layer: nn.Module, x: Tensor, ends: Tensor, *, both: bool) -> Tensor:
    """A layer as a node of a graph that is exported. *Shape:* :math:`(T,B,D)` to (T,B,H)."""
    suffixes = ["", "_reverse"] if both else [""]

    def stacked(name: str) -> Tensor:
        given = [getattr(layer, f"{name}_l0{suffix}") for suffix in suffixes]
        return torch.stack([torch.cat([w.chunk(4)[gate] for gate in GATES]) for w in given])

    w, r = stacked("weight_ih"), stacked("weight_hh")
    bias = torch.cat([stacked("bias_ih"), stacked("bias_hh")], dim=1)
    time, rows, hidden = *x.shape[:2], r.shape[2]
    states: Tensor = torch.onnx.ops.symbolic_multi_out(
        "LSTM",
        (x, w, r, bias, ends),
        attrs={"hidden_size": hidden, "direction": "bidirectional" if both else "forward"},
        dtypes=[x.dtype] * 3,
        shapes=[[time, len(suffixes), rows, hidden], *[[len(suffixes), rows, hidden]] * 2],
    )[0]
    return states.transpose(1, 2).flatten(2)


def _run(layer: nn.Module, x: Tensor, direction: str) -> Tensor:
    """Runs a direction of a layer from the first place to the last. *Shape:* :math:`(B,T,H)`."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [getattr(layer, f"{name}_l0{direction}") for name in names]
    with lstm_numbers(x) as given:
        begin = given.new_zeros(1, len(given), weights[1].shape[1])
        found = torch.lstm(
            given, (begin, begin), weights, True, 1, 0.0, layer.training, False, True
        )
    return found[0]


def _turn(x: Tensor, places: Tensor) -> Tensor:
    """Takes the places of each row in another order. *Shape:* :math:`(B,T,D)`."""
    return x.gather(1, places[..., None].expand_as(x))

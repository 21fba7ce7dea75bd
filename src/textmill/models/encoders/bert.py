"""BERT and its kin in textmill's layers: the numbers of transformers' modules, in less time."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.models.encoders.sequence import real_tokens
from textmill.models.layers.attention import MultiHead
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.layer import ACTIVATIONS
from textmill.models.layers.linear import ROWS, LinearLayer, linear
from textmill.models.layers.units import Units

_PREFIXES = {
    "bert": "bert",
    "camembert": "roberta",
    "electra": "electra",
    "roberta": "roberta",
    "xlm-roberta": "roberta",
}
"""Model types with BERT's layers, and what the names of their weights may begin with."""
_SETTINGS = (
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers"),
    *("max_position_embeddings", "type_vocab_size", "vocab_size", "layer_norm_eps"),
    *("attention_probs_dropout_prob", "hidden_dropout_prob"),
)
"""What a ``config.json`` must say; the defaults of the others are those of transformers."""


def is_bert(architecture: Mapping[str, Any]) -> bool:
    """Whether :class:`BertModel` computes the architecture that a ``config.json`` tells."""
    kind = architecture.get("model_type")
    needed = [*_SETTINGS, "embedding_size"] if kind == "electra" else _SETTINGS
    return (
        kind in _PREFIXES
        and all(isinstance(architecture.get(name), int | float) for name in needed)
        and architecture["num_attention_heads"] > 0
        and architecture.get("hidden_act") in ACTIVATIONS
        and architecture["hidden_size"] % architecture["num_attention_heads"] == 0
        and architecture.get("position_embedding_type", "absolute") == "absolute"
        and not (architecture.get("is_decoder") or architecture.get("add_cross_attention"))
    )


class _Rows(NamedTuple):
    """Where the tokens of a batch stand, and what attention may look at."""

    places: Tensor | None
    """What is computed of the padded batch, read row by row: real tokens, and as much padding as
    makes whole multiples of ``linear.ROWS``. None: all of it. *Shape:* :math:`(N)`."""
    mask: Tensor | None
    """True at real tokens; None: all are. *Shape:* :math:`(B,1,1,S)`."""


class BertModel(nn.Module):
    """The encoder of BERT, RoBERTa, XLM-R, CamemBERT, ELECTRA, MiniLM and all of their making.

    Its parameters are named, shaped and ordered as those of transformers' module of the
    architecture: a state of either is one of the other, and an optimizer's too. On a CPU padding is
    left out of all but the attention. Its ``config.json`` is one of which :func:`is_bert` is true.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.config = config = SimpleNamespace(**architecture)
        """The same, by attribute."""
        self.base_model_prefix = _PREFIXES[config.model_type]
        """What names of weights begin with in a file of the whole model."""
        self.embeddings = _BertEmbeddings(config)
        width = self.embeddings.out_dim
        if width != config.hidden_size:
            self.embeddings_project = LinearLayer(width, config.hidden_size)
        layers = [_Layer(config) for _ in range(config.num_hidden_layers)]
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings.word_embeddings

    def get_output_embeddings(self) -> None:
        """None: it scores no tokens."""
        return

    @override
    def forward(self, ids: Tensor, lengths: Tensor, types: Tensor | None = None) -> Tensor:
        """Vectors of tokens, :math:`(B,S,H)`, that know their text; zeros, or anything, at padding.

        *Shape:* ids :math:`(B,S)`; how many are real, :math:`(B)`; ``types``, the number of the
        text that each token is of, :math:`(B,S)`, None: all of the first.
        """
        rows = _rows(ids, lengths)
        x: Tensor = self.embeddings(ids, types, rows.places)
        if self.embeddings.out_dim != self.config.hidden_size:
            x = self.embeddings_project(x)
        for layer in self.encoder["layer"]:  # type: ignore[attr-defined]  # a list of modules
            x = layer(x, *rows)
        return x if rows.places is None else _padded(x, rows.places, ids.shape)


def _rows(ids: Tensor, lengths: Tensor) -> _Rows:
    real = real_tokens(ids, lengths)
    mask = real[:, None, None]
    # Asking what is real is free on a CPU, and waits elsewhere; an exported graph asks nothing.
    if ids.device.type != "cpu" or torch.compiler.is_exporting():
        return _Rows(None, mask)
    count = int(real.sum())
    wanted = -(-count // ROWS) * ROWS
    if wanted >= real.numel():
        return _Rows(None, None if count == real.numel() else mask)
    order = real.flatten().argsort(descending=True, stable=True)
    return _Rows(order[:wanted].sort().values, mask)


def _packed(x: Tensor, places: Tensor) -> Tensor:
    """What is computed alone. *Shape:* :math:`(B,S,*)` to :math:`(N,*)`."""
    return x.flatten(0, 1).index_select(0, places)


def _padded(x: Tensor, places: Tensor, shape: torch.Size) -> Tensor:
    """A batch with zeros at what is not. *Shape:* :math:`(N,D)` to :math:`(B,S,D)`."""
    batch, length = shape
    padded = x.new_zeros(batch * length, x.shape[1]).index_copy_(0, places, x)
    return padded.view(batch, length, -1)


class _BertEmbeddings(nn.Module):
    """Vectors of tokens, of their positions and of their texts, summed and normalized."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.out_dim: int = getattr(config, "embedding_size", config.hidden_size)
        pad = config.pad_token_id
        # RoBERTa's kin counts positions from the padding's id on, which has a row of its own.
        self.pad_idx = pad if _PREFIXES[config.model_type] == "roberta" else None
        self.word_embeddings = nn.Embedding(config.vocab_size, self.out_dim, padding_idx=pad)
        sizes = config.max_position_embeddings, self.out_dim
        positions = nn.Embedding(*sizes, padding_idx=self.pad_idx)
        if self.pad_idx is None:
            self.position_embeddings = positions
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, self.out_dim)
        self.LayerNorm = nn.LayerNorm(self.out_dim, eps=config.layer_norm_eps)
        self.position_embeddings = (
            positions  # the last parameter of RoBERTa's, the second of BERT's
        )
        self.dropout = Dropout(config.hidden_dropout_prob)
        with torch.no_grad():  # ids that a checkpoint has no row of stay as they are made
            self.word_embeddings.weight.mul_(getattr(config, "initializer_range", 0.02))

    @override
    def forward(self, ids: Tensor, types: Tensor | None, places: Tensor | None) -> Tensor:
        """*Shape:* :math:`(B,S)`, :math:`(B,S)` and :math:`(N)` to :math:`(N,D)`, or (B,S,D)."""
        at = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        if self.pad_idx is not None:
            counted = ids != self.pad_idx
            at = counted.cumsum(1) * counted + self.pad_idx
        if places is not None:
            ids, at = _packed(ids, places), _packed(at, places)
            types = None if types is None else _packed(types, places)
        first = self.token_type_embeddings.weight[0]
        x = self.word_embeddings(ids) + (
            first if types is None else self.token_type_embeddings(types)
        )
        out: Tensor = self.dropout(self.LayerNorm(x + self.position_embeddings(at)))
        return out


class _SelfAttention(nn.Module):
    """What each token gathers from its text."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        dim, heads = config.hidden_size, config.num_attention_heads
        self.query, self.key, self.value = (LinearLayer(dim, dim) for _ in range(3))
        dropout = config.attention_probs_dropout_prob
        self.heads = MultiHead.Config().build(num_heads=heads, dropout=dropout)

    @override
    def forward(self, x: Tensor, places: Tensor | None, mask: Tensor | None) -> Tensor:
        parts = (self.query, self.key, self.value)
        if all(type(part) is LinearLayer for part in parts):  # one product is faster than three
            weight, bias = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
            qkv = linear(x, weight, bias)
        else:  # adapters stand in a layer's place
            qkv = torch.cat([part(x) for part in parts], dim=-1)
        if places is not None and mask is not None:
            qkv = _padded(qkv, places, torch.Size((mask.shape[0], mask.shape[-1])))
        q, k, v = qkv.unflatten(-1, (3, self.heads.num_heads, -1)).permute(2, 0, 3, 1, 4)
        read: Tensor = self.heads(q, k, v, mask).transpose(1, 2).flatten(2)
        return read if places is None else _packed(read, places)


class _Output(nn.Module):
    """The end of a block: a linear layer, and the norm of its sum with what came in."""

    def __init__(self, width: int, config: SimpleNamespace) -> None:
        super().__init__()
        self.dense = LinearLayer(width, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    @override
    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.dropout.add_to(residual, self.dense(x)))
        return out


class _Attention(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _Output(config.hidden_size, config)

    @override
    def forward(self, x: Tensor, places: Tensor | None, mask: Tensor | None) -> Tensor:
        out: Tensor = self.output(self.self(x, places, mask), x)
        return out


class _Intermediate(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.dense = LinearLayer(config.hidden_size, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.dense(x))


class _Layer(nn.Module):
    """Self-attention and a feed-forward block, with a norm after each."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Output(config.intermediate_size, config)

    @override
    def forward(self, x: Tensor, places: Tensor | None, mask: Tensor | None) -> Tensor:
        """*Shape:* :math:`(N,D)`, or :math:`(B,S,D)`, to the same."""
        x = self.attention(x, places, mask)
        out: Tensor = self.output(self.intermediate(x), x)
        return out

    def units(self) -> Units:
        return Units([self.intermediate.dense], self.output.dense)

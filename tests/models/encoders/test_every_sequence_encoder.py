"""What every encoder of a text and every pooling must do: one suite, a line for each."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.models.classifier import Classifier, TextVector
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import (
    AveragingEncoder,
    CnnEncoder,
    SequenceEncoder,
    real_tokens,
)
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.poolings import (
    AttentionPooling,
    FirstPooling,
    MaxPooling,
    MeanPooling,
    Pooler,
    Pooling,
)

DIM = 8
SIZES = {
    "hidden_size": DIM, "intermediate_size": 12, "num_attention_heads": 2, "num_hidden_layers": 2,
    "max_position_embeddings": 20, "type_vocab_size": 1, "vocab_size": 120,
    "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1, "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}  # fmt: skip
ENCODERS = {
    "averaging": AveragingEncoder.Config(),
    "cnn": CnnEncoder.Config(filters=6, widths=(1, 2, 3, 9)),
    "lstm": LstmEncoder.Config(hidden_dim=5, num_layers=2, dropout=0.1),
    "lstm one way": LstmEncoder.Config(hidden_dim=5, bidirectional=False),
    "self_attention": SelfAttentionEncoder.Config(num_heads=2, ffn_dim=16),
    "rotary": SelfAttentionEncoder.Config(num_heads=2, ffn_dim=16, positions="rotary"),
    "wider": SelfAttentionEncoder.Config(dim=12, num_heads=3, ffn_dim=16),
    "bert": PretrainedEncoder.Config(architecture={**SIZES, "model_type": "bert"}),
    "roberta": PretrainedEncoder.Config(architecture={**SIZES, "model_type": "roberta"}),
}
POOLINGS = {
    "attention": AttentionPooling.Config(attention_dim=4),
    "first": FirstPooling.Config(),
    "max": MaxPooling.Config(),
    "mean": MeanPooling.Config(),
    "pooler": Pooler.Config(),
    "pooler by gelu": Pooler.Config(activation="gelu"),
}


@pytest.fixture(params=ENCODERS)
def encoder(request):
    torch.manual_seed(1)
    config = ENCODERS[request.param]
    framed = SimpleNamespace(size=120, pad_idx=1, bos_idx=2, eos_idx=3)
    return config.build(**({"vocab_info": framed} if config.reads_ids else {"dim": DIM})).eval()


def tokens(encoder, *shape):
    """What an encoder reads: ids, or vectors."""
    if isinstance(encoder, PretrainedEncoder):
        return torch.randint(4, 90, shape)
    return torch.randn(*shape, DIM, requires_grad=True)


@pytest.fixture(params=POOLINGS)
def pooling(request):
    torch.manual_seed(1)
    return POOLINGS[request.param].build(dim=DIM).eval()


def test_a_text_alone_is_as_beside_longer_ones(encoder):
    x = tokens(encoder, 3, 7).detach()
    x[1, 2:] = 99  # whatever stands at padding
    together = encoder(x, torch.tensor([7, 2, 5]))
    assert together.shape == (3, 7, encoder.out_dim)
    alone = encoder(x[1:2, :2], torch.tensor([2]))
    assert torch.allclose(together[1:2, :2], alone, atol=1e-5)


def test_every_parameter_gets_a_gradient(encoder):
    encoder.train()
    x = tokens(encoder, 2, 4)
    states = encoder(x, torch.tensor([4, 3]))
    (states * torch.randn_like(states))[:, :3].sum().backward()
    assert not x.requires_grad or x.grad[:, :3].abs().sum() > 0
    assert all(p.grad is not None for p in encoder.parameters())


def test_padding_has_no_part_in_a_pooling(pooling):
    states, lengths = torch.randn(3, 6, DIM), torch.tensor([6, 1, 3])
    real = real_tokens(states, lengths)
    pooled = pooling(states, real)
    assert pooled.shape == (3, pooling.out_dim)
    for row, length in enumerate(lengths.tolist()):
        alone = states[row : row + 1, :length]
        expected = pooling(alone, torch.ones(1, length, dtype=torch.bool))
        assert torch.allclose(pooled[row : row + 1], expected, atol=1e-6)


def test_word_dropout_keeps_the_mean_of_those_left():
    torch.manual_seed(0)
    encoder = AveragingEncoder.Config(word_dropout=0.5).build(dim=DIM).train()
    x, lengths = torch.randn(4, 9, DIM), torch.tensor([9, 1, 2, 5])
    out = encoder(x, lengths)
    kept = (out != 0).any(-1) & real_tokens(x, lengths)
    assert kept.any(dim=1).all()
    assert (kept.sum(1) < lengths).any()
    pooled = MeanPooling.Config().build(dim=DIM)(out, real_tokens(x, lengths))
    for row in range(4):
        assert torch.allclose(pooled[row], x[row][kept[row]].mean(0), atol=1e-5)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: CnnEncoder.Config(widths=()), "filters and widths of at least 1"),
        (lambda: LstmEncoder.Config(hidden_dim=0), "hidden_dim must be at least 1"),
        (lambda: SelfAttentionEncoder.Config(num_layers=0), "num_layers"),
        (lambda: SelfAttentionEncoder.Config(num_heads=3).build(dim=8), "divisible by num_heads"),
        (
            lambda: SelfAttentionEncoder.Config(dim=7).build(dim=8),
            "dim must be divisible by num_heads",
        ),
        (lambda: AttentionPooling.Config(attention_dim=0), "attention_dim"),
        (lambda: Classifier.Config(hidden=(0,)), "model.hidden"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, error):
    with pytest.raises(UserError, match=error):
        make()


@pytest.mark.parametrize(
    ("config", "count"),
    [
        # PyText's DocModel and its BiLSTM with self-attention on 47 words and 7 labels.
        (Classifier.Config(), 76_507),
        (Classifier.Config(encoder=LstmEncoder.Config()), 43_819),
    ],
)
def test_parameters_are_as_many_as_pytext_has(config, count):
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0))
    model = config.build(tokenizer=tokenizer, labels=range(7))
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_turned_rows_give_what_packed_ones_do(num_layers, bidirectional):
    torch.manual_seed(0)
    config = LstmEncoder.Config(hidden_dim=4, num_layers=num_layers, bidirectional=bidirectional)
    encoder = config.build(dim=3)
    lengths = torch.tensor([2, 6, 1, 6, 5])
    real = (torch.arange(6) < lengths[:, None])[..., None]
    weights = torch.randn(5, 6, encoder.out_dim)
    found = []
    for run in (encoder, lambda *inputs: encoder.read(*inputs)[0]):
        x = torch.randn(5, 6, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
        states = run(x, lengths) * real
        (states * weights).sum().backward()
        found.append([states, x.grad * real, *(p.grad.clone() for p in encoder.parameters())])
        encoder.zero_grad()
    for turned, packed in zip(*found, strict=True):
        assert torch.allclose(turned, packed, atol=1e-6)
    assert found[0][0].abs().sum() > 0


BEGINNINGS = {
    "super().__init__()": lambda base, made, config, dim: base.__init__(made),
    "nn.Module.__init__(self)": lambda base, made, config, dim: nn.Module.__init__(made),
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_constructor_may_begin_as_everyone_writes_it(beginning):
    begin = BEGINNINGS[beginning]

    class Mine(SequenceEncoder):
        class Config(SequenceEncoder.Config):
            width: int = 3

        def __init__(self, config, *, dim):
            begin(SequenceEncoder, self, config, dim)
            self.conv = nn.Conv1d(dim, dim, config.width, padding="same")

        def forward(self, x, lengths):
            return self.conv(x.transpose(1, 2)).transpose(1, 2)

    class Sum(Pooling):
        class Config(Pooling.Config): ...

        def __init__(self, config, *, dim):
            begin(Pooling, self, config, dim)

        def forward(self, states, real):
            return (states * real[..., None]).sum(dim=1)

    config, vocab_info = Mine.Config(width=5), SimpleNamespace(size=10, pad_idx=0)
    embedding = WordEmbedding.Config(dim=6)
    made = TextVector(embedding, config, Sum.Config(), vocab_info=vocab_info)
    text, lengths = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    assert made(text, lengths).shape == (1, 6)
    assert (made.encoder.config, made.encoder.out_dim) == (config, 6)
    assert sorted(dict(made.encoder.named_parameters())) == ["conv.bias", "conv.weight"]
    copied = copy.deepcopy(made)
    torch.testing.assert_close(copied.eval()(text, lengths), made.eval()(text, lengths))
    assert copied.pooling.out_dim == 6

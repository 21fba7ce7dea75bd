"""The recurrent encoder-decoder: its equations, its settings, its searches."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.inference.export.ctranslate2 import refusals
from textmill.models.decoding.fast_decoder import fastest
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.lstm_seq2seq import LstmSeq2Seq

BOS, EOS, SIZE = 1, 2, 30
KINDS = {
    "dot": {"attention": "dot"},
    "general": {"attention": "general"},
    "fed": {"input_feeding": True, "num_layers": 2},
    "fed, one way": {"input_feeding": True, "bidirectional": False, "hidden_dim": 9},
}


def made(**settings):
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=SIZE, pad_idx=0))
    config = LstmSeq2Seq.Config(**{"dim": 8, **settings})
    return config.build(tokenizer=tokenizer).eval()


@pytest.fixture(params=KINDS)
def model(request):
    return made(**KINDS[request.param])


def by_the_paper(model, source, target):
    """A row's logits, token by token, as Luong et al. 2015 write them in sections 3.1 and 3.3."""
    decoder = model.decoder
    memory, last = model.encoder.read(model.source(source[None]), torch.tensor([len(source)]))
    states, fed = list(zip(*last.unbind(0), strict=True)), torch.zeros(model.config.dim)
    logits = []
    for token in target:
        x = model.target(token)
        x = torch.cat([x, fed]) if model.config.input_feeding else x
        for number, layer in enumerate(decoder.layers):
            hidden, cell = states[number]
            cells = nn.LSTMCell(layer.input_size, layer.hidden_size)
            cells.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
            states[number] = cells(x[None], (hidden, cell))
            x = states[number][0][0]
        scores = memory[0] @ decoder.query(x)
        context = scores.softmax(0) @ memory[0]
        fed = torch.tanh(decoder.combine(torch.cat([x, context])))
        logits.append(model.output_weight @ fed + model.output_bias)
    return torch.stack(logits)


def test_scores_are_those_of_the_paper(model):
    source, target = torch.randint(3, SIZE, (3, 5)), torch.randint(3, SIZE, (3, 6))
    found = model(source, None, target)
    for row in range(3):
        wanted = by_the_paper(model, source[row], target[row])
        torch.testing.assert_close(found[row], wanted, rtol=1e-4, atol=1e-5)


def test_the_encoder_ends_where_each_text_ends():
    encoder = LstmEncoder.Config(hidden_dim=3, num_layers=2).build(dim=4)
    states, last = encoder.read(torch.randn(2, 5, 4), torch.tensor([5, 2]))
    assert last.shape == (2, 2, 2, 6)
    for row, end in enumerate((4, 1)):  # the way back ends at the first token
        wanted = torch.cat([states[row, end, :3], states[row, 0, 3:]])
        torch.testing.assert_close(last[0, 1, row], wanted)


def test_it_decodes_by_its_own_steps_and_is_not_exported(model):
    assert fastest(model, rows=64) is model
    assert refusals(model) == [
        "the model is a LstmSeq2Seq; CTranslate2 runs the Transformer and pretrained models"
    ]


@pytest.mark.parametrize(
    ("named", "settings"),
    [
        ("num_layers", {"num_layers": 0}), ("dropout", {"dropout": 1.0}),
        ("dim must be even", {"dim": 7}), ("hidden_dim must be even", {"hidden_dim": 5}),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be_are_refused(named, settings):
    with pytest.raises(UserError, match=f"model.{named}"):
        LstmSeq2Seq.Config(**settings)

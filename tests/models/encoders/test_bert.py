"""BERT in textmill's layers: the vectors, gradients and parameters of transformers' modules."""

import sys
from types import SimpleNamespace

import pytest
import torch
import transformers

from tests.pretrained_checkpoints import SMALL
from textmill.models.encoders.bert import BertModel, is_bert
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.layers.linear import LinearLayer
from textmill.models.lora import Lora, add_adapters, merged
from textmill.training.blocks import blocks_of
from textmill.training.layer_rates import rate_factors

FAMILIES = {
    "bert": {},
    "roberta": {"type_vocab_size": 1},
    "electra": {"embedding_size": 8},
    "camembert": {"hidden_act": "relu"},
}
PIECES = 90


def framed(pad_idx):
    return SimpleNamespace(size=PIECES, pad_idx=pad_idx, bos_idx=2, eos_idx=3)


def made(family, *, reads="texts", dropout=0.0):
    """An encoder in textmill's layers, and transformers' of the same weights."""
    kind = family.partition(",")[0]
    told = {
        **transformers.AutoConfig.for_model(kind, **SMALL, **FAMILIES[family]).to_dict(),
        **{"vocab_size": PIECES, "attention_probs_dropout_prob": dropout},
        **{"model_type": kind, "hidden_dropout_prob": dropout},
    }
    info = framed(1 if "bert" in kind and kind != "bert" else 0)
    torch.manual_seed(0)
    built = [
        PretrainedEncoder.Config(architecture=told, layers=layers).build(
            vocab_info=info, reads=reads
        )
        for layers in (None, "transformers")
    ]
    own, theirs = built
    assert isinstance(own.model, BertModel)
    assert not isinstance(theirs.model, BertModel)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.2)
    own.load_state_dict(theirs.state_dict())
    return own, theirs


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


def given(reads, pad_idx, *, padded=True):
    """What an encoder reads; in one text stands the piece of padding, as a person may write it."""
    torch.manual_seed(1)
    lengths = torch.tensor([9, 4, 1, 7] if padded else [9, 9, 9, 9]).repeat(6)
    ids = torch.randint(4, PIECES, (24, 9))  # 216 places, of which 126 are of texts
    ids[0, 5] = pad_idx
    ids = ids.where(torch.arange(9) < lengths[:, None], pad_idx)
    if reads == "words":
        return ids.unflatten(1, (3, 3)), torch.tensor([3, 2, 1, 3] if padded else [3] * 4).repeat(6)
    return (ids, lengths) if reads == "texts" else (ids, lengths, ids.flip(0), lengths.flip(0))


def read(encoder, inputs):
    """Vectors of what is no padding."""
    if len(inputs) == 4:
        out, lengths = encoder.pairs(*inputs)
    else:
        out, lengths = encoder(*inputs), inputs[1]
    return out[torch.arange(out.shape[1]) < lengths[:, None]]


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("reads", ["texts", "words", "pairs"])
def test_vectors_and_gradients_are_those_of_transformers(family, reads, padded):
    own, theirs = made(family, reads=reads)
    inputs = given(reads, own.vocab_info.pad_idx, padded=padded)
    found = []
    for encoder in (own, theirs):
        vectors = read(encoder.train(), inputs)
        weight = torch.linspace(-1, 1, vectors.numel()).view_as(vectors)
        loss = (vectors * weight).sum(1).mean()
        grads = torch.autograd.grad(loss, list(encoder.parameters()))
        found.append([vectors, *grads])
    names = ["vectors", *dict(own.named_parameters())]
    for name, one, two in zip(names, *found, strict=True):
        scale = max(1.0, float(two.detach().abs().max()))
        assert (one - two).abs().max() < 1e-5 * scale, name


def test_parameters_have_the_names_order_and_rates_of_transformers(family):
    found = []
    for encoder in made(family):
        factors = rate_factors(encoder, rates={"*.query.*": 2.0}, layer_decay=0.9)
        found.append([(n, p.shape, factors.get(p, 1.0)) for n, p in encoder.named_parameters()])
        assert len(blocks_of(encoder)) == 2
    assert found[0] == found[1]


def test_a_padded_batch_is_read_as_a_packed_one(family, monkeypatch):
    own, _ = made(family)
    inputs = given("texts", own.vocab_info.pad_idx)
    packed = read(own, inputs)
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    torch.testing.assert_close(read(own, inputs), packed, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("targets", [(), ("query", "output.dense")])
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing")  # what peft asks
def test_adapters_are_those_of_transformers_modules(targets):
    own, theirs = pair = made("bert")
    for encoder in pair:
        add_adapters(encoder.model, Lora(rank=2, targets=targets))
        encoder.eval()
    learns = [{n: p.requires_grad for n, p in encoder.named_parameters()} for encoder in pair]
    assert learns[0] == learns[1]
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.2)
    own.load_state_dict(theirs.state_dict())
    inputs = given("texts", 0)
    whole = merged(own)
    wanted = read(theirs, inputs)
    for encoder in (own, whole):
        torch.testing.assert_close(read(encoder, inputs), wanted, atol=1e-5, rtol=1e-5)
    assert type(whole.model.encoder["layer"][0].attention.self.query) is LinearLayer


def test_it_needs_no_transformers(monkeypatch):
    told = made("bert")[0].config.architecture
    monkeypatch.setitem(sys.modules, "transformers", None)
    again = PretrainedEncoder.Config(architecture=told).build(vocab_info=framed(0))
    assert isinstance(again.model, BertModel)


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": "mpnet"},
        {"hidden_act": "gelu_new"},
        {"num_attention_heads": 3},
        {"is_decoder": True},
        {"vocab_size": None},
        {"layer_norm_eps": None},
        {"model_type": "electra"},  # which says no embedding_size
    ],
)
def test_what_it_does_not_know_is_left_to_transformers(values):
    told = made("bert")[0].config.architecture
    assert is_bert(told)
    assert not is_bert({**told, **values})

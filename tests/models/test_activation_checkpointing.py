"""Layers that are computed again in the backward pass give the same gradients, in less memory."""

import pytest
import torch

from weft.models import fast
from weft.models.decoders.transformer import TransformerDecoder, TransformerDecoderLayer
from weft.models.layers.attention import TalkingHeads
from weft.models.layers.feed_forward import Gated

SETTINGS = {
    "dropout": {"dropout": 0.3},
    "attention_dropout": {"dropout": 0.1, "attention_dropout": 0.2, "norm_order": "post"},
    "rotary": {"dropout": 0.1, "positions": "rotary"},
    "talking_heads": {
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "decoder": TransformerDecoder.Config(
            layer=TransformerDecoderLayer.Config(
                attention=TalkingHeads.Config(), feed_forward=Gated.Config()
            )
        ),
    },
}


@pytest.fixture(params=[True, False], ids=["fast_dropout", "torch_dropout"])
def _paths(request):
    with fast.using(fast.Fast(dropout_masks=request.param)):
        yield


def after_backward(build, batch, **settings):
    """Loss, gradients and the state of the generator after one step of a model in training."""
    torch.manual_seed(7)
    model = build(**settings).train()
    loss = model(*batch).square().sum()
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return loss.detach(), gradients, torch.get_rng_state()


@pytest.fixture
def batch():
    return torch.randint(1, 50, (3, 9)), torch.tensor([9, 4, 6]), torch.randint(1, 50, (3, 8))


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize("name", SETTINGS)
def test_gradients_are_bitwise_the_same(build, batch, name):
    loss, gradients, state = after_backward(build, batch, **SETTINGS[name])
    again = after_backward(build, batch, activation_checkpointing=True, **SETTINGS[name])
    assert torch.equal(loss, again[0])
    for key, gradient in gradients.items():
        assert torch.equal(gradient, again[1][key]), key
    assert torch.equal(state, again[2])  # the next step draws the same too


def kept(model, batch):
    """Bytes that the forward pass leaves for the backward pass, without the parameters."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    found = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            found[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(*batch).sum().backward()
    return sum(size for size, _ in found.values())


@pytest.fixture
def counted(build, batch):
    """The calls of a layer in a step: one forward, and one more where it is computed again."""

    def counted(*, training, **settings):
        model = build(dropout=0.1, **settings).train(training)
        calls = []
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.register_forward_pre_hook(lambda layer, _: calls.append(layer))
        loss = model(*batch).sum()
        forward = len(calls)
        loss.backward()
        return forward, len(calls) - forward

    return counted


def test_each_layer_is_computed_once_more_in_training_only(counted):
    assert counted(training=True) == (4, 0)
    assert counted(training=True, activation_checkpointing=True) == (4, 4)
    assert counted(training=False, activation_checkpointing=True) == (4, 0)


def test_nothing_but_the_inputs_of_layers_is_kept(build, batch):
    deep = {"num_encoder_layers": 6, "num_decoder_layers": 6, "dropout": 0.1}
    plain = kept(build(**deep).train(), batch)
    assert kept(build(activation_checkpointing=True, **deep).train(), batch) < plain / 3


def test_it_is_not_in_the_key(build):
    marks = {
        field.name: field.metadata
        for field in type(build().config).__dataclass_fields__.values()
        if field.metadata
    }
    assert marks == {"activation_checkpointing": {"in_key": False}}

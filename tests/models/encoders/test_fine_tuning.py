"""What fine-tuning leaves out of memory, of numbers and of learning, in pretrained encoders."""

import pytest
import torch
from torch import nn

from tests.pretrained_checkpoints import save_encoder
from textmill.models.classifier import Classifier
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.layers.precision import autocast
from textmill.models.lora import Lora
from textmill.text.tokenizers.pretrained import PretrainedTokenizer
from textmill.training.blocks import checkpointed
from textmill.training.layer_rates import rate_factors

LENGTHS = torch.tensor([30, 20, 3, 30])
WITH = {"all": None, "adapters": Lora(rank=2, dropout=0.1)}
LAYERS = [("bert", None), ("bert", "transformers"), ("modernbert", None)]
"""Families, and whose layers compute them."""


def model_of(family, layers, folder, *, lora=None):
    saved = save_encoder(folder / family, family, num_hidden_layers=6)
    tokenizer = PretrainedTokenizer.Config(path=saved / "tokenizer.json").build()
    encoder = PretrainedEncoder.Config(path=str(saved), layers=layers, lora=lora)
    model = Classifier.Config(encoder=encoder).build(tokenizer=tokenizer, labels="ab")
    model.get_submodule("text.encoder").begin()
    return model.train()


def step(model, *, again=False, numbers="fp32"):
    """Loss, gradients, and bytes that the forward pass leaves for the backward pass."""
    torch.manual_seed(1)
    ids = torch.randint(5, 50, (4, 30))
    ids[torch.arange(30) >= LENGTHS[:, None]] = model.get_submodule(
        "text.encoder"
    ).vocab_info.pad_idx
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor)
    with checkpointed(model, use=again), hooks, autocast(numbers, "cpu"):
        loss = model(ids, LENGTHS).float().square().sum()
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return loss.detach(), gradients, sum(size for size, _ in kept.values())


@pytest.mark.parametrize("lora", WITH)
@pytest.mark.parametrize(("family", "layers"), LAYERS)
def test_blocks_computed_again_are_not_kept_and_give_the_same(family, layers, lora, tmp_path):
    model = model_of(family, layers, tmp_path, lora=WITH[lora])
    loss, gradients, size = step(model)
    model.zero_grad()
    again = step(model, again=True)
    assert torch.equal(loss, again[0])
    assert again[2] < size / 10
    for name, gradient in gradients.items():
        other = again[1][name]
        assert (gradient is None) == (other is None), name
        assert gradient is None or torch.equal(gradient, other), name


@pytest.mark.parametrize(("family", "layers"), LAYERS)
def test_bf16_is_of_products_and_not_of_gradients(family, layers, tmp_path):
    model = model_of(family, layers, tmp_path)
    loss, _, size = step(model)
    model.zero_grad()
    found, types = step(model, numbers="bf16"), set[torch.dtype]()
    assert found[2] < 0.9 * size
    assert (found[0] - loss).abs() < 0.02 * loss
    for part in model.get_submodule("text.encoder").modules():
        if isinstance(part, nn.Linear):
            part.register_forward_hook(lambda _, given, made: types.add(made.dtype))
    model.zero_grad()
    gradients = step(model, numbers="bf16")[1]
    assert types == {torch.bfloat16}
    assert {g.dtype for g in gradients.values() if g is not None} == {torch.float32}


def test_adapters_have_the_rates_of_their_layers(tmp_path):
    model = model_of("bert", None, tmp_path, lora=Lora(rank=2))
    factors = rate_factors(model, rates={"scores.*": 5.0}, layer_decay=0.5)
    learned = {n: factors.get(p, 1.0) for n, p in model.named_parameters() if p.requires_grad}
    assert {name for name in learned if "lora_" not in name} == {"scores.1.weight", "scores.1.bias"}
    for name, factor in learned.items():
        number = name.partition("encoder.layer.")[2].partition(".")[0]
        assert factor == (0.5 ** (6 - int(number)) if number else 5.0), name

"""Blocks that are computed again in the backward pass give the same gradients."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tests.training.bench import differences, outcome
from textmill.errors import UserError
from textmill.models import fast
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.language_model import LstmLanguageModel
from textmill.models.layers.attention import TalkingHeads
from textmill.models.transformer import Transformer
from textmill.training import blocks as blocks_module
from textmill.training.blocks import blocks_of, check_blocks, checkpointed

TOKENIZER = SimpleNamespace(
    vocab_info=SimpleNamespace(size=50, pad_idx=0, bos_idx=1, eos_idx=2, unk_idx=3)
)
SETTINGS = {
    "dropout": {"dropout": 0.3},
    "attention_dropout": {"dropout": 0.1, "attention_dropout": 0.2, "norm_order": "post"},
    "rotary": {"dropout": 0.1, "positions": "rotary"},
    "talking_heads": {
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "attention": TalkingHeads.Config(),
        "feed_forward": "gated",
    },
}


@pytest.fixture(params=[True, False], ids=["fast_dropout", "torch_dropout"])
def _paths(request):
    with fast.using(fast.Fast(dropout_masks=request.param)):
        yield


def translator(**settings):
    small = {"dim": 16, "num_heads": 2, "ffn_dim": 32, "max_length": 64}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    return Transformer.Config(**{**small, **layers, **settings}).build(tokenizer=TOKENIZER)


def lines(**settings):
    config = CausalTransformer.Config(dim=16, num_layers=3, num_heads=2, ffn_dim=32, **settings)
    return config.build(tokenizer=TOKENIZER)


def lstm(**settings):
    config = LstmLanguageModel.Config(dim=8, hidden_dim=8, num_layers=2, **settings)
    return config.build(tokenizer=TOKENIZER)


def after_backward(build, batch, *, use, **settings):
    """Loss, gradients and the state of the generator after one step of a model in training."""
    torch.manual_seed(7)
    model = build(**settings).train()
    with checkpointed(model, use=use):
        made = model(*batch)
        loss = (made[0] if isinstance(made, tuple) else made).square().sum()
        loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return loss.detach(), gradients, torch.get_rng_state()


@pytest.fixture
def batch():
    torch.manual_seed(0)
    return torch.randint(1, 50, (3, 9)), torch.tensor([9, 4, 6]), torch.randint(1, 50, (3, 8))


def agree(build, batch, **settings):
    found, again = (after_backward(build, batch, use=use, **settings) for use in (False, True))
    assert torch.equal(found[0], again[0])
    assert [*found[1]] == [*again[1]]
    for key, gradient in found[1].items():
        assert torch.equal(gradient, again[1][key]), key
    assert torch.equal(found[2], again[2])  # the next step draws the same too


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize("name", SETTINGS)
def test_gradients_are_bitwise_the_same(batch, name):
    agree(translator, batch, **SETTINGS[name])


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize("build", [lines, lstm])
def test_so_are_those_of_language_models(batch, build):
    agree(build, batch[:1], dropout=0.3)


@pytest.mark.parametrize("compile_", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_is_bitwise_the_same(bench, compile_, monkeypatch):
    if compile_:
        monkeypatch.setattr(blocks_module, "BACKEND", "eager")
    found = []
    for use in (False, True):
        here = bench.but(folder=bench.folder / str(use), dropout=0.3, test_data=None)
        trainer = here.make(activation_checkpointing=use, compile=compile_, max_steps=6)
        trainer.fit()
        assert not any(m._compiled_call_impl for m in trainer.task.module.modules())
        found.append(outcome(trainer))
    assert differences(*found) == []
    torch._dynamo.reset()


@pytest.mark.parametrize(("training", "use", "again"), [(1, 0, 0), (1, 1, 1), (0, 1, 0)])
@pytest.mark.parametrize("build", [translator, lines, lstm])
def test_each_block_is_computed_once_more_in_training_only(batch, build, training, use, again):
    model = build(dropout=0.1).train(bool(training))
    calls, blocks = [], blocks_of(model)
    for block in blocks:
        block.register_forward_pre_hook(lambda block, _: calls.append(block))
    with checkpointed(model, use=bool(use)):
        made = model(*(batch if build is translator else batch[:1]))
        assert calls == blocks
        (made[0] if isinstance(made, tuple) else made).sum().backward()
    assert calls[len(blocks) :] == [*reversed(blocks)] * again


def test_a_module_without_blocks_is_refused_before_the_run(bench, monkeypatch):
    with pytest.raises(UserError, match=r"^trainer\.activation_.* Sequential has none"):
        check_blocks(nn.Sequential(nn.Embedding(4, 4)))
    monkeypatch.setattr(blocks_module, "blocks_of", lambda module: [module])
    with pytest.raises(UserError, match=r"Transformer has none"):
        bench.make(activation_checkpointing=True)
    bench.make()


def test_a_block_that_changes_itself_is_refused():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            return self.norm(x)

    stack = nn.ModuleList([Normed()])
    with (
        checkpointed(stack, use=True),
        pytest.raises(UserError, match=r"^trainer\.activ.*Normed .* 'norm\.num_batches_tracked'"),
    ):
        stack[0](torch.rand(3, 2, requires_grad=True))
    with checkpointed(stack.eval(), use=True):
        stack[0](torch.rand(3, 2))

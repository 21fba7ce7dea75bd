"""Magnitude pruning: what is pruned when, in runs, and what an export has left of it."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from tests.training.bench import prove
from textmill.checkpoint import Checkpoints
from textmill.errors import UserError
from textmill.models.encoders.bert import BertModel
from textmill.models.layers.layer import Gated, Mlp
from textmill.models.layers.units import units_of, without_unused
from textmill.training import Every
from textmill.training.weights.pruning import Pruner, Pruning

CONFIG = Pruning(sparsity=0.75, start=2, end=8, every=3)


def zeros(module):
    """How many units of each block are zero, in all that they are made of."""
    found = {}
    for name, units in units_of(module).items():
        alike = [
            (tensor.movedim(dim, 0).flatten(1) if tensor.ndim > 1 else tensor[:, None]).eq(0).all(1)
            for tensor, dim in units.parameters
        ]
        found[name] = int(torch.stack(alike).all(0).sum())
    return found


def test_the_share_is_that_of_zhu_and_gupta():
    """Their equation 1, from step 2 to step 8: s_f + (s_i - s_f) (1 - (t - t_0) / (n dt))^3."""
    for step in range(2, 9):
        wanted = 0.75 + (0.0 - 0.75) * (1 - (step - 2) / 6) ** 3
        assert CONFIG.share(step, None) == pytest.approx(wanted)
    assert [CONFIG.share(step, None) for step in (0, 2, 8, 100)] == [0.0, 0.0, 0.75, 0.75]
    assert Pruning(sparsity=0.5).last(40) == 20


@pytest.mark.parametrize("kind", [Mlp, Gated])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_what_is_pruned_is_what_torch_prunes(kind, share):
    torch.manual_seed(0)
    block = kind(6, 20, "gelu")
    parts = [block.gate.weight, block.inner.weight] if kind is Gated else [block.inner.weight]
    rows = nn.Linear(1, 20)
    rows.weight = nn.Parameter(torch.cat([*parts, block.outer.weight.t()], dim=1).detach())
    prune.ln_structured(rows, "weight", amount=share, n=2, dim=0)
    Pruner(Pruning(sparsity=share, end=1), block).update(1, None, {})
    wanted = rows.weight_mask[:, 0] == 0
    assert torch.equal((block.inner.weight == 0).all(1), wanted)
    assert torch.equal((block.outer.weight == 0).all(0), wanted)
    assert wanted.sum() == round(share * 20)


@pytest.fixture
def pruned(bench):
    return bench.but(trainer={"pruning": CONFIG, "evaluate_every": Every(3), "max_steps": 12})


@pytest.mark.parametrize("average", [{}, {"ema": 0.9}])
def test_units_become_zero_in_stages_and_stay_zero(pruned, average):
    """In the weights that are trained, whatever the optimizer's moments, and in their average."""
    trainer = pruned.make(keep=20, save_every=Every(1), **average)
    trainer.fit()
    share, wanted = 0.0, []
    for step in range(1, 13):
        share = CONFIG.share(step, None) if step in (2, 5, 8) else share
        wanted.append(round(32 * share))
    for part in ["model", "weights"] if average else ["model"]:
        for step, count in enumerate(wanted, 1):
            path = trainer.checkpoints.folder / f"step-{step:08d}"
            trainer.task.module.load_state_dict(Checkpoints.load_part(path, part))
            assert {*zeros(trainer.task.module).values()} == {count}, (part, step)
    assert wanted[-1] == 24


def test_the_best_is_one_that_is_pruned_and_patience_waits_for_it(pruned, monkeypatch):
    """Evaluations at 3, 6, 9 and 12, of which the first two come before the last pruning."""
    trainer = pruned.make()
    losses = iter([1.0, 1.5, 3.0, 2.5])
    reduce = trainer.task.reduce
    monkeypatch.setattr(
        trainer.task, "reduce", lambda metrics: {**reduce(metrics), "loss": next(losses, 0.0)}
    )
    trainer.fit()
    assert trainer.selection.best == (12, 2.5)
    assert {*zeros(trainer.task.module).values()} == {24}
    impatient = trainer.selection
    impatient.config = type(impatient.config)(patience=2)
    impatient.history = impatient.history[:3]
    assert not impatient.stalled()


@pytest.mark.parametrize("at", [5, pytest.param(9, marks=pytest.mark.slow)])
def test_a_killed_run_is_resumed_bitwise(pruned, at):
    prove(pruned, (at,))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (Pruning(sparsity=0.5, end=13), r"^trainer\.pruning\.end is 13, but the run has 12 steps"),
        (Pruning(sparsity=0.5, blocks=("encoder.x*",)), r"no feed-forward block .* encoder\.x\*"),
    ],
)
def test_a_run_in_which_nothing_can_be_pruned_is_refused(bench, setting, message):
    with pytest.raises(UserError, match=message):
        bench.make(pruning=setting)


def test_an_end_before_the_start_is_refused_and_weights_that_are_held_still(bench):
    with pytest.raises(UserError, match=r"^trainer\.pruning\.end must be above .*start is 4\.$"):
        Pruning(sparsity=0.5, start=4, end=4)
    block = Mlp(4, 8, "relu")
    block.inner.weight.requires_grad_(False)
    with pytest.raises(UserError, match=r"optimizer\.freeze, or adapters, hold still"):
        Pruner(Pruning(sparsity=0.5, end=1), block).check(None)


def test_a_copy_without_zero_units_computes_the_same_and_one_without_any_is_the_module():
    torch.manual_seed(0)
    settings = {
        "model_type": "bert", "hidden_size": 8, "intermediate_size": 16, "hidden_act": "gelu",
        "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 30, "layer_norm_eps": 1e-5,
        "max_position_embeddings": 12, "type_vocab_size": 2, "pad_token_id": 0,
        "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0,
    }  # fmt: skip
    module = BertModel(settings).eval()
    assert without_unused(module) is module
    nn.init.normal_(module.encoder["layer"][0].intermediate.dense.bias)
    Pruner(Pruning(sparsity=0.5, end=1, blocks=("encoder.layer.0",)), module).update(1, None, {})
    cut = without_unused(module)
    sizes = [tuple(layer.intermediate.dense.weight.shape) for layer in cut.encoder["layer"]]
    assert sizes == [(8, 8), (16, 8)]
    ids, lengths = torch.randint(1, 30, (3, 7)), torch.tensor([7, 4, 2])
    with torch.no_grad():
        torch.testing.assert_close(cut(ids, lengths), module(ids, lengths))
    Pruner(Pruning(sparsity=0.99, end=1), module).update(1, None, {})
    assert without_unused(module).encoder["layer"][0].intermediate.dense.out_features == 1

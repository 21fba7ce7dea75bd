"""Every kind of attention against the formula in float64."""

import math

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.models.layers.attention import CrossAttention, MultiHead, SelfAttention, TalkingHeads
from textmill.models.layers.positions import RotaryPositions

DIM, HEADS, LENGTH = 24, 4, 7
KINDS = {
    "multi_head": MultiHead.Config(),
    "multi_query": MultiHead.Config(num_kv_heads=1),
    "talking_heads": TalkingHeads.Config(),
}


def made(config, *, num_heads=HEADS, dropout=0.0):
    return config.build(num_heads=num_heads, dropout=dropout)


SEEN = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])[:, None, None]


def settled(module):
    """With every parameter off its start, so that swapped or missing ones show."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


@pytest.fixture(params=KINDS)
def config(request):
    return KINDS[request.param]


@pytest.fixture(params=[False, True], ids=["", "rotary"])
def positions(request, config):
    if not request.param:
        return None
    return RotaryPositions(DIM // HEADS, max_length=9)


@pytest.fixture
def attention(config, positions):
    return settled(SelfAttention(made(config), dim=DIM, positions=positions))


def brute_force(module, x, memory, allowed):
    """One pair of positions and one head at a time, in float64; ``allowed(b, t, s)``."""
    x, memory = x.double(), memory.double()
    state = {name: value.double() for name, value in module.state_dict().items()}
    heads, groups, size = module.num_heads, module.num_kv_heads, module.head_dim
    if "qkv.weight" in state:
        weight, bias = state["qkv.weight"], state["qkv.bias"]
    else:
        weight = torch.cat([state["q.weight"], state["kv.weight"]])
        bias = torch.cat([state["q.bias"], state["kv.bias"]])
    ends = [heads * size, groups * size, groups * size]
    (wq, wk, wv), (bq, bk, bv) = weight.split(ends), bias.split(ends)
    rotary = getattr(module, "positions", None)
    out = torch.zeros(*x.shape[:2], heads * size, dtype=torch.float64)
    one = torch.eye(heads, dtype=torch.float64)
    before = state.get("heads.scores_mix", one)
    after = state.get("heads.weights_mix", one)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            scores = torch.full((heads, memory.shape[1]), -math.inf, dtype=torch.float64)
            for s in range(memory.shape[1]):
                if not allowed(b, t, s):
                    continue
                for h in range(heads):
                    g = h // (heads // groups)
                    q = (wq @ x[b, t] + bq)[h * size : (h + 1) * size]
                    k = (wk @ memory[b, s] + bk)[g * size : (g + 1) * size]
                    if rotary is not None:
                        q, k = turned(q, t), turned(k, s)
                    scores[h, s] = q @ k / math.sqrt(size)
            seen = scores.isfinite().all(0)
            mixed = torch.full_like(scores, -math.inf)
            mixed[:, seen] = before @ scores[:, seen]
            weights = after @ mixed.softmax(-1)
            for h in range(heads):
                g = h // (heads // groups)
                values = (memory[b] @ wv.T + bv)[:, g * size : (g + 1) * size]
                out[b, t, h * size : (h + 1) * size] = weights[h] @ values
    return (out @ state["out.weight"].T + state["out.bias"]).float()


def turned(x, position):
    """The turn of rotary positions, pair by pair."""
    half = len(x) // 2
    y = torch.empty_like(x)
    for i in range(half):
        angle = position * 10000.0 ** (-2 * i / len(x))
        cos, sin = math.cos(angle), math.sin(angle)
        y[i] = x[i] * cos - x[i + half] * sin
        y[i + half] = x[i + half] * cos + x[i] * sin
    return y


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_masked_positions_are_not_seen(attention):
    x = torch.randn(2, LENGTH, DIM)
    wanted = brute_force(attention, x, x, lambda b, t, s: bool(SEEN[b, 0, 0, s]))
    close(attention(x, SEEN), wanted)
    changed = x.clone()
    changed[1, 4:] = 9.0
    close(attention(changed, SEEN)[1, :4], wanted[1, :4])


def test_causal_is_the_formula(attention):
    x = torch.randn(2, LENGTH, DIM)
    wanted = brute_force(attention, x, x, lambda b, t, s: s <= t)
    close(attention(x, is_causal=True), wanted)


def test_cross_attention_is_the_formula(config):
    attention = settled(CrossAttention(made(config), dim=DIM))
    x, memory = torch.randn(2, 3, DIM), torch.randn(2, LENGTH, DIM)
    found = attention(x, attention.project_memory(memory), SEEN)
    close(found, brute_force(attention, x, memory, lambda b, t, s: bool(SEEN[b, 0, 0, s])))


def test_a_row_of_padding_alone_is_finite_and_has_finite_gradients(attention):
    x = torch.randn(2, LENGTH, DIM, requires_grad=True)
    mask = SEEN & torch.tensor([True, False])[:, None, None, None]
    out = attention(x, mask)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())
    close(out[:1], attention(x[:1], SEEN[:1]))


def test_dropout_is_for_training_only(config):
    attention = settled(SelfAttention(made(config, dropout=0.5), dim=DIM))
    x = torch.randn(2, LENGTH, DIM)
    assert torch.equal(attention(x), attention(x))
    without = SelfAttention(made(config), dim=DIM)
    without.load_state_dict(attention.state_dict())
    assert torch.equal(attention(x), without.train()(x))
    attention.train()
    drawn = torch.stack([attention(x) for _ in range(300)])
    assert drawn.std(0).min() > 0.01
    error = (drawn.mean(0) - without(x)) / (drawn.std(0) / 300**0.5)
    assert error.abs().max() < 6  # standard deviations of a mean


@pytest.mark.parametrize("is_causal", [False, True])
def test_dropout_on_a_cpu_is_of_what_torch_computes(is_causal):
    """A share below that of 16 bits drops nothing, on the way of dropping something."""
    q, k, v = torch.randn(3, 2, 4, 7, 6, requires_grad=True)
    mask = None if is_causal else SEEN
    found = []
    for share in (0.0, 1e-6):
        heads = made(MultiHead.Config(), dropout=share).train()
        out = heads(q, k, v, mask, is_causal=is_causal)
        found.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [SelfAttention, CrossAttention])
def test_heads_must_divide_the_dim(kind):
    with pytest.raises(UserError, match="dim is 10 and num_heads 3"):
        kind(made(MultiHead.Config(), num_heads=3), dim=10)


def test_no_heads_of_keys_are_refused():
    with pytest.raises(UserError, match="num_kv_heads must be at least 1"):
        MultiHead.Config(num_kv_heads=0)

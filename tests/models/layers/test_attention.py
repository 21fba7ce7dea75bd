"""Attention against torch's own module."""

import pytest
import torch
from torch import nn

from weft.errors import UserError
from weft.models.layers.attention import CrossAttention, SelfAttention


@pytest.fixture
def theirs():
    module = nn.MultiheadAttention(12, 3, batch_first=True)
    nn.init.normal_(module.in_proj_bias)
    nn.init.normal_(module.out_proj.bias)
    return module


def test_self_attention_is_torch_s(theirs):
    ours = SelfAttention(dim=12, num_heads=3)
    ours.qkv.weight, ours.qkv.bias = theirs.in_proj_weight, theirs.in_proj_bias
    ours.out = theirs.out_proj
    x, padding = torch.randn(2, 5, 12), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    wanted, _ = theirs(x, x, x, key_padding_mask=padding)
    torch.testing.assert_close(ours(x, ~padding[:, None, None]), wanted)
    future = nn.Transformer.generate_square_subsequent_mask(5)
    wanted, _ = theirs(x, x, x, attn_mask=future, is_causal=True)
    torch.testing.assert_close(ours(x, is_causal=True), wanted)


def test_cross_attention_is_torch_s(theirs):
    ours = CrossAttention(dim=12, num_heads=3)
    weights, biases = theirs.in_proj_weight.split(12), theirs.in_proj_bias.split(12)
    ours.q.weight, ours.q.bias = nn.Parameter(weights[0]), nn.Parameter(biases[0])
    ours.kv.weight = nn.Parameter(torch.cat(weights[1:]))
    ours.kv.bias = nn.Parameter(torch.cat(biases[1:]))
    ours.out = theirs.out_proj
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    wanted, _ = theirs(x, memory, memory, key_padding_mask=padding)
    found = ours(x, ours.project_memory(memory), ~padding[:, None, None])
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("kind", [SelfAttention, CrossAttention])
def test_heads_must_divide_the_dim(kind):
    with pytest.raises(UserError) as error:
        kind(dim=10, num_heads=3)
    assert str(error.value) == (
        "dim must be divisible by num_heads, but dim is 10 and num_heads 3."
    )

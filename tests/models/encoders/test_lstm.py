"""The LSTM encoder: its two ways over rows of several lengths are one function."""

import pytest
import torch

from textmill.models.encoders.lstm import LstmEncoder


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

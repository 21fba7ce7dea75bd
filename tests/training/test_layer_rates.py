"""Frozen parameters, and learning rates by layer and by name."""

import logging

import pytest
from torch import nn

from textmill.errors import UserError
from textmill.models.transformer import Transformer
from textmill.training import AdamW, Muon
from textmill.training.layer_rates import hidden_matrices, input_parameters, present_rate


@pytest.fixture
def module(tokenizer):
    """An encoder of 2 layers, a decoder of 3, one table of embeddings for all."""
    return Transformer.Config(
        dim=8, ffn_dim=16, num_heads=2, num_encoder_layers=2, num_decoder_layers=3
    ).build(tokenizer=tokenizer)  # fmt: skip


def rates_of(optimizer, module):
    """The rate of each parameter that learns, by name."""
    rates = {p: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    return {name: rates[p] for name, p in module.named_parameters() if p in rates}


def test_inputs_are_the_embeddings_with_their_positions_and_not_what_is_in_layers(tokenizer):
    module = Transformer.Config(
        dim=8, ffn_dim=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1,
        positions="learned", tie="none",
    ).build(tokenizer=tokenizer)  # fmt: skip
    inputs = input_parameters(module)
    assert [name for name, p in module.named_parameters() if p in inputs] == [
        "source.tokens.weight", "source.positions.table",
        "target.tokens.weight", "target.positions.table",
    ]  # fmt: skip
    hidden = hidden_matrices(module)
    assert module.output_weight not in hidden
    assert not hidden & inputs
    assert all(p.ndim == 2 for p in hidden)
    assert len(hidden) == sum(
        p.ndim == 2 for name, p in module.named_parameters() if ".layers." in name
    )


def test_layer_decay_lowers_the_rate_layer_by_layer(module):
    optimizer = AdamW.Config(lr=1.0, layer_decay=0.5).build(module=module)
    rates = rates_of(optimizer, module)
    assert len(rates) == len(list(module.parameters()))
    for name, rate in rates.items():
        part, _, rest = name.partition(".layers.")
        layers = {"encoder": 2, "decoder": 3}.get(part)
        if layers:
            assert rate == 0.5 ** (layers - int(rest.partition(".")[0])), name
        else:
            assert rate == (0.5**4 if name == "output_weight" else 1.0), name  # tied to the inputs


def test_rates_by_name_multiply_the_decay_and_the_last_that_matches_counts(module):
    by_name = {"decoder.*": 3.0, "decoder.layers.2.*": 10.0, "encoder.norm.*": 2.0}
    optimizer = AdamW.Config(lr=1.0, layer_decay=0.5, rates=by_name).build(module=module)
    rates = rates_of(optimizer, module)
    wanted = {"decoder.layers.0.": 0.375, "decoder.layers.2.": 5.0, "decoder.norm.": 3.0,
              "encoder.norm.": 2.0, "encoder.layers.1.": 0.5, "output_weight": 0.0625}  # fmt: skip
    for start, rate in wanted.items():
        assert {r for name, r in rates.items() if name.startswith(start)} == {rate}
    peaks = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] *= 0.25
    assert present_rate(optimizer, peaks) == pytest.approx(0.25)


def test_freezing_says_how_much_and_leaves_the_rest(module, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    optimizer = AdamW.Config(freeze=("encoder.*",)).build(module=module)
    names = [name for name, p in module.named_parameters() if not p.requires_grad]
    assert names == [name for name, _ in module.named_parameters() if name.startswith("encoder.")]
    sizes = [sum(p.numel() for p in part.parameters()) for part in (module.encoder, module)]
    tensors = len(list(module.parameters()))
    assert caplog.messages == [
        f"Frozen: {sizes[0]:,} of {sizes[1]:,} parameters, in {len(names)} of {tensors} tensors."
    ]
    assert len(rates_of(optimizer, module)) == tensors - len(names)


def test_a_tied_parameter_is_known_by_each_of_its_names(module):
    AdamW.Config(freeze=("target.tokens.*",)).build(module=module)
    assert not module.source.tokens.weight.requires_grad


WRONG = [
    ({"freeze": ("encoder",)}, r"^optimizer\.freeze names 'encoder', .*mean 'encoder\.\*'"),
    ({"rates": {"decodr.*": 2.0}}, r"^optimizer\.rates names 'decodr\.\*', .*mean 'decoder\.\*'"),
    ({"freeze": ("*.layer.*",)}, r"names '\*\.layer\.\*', .*mean '\*\.layers\.\*'"),
    ({"freeze": ("zzz",)}, r"names 'zzz', .* Names are: output_weight, source\.tokens\.weight, "),
    ({"freeze": ("*",)}, r"^optimizer\.freeze=\['\*'\] freezes all \d+ tensors"),
]


@pytest.mark.parametrize(("settings", "says"), WRONG)
def test_names_that_fit_nothing_or_everything(module, settings, says):
    with pytest.raises(UserError, match=says):
        AdamW.Config(**settings).build(module=module)


def test_layer_decay_needs_layers():
    with pytest.raises(UserError, match=r"^optimizer\.layer_decay=0\.8 .* Linear has none"):
        AdamW.Config(layer_decay=0.8).build(module=nn.Linear(2, 2))


def test_muon_needs_a_matrix_to_train(module):
    with pytest.raises(UserError, match=r"^optimizer\.type=muon .* Transformer; .*adamw"):
        Muon.Config(freeze=("*.layers.*",)).build(module=module)


class Wide(nn.Module):
    """A stack of layers of so many features, with adapters beside them, or none."""

    def __init__(self, width, *, rank=0):
        super().__init__()
        self.layers = nn.ModuleList([self.layer(width, rank) for _ in range(2)])
        self.head = nn.Linear(width, 3)

    def layer(self, width, rank):
        sides = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]
        sides += [(width, rank), (rank, width)] * (2 if rank else 0)
        return nn.ModuleList([nn.Linear(*pair, bias=False) for pair in sides])


@pytest.mark.parametrize(("width", "rank"), [(8, 0), (16, 0), (16, 2)])
def test_a_rate_meant_for_a_width_falls_with_the_width(width, rank, caplog):
    module = Wide(width, rank=rank)
    with caplog.at_level("INFO", logger="textmill"):
        made = AdamW.Config(lr=0.4, lr_width=8, layer_decay=0.5).build(module=module)
    rates = [group["lr"] for group in made.param_groups]
    assert rates == pytest.approx([0.4 * 8 / width * factor for factor in (1, 0.5, 0.25)])
    assert present_rate(made, rates) == pytest.approx(0.4 * 8 / width)
    assert ("these have 16" in caplog.text) == (width == 16)

"""Low-rank adapters: the base model's outputs at the start, and those of peft behind it."""

import sys

import peft
import pytest
import torch
import transformers

from tests.pretrained_checkpoints import ENCODERS, save_encoder
from textmill.errors import MissingExtraError, UserError
from textmill.models.lora import Lora, add_adapters, merged, own_weights
from textmill.models.pretrained import copy_weights

IDS = torch.tensor([[2, 5, 9, 7, 3], [2, 8, 6, 4, 3]])


def loaded(folder):
    return transformers.AutoModel.from_pretrained(folder).eval()


def states(model):
    with torch.no_grad():
        return model(input_ids=IDS).last_hidden_state


def draw(model):
    """Adapters as after some training: B is no longer zeros."""
    torch.manual_seed(3)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".lora_" in name:
                weight.normal_(std=0.1)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing")  # what peft asks
@pytest.mark.parametrize(
    "family", ["bert", *(pytest.param(f, marks=pytest.mark.slow) for f in ENCODERS if f != "bert")]
)
def test_outputs_are_the_base_models_then_pefts_and_the_same_when_merged(family, tmp_path):
    folder = save_encoder(tmp_path / family, family)
    base, model = states(loaded(folder)), loaded(folder)
    add_adapters(model, Lora(rank=3, alpha=12.0))
    assert torch.equal(states(model), base)
    settings = peft.LoraConfig(r=3, lora_alpha=12, target_modules="all-linear")
    oracle = peft.get_peft_model(loaded(folder), settings)
    learns = {n: p.requires_grad for n, p in oracle.base_model.model.named_parameters()}
    assert {n: p.requires_grad for n, p in model.named_parameters()} == learns
    draw(model)
    oracle.base_model.model.load_state_dict(model.state_dict())
    wanted = states(oracle.base_model.model)
    assert (wanted - base).abs().max() > 0.01
    assert torch.equal(states(model), wanted)
    whole = merged(model)
    torch.testing.assert_close(states(whole), wanted, atol=1e-5, rtol=0)
    names = loaded(folder).state_dict().keys()
    assert whole.state_dict().keys() == own_weights(model).keys() == names
    assert torch.equal(states(model), wanted), "the module itself is as it was"


def test_weights_are_read_into_layers_that_have_adapters(tmp_path):
    folder = save_encoder(tmp_path / "bert", "bert")
    model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(folder))
    add_adapters(model, Lora(rank=2))
    line = copy_weights(model, str(folder))
    # 5 layers of 16 to 16 (four of each block, and the pooling's), 2 x 2 of 16 to 24
    learn = (2 * 4 + 1) * 2 * 32 + 2 * 2 * 2 * 40
    total = sum(p.numel() for p in model.parameters())
    assert line == (
        f"Pretrained weights of {folder}: {total:,} parameters, of which {learn:,} learn."
    )
    assert torch.equal(states(model.eval()), states(loaded(folder)))


def test_adapters_are_where_they_are_wanted(tmp_path):
    model = loaded(save_encoder(tmp_path / "bert", "bert"))
    with pytest.raises(UserError, match=r"names q, which no layer .* are query, key, value, dense"):
        add_adapters(model, Lora(targets=("q",)))
    with pytest.raises(UserError, match=r"names valeu, which no layer"):
        add_adapters(model, Lora(targets=("query", "valeu")))
    add_adapters(model, Lora(targets=("query", "value")))
    parts = {name.split(".lora_")[0].rpartition(".")[2] for name in model.state_dict()}
    adapted = {n.split(".lora_")[0].rpartition(".")[2] for n in model.state_dict() if "lora_" in n}
    assert adapted == {"query", "value"} < parts


def test_settings_that_cannot_be_are_refused(monkeypatch):
    with pytest.raises(UserError, match="rank must be at least 1, but is 0"):
        Lora(rank=0)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"textmill\[huggingface\]"):
        add_adapters(torch.nn.Linear(2, 2), Lora())

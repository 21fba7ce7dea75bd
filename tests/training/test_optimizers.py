"""What holds of every optimizer: its formula, its state, its groups, its rate."""

import copy
import math

import pytest
import torch
from torch import nn

from tests.checkpoint.saving import through_disk
from textmill.checkpoint.parts import check_fit
from textmill.training import SGD, Adafactor, Adam, AdamW, Muon, registries


class Tiny(nn.Module):
    """Two layers of a stack between an embedding and a head, of many shapes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 6), nn.Linear(6, 4)])
        self.head = nn.Linear(4, 3)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)


def adam_reference(p, g, s, t, c):
    """Kingma and Ba 2015, algorithm 1, with the decay in the gradient."""
    g = g + c.weight_decay * p if p.ndim > 1 else g
    return p - c.lr * adam_direction(g, s, t, c)


def adamw_reference(p, g, s, t, c):
    """Loshchilov and Hutter 2019, algorithm 2."""
    decay = c.weight_decay if p.ndim > 1 else 0
    return p - c.lr * (adam_direction(g, s, t, c) + decay * p)


def adam_direction(g, s, t, c):
    b1, b2 = c.betas
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g**2
    return (s["m"] / (1 - b1**t)) / ((s["v"] / (1 - b2**t)).sqrt() + c.eps)


def sgd_reference(p, g, s, t, c):
    """Sutskever et al. 2013 as torch writes it."""
    g = g + c.weight_decay * p if p.ndim > 1 else g
    s["b"] = c.momentum * s["b"] + g if "b" in s else g
    return p - c.lr * (g + c.momentum * s["b"] if c.nesterov else s["b"])


def adafactor_reference(p, g, s, t, c):
    """Shazeer and Stern 2018, algorithms 4 and 5, with torch's place of the first epsilon."""
    keep, tiny = 1 - t**c.beta2_decay, torch.finfo(p.dtype).eps
    rho = min(c.lr, 1 / math.sqrt(t))
    alpha = max(c.eps, p.pow(2).mean().sqrt().item()) * rho
    p = p * (1 - c.lr * (c.weight_decay if p.ndim > 1 else 0))
    if p.ndim > 1:
        s["r"] = keep * s.get("r", 0) + (1 - keep) * (g**2).mean(-1, keepdim=True)
        s["c"] = keep * s.get("c", 0) + (1 - keep) * (g**2).mean(-2, keepdim=True)
        v = s["r"] @ s["c"] / s["r"].mean(-2, keepdim=True).clamp(min=tiny)
    else:
        v = s["v"] = keep * s.get("v", 0) + (1 - keep) * g**2
    u = g / v.sqrt().clamp(min=tiny)
    return p - alpha * u / max(1.0, u.pow(2).mean().sqrt().item() / c.clip)


def muon_reference(p, g, s, t, c):
    """Jordan et al. 2024 with the scale of Liu et al. 2025; ``s`` says what is in the layers."""
    if not s["hidden"]:
        return adamw_reference(p, g, s, t, c)
    s["b"] = c.momentum * s.get("b", 0) + (1 - c.momentum) * g
    x = (1 - c.momentum) * g + c.momentum * s["b"] if c.nesterov else s["b"]
    x = x / x.norm()
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return p - c.lr * (c.weight_decay * p + 0.2 * math.sqrt(max(p.shape)) * x)


ALL = {
    "adam": (Adam.Config(lr=0.05, weight_decay=0.1), adam_reference),
    "adamw": (AdamW.Config(lr=0.05, weight_decay=0.1), adamw_reference),
    "sgd": (SGD.Config(lr=0.1, weight_decay=0.01), sgd_reference),
    "sgd, momentum": (SGD.Config(lr=0.03, momentum=0.9), sgd_reference),
    "sgd, nesterov": (SGD.Config(lr=0.03, momentum=0.9, nesterov=True), sgd_reference),
    "adafactor": (Adafactor.Config(lr=0.05, weight_decay=0.1), adafactor_reference),
    "muon": (Muon.Config(lr=0.05, weight_decay=0.1), muon_reference),
    "muon, plain": (Muon.Config(lr=0.05, nesterov=False), muon_reference),
}
NOISE = {"muon": 2e-2, "muon, plain": 2e-2}
"""torch's Newton-Schulz steps are in bfloat16, which has 8 bits."""


@pytest.fixture(params=ALL)
def name(request):
    return request.param


class Job:
    """A module with its optimizer and gradients to follow; a task's groups, without a task."""

    def __init__(self, config, *, seed=1):
        torch.manual_seed(seed)
        self.module, self.config = Tiny(), config
        self.optimizer = config.build(module=self.module, task=self)
        self.ids = torch.arange(5)
        self.wanted = torch.randn(5, 3)

    def parameter_groups(self):
        trained = [p for p in self.module.parameters() if p.requires_grad]
        return [
            {"params": [p for p in trained if p.ndim > 1]},
            {"params": [p for p in trained if p.ndim == 1], "weight_decay": 0.0},
        ]

    def loss(self):
        return (self.module(self.ids) - self.wanted).pow(2).mean()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss().backward()
        self.gradients = {
            n: p.grad.clone() for n, p in self.module.named_parameters() if p.requires_grad
        }
        self.optimizer.step()

    def weights(self):
        return {name: p.detach().clone() for name, p in self.module.named_parameters()}


def test_every_optimizer_is_here():
    assert {name.split(",")[0] for name in ALL} == set(registries.optimizers.names())


def test_it_is_the_papers_formula(name):
    config, reference = ALL[name]
    job = Job(config)
    inside = {id(p) for p in job.module.layers.parameters() if p.ndim == 2}
    states = {n: {"hidden": id(p) in inside} for n, p in job.module.named_parameters()}
    for step in range(1, 7):
        before = job.weights()
        job.step()
        after = job.weights()
        found = {
            key: reference(before[key], gradient, states[key], step, config)
            for key, gradient in job.gradients.items()
        }
        for key, wanted in found.items():
            moved, should = after[key] - before[key], wanted - before[key]
            torch.testing.assert_close(
                moved, should, rtol=NOISE.get(name, 1e-4), atol=NOISE.get(name, 5e-5) * config.lr
            )


def test_its_state_is_saved_and_loaded_bitwise(name, tmp_path):
    config = ALL[name][0]
    one, other = Job(config), Job(config, seed=2)
    for _ in range(3):
        one.step()
    saved = copy.deepcopy(one.optimizer.state_dict())
    loaded = through_disk(saved, tmp_path)
    assert check_fit(other.optimizer, loaded) == []
    other.optimizer.load_state_dict(loaded)
    other.module.load_state_dict(one.module.state_dict())
    other.wanted = one.wanted
    for _ in range(3):
        one.step()
        other.step()
    assert all(
        torch.equal(a, b)
        for a, b in zip(one.module.parameters(), other.module.parameters(), strict=True)
    )
    again = through_disk(other.optimizer.state_dict(), tmp_path)
    assert repr(again) == repr(through_disk(one.optimizer.state_dict(), tmp_path))


def test_the_rate_of_a_group_is_obeyed(name):
    """A factor on the group's rate, as the loop sets it, is a factor on the first step."""
    config = ALL[name][0]
    whole, half = Job(config), Job(config)
    for group in half.optimizer.param_groups:
        group["lr"] *= 0.5
    start = whole.weights()
    whole.step()
    half.step()
    for key, weight in whole.weights().items():
        torch.testing.assert_close(
            half.weights()[key] - start[key], (weight - start[key]) / 2, rtol=1e-3, atol=1e-7
        )


def test_a_frozen_parameter_has_no_state_and_does_not_move(name):
    config = ALL[name][0]
    job = Job(type(config)(**{**vars(config), "freeze": ("embedding.*", "layers.0.bias")}))
    before = job.weights()
    job.step()
    trained = {p for p in job.module.parameters() if p.requires_grad}
    assert len(trained) == 5
    assert {p for group in job.optimizer.param_groups for p in group["params"]} == trained
    assert job.optimizer.state.keys() == (trained if name != "sgd" else set())
    after = job.weights()
    still = {key for key in before if torch.equal(before[key], after[key])}
    assert still == {"embedding.weight", "layers.0.bias"}


def test_a_parameter_without_a_gradient_is_left_out(name):
    job = Job(ALL[name][0])
    before = job.weights()
    job.loss().backward()
    job.module.head.weight.grad = None
    job.optimizer.step()
    assert torch.equal(job.module.head.weight, before["head.weight"])
    assert not torch.equal(job.module.head.bias, before["head.bias"])
    job.step()
    assert not torch.equal(job.module.head.weight, before["head.weight"])

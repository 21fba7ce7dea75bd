"""The table of this machine: what is measured, kept and chosen by it."""

import json
from dataclasses import asdict, replace

import pytest
import torch
from torch.nn import functional as F

from textmill.errors import UserError
from textmill.models import fast
from textmill.models.fast import Fast
from textmill.models.layers.attention import MultiHead
from textmill.preflight import machine_steps
from textmill.runtime import machine
from textmill.runtime.devices import processor
from textmill.runtime.machine import FILE, Kernels, Measured, measured, present

needs_bf16 = pytest.mark.skipif(not machine.has_bf16(), reason="oneDNN has no bfloat16 here")
HERE = Measured(processor(), torch.__version__, 2, 1.1, 400.0, 200.0, 100.0, 300.0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    present.cache_clear()
    yield tmp_path / "cache"
    present.cache_clear()


@pytest.mark.parametrize(
    ("milliseconds", "kernels"),
    [
        ((400, 200, 100, 300), Kernels("onednn", "fp32", "bf16")),
        ((200, 400, 300, 110), Kernels("torch", "bf16", "bf16")),
        ((200, 400, 300, 180), Kernels("torch", "bf16", "fp32")),  # too little for other numbers
        ((200, 400, 900, 900), Kernels("torch", "fp32", "fp32")),
    ],
)
def test_the_fastest_way_is_chosen(milliseconds, kernels):
    assert Measured("", "", 1, 1.0, *map(float, milliseconds)).kernels == kernels


def test_what_is_kept_is_read_where_processor_and_torch_are_the_same():
    assert measured() is None
    HERE.write()
    assert measured() == HERE
    assert present() == HERE.kernels
    for other in ({"processor": "another"}, {"torch": "1.0"}):
        replace(HERE, **other).write()
        assert measured() is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not readable as JSON"),
        ("[]", "does not say processor, torch, threads, spread, fp32_torch"),
        (json.dumps({**asdict(HERE), "threads": "2"}), "threads cannot be '2'"),
        (json.dumps({**asdict(HERE), "fp32_torch": 0.0}), "fp32_torch cannot be 0.0"),
    ],
)
def test_what_nobody_measured_is_not_taken(cache, caplog, content, said):
    HERE.write()
    usual = machine.usual()
    (cache / FILE).write_text(content)
    with pytest.raises(UserError, match=said):
        Measured.read(cache / FILE)
    assert present() == usual
    assert said in caplog.text


@pytest.mark.parametrize(
    ("function", "error"), [("exists", PermissionError()), ("home", RuntimeError("no home"))]
)
def test_a_cache_that_cannot_be_looked_into_is_none(monkeypatch, function, error):
    def fail(*_):
        raise error

    monkeypatch.delenv("TEXTMILL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(f"pathlib.Path.{function}", fail)
    assert present() == machine.usual()


def test_nothing_is_measured_where_there_is_nothing_to_choose_from(monkeypatch):
    monkeypatch.setattr(machine_steps, "has_bf16", lambda: False)
    with pytest.raises(UserError, match="There is nothing to choose from"):
        machine_steps.measure()


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("GenuineIntel Xeon avx512f avx512_bf16 amx_bf16", Kernels("torch", "bf16", "fp32")),
        ("AuthenticAMD EPYC avx512f avx512_bf16", Kernels("onednn", "fp32", "fp32")),
        ("AuthenticAMD EPYC avx2", Kernels("torch", "fp32", "fp32")),
    ],
)
def test_what_is_known_of_kinds_of_processors(monkeypatch, name, kernels):
    monkeypatch.setattr(machine, "processor", lambda: name)
    assert machine.usual() == kernels


def test_a_run_takes_what_it_has_recorded():
    HERE.write()
    assert fast.linear_library() == "onednn"
    assert fast.settled(Fast()) == Fast(linear="onednn", attention="fp32")
    assert fast.settled(Fast(linear="torch")) == Fast(linear="torch", attention="fp32")
    recorded = {"linear": "torch", "attention": "bf16"}
    assert fast.settled(Fast(), recorded) == Fast(**recorded)


@needs_bf16
def test_each_way_is_measured(monkeypatch):
    monkeypatch.setattr(machine_steps, "LENGTHS", (8,))
    monkeypatch.setattr(machine_steps, "TOKENS", 64)
    monkeypatch.setattr(machine_steps, "FEATURES", 16)
    state = torch.get_rng_state()
    found = machine_steps.measure(repetitions=1)
    found.write()
    assert measured() == found
    assert torch.equal(torch.get_rng_state(), state)


@needs_bf16
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
def test_attention_in_a_pass_of_bf16_is_of_the_type_that_is_chosen(kind):
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 2, 4, 9, 16).bfloat16()
    heads = MultiHead.Config().build(num_heads=4, dropout=0.0)
    with fast.using(Fast(attention=kind)), torch.autocast("cpu", torch.bfloat16):
        found = heads(q, k, v)
    given = (each.float() for each in (q, k, v)) if kind == "fp32" else (q, k, v)
    assert torch.equal(found, F.scaled_dot_product_attention(*given))

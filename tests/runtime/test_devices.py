import pytest
import torch

from textmill.errors import UserError
from textmill.runtime.devices import Env


def test_detect_reads_what_torchrun_sets(monkeypatch):
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    env = Env.detect("cpu")
    assert (env.rank, env.world_size, env.local_rank, env.is_main) == (3, 4, 1, False)


def test_auto_takes_the_accelerator_of_the_local_rank(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert Env.detect().device == "cuda:1"
    assert Env.detect("cuda").device == "cuda:1"
    assert Env.detect("cuda:0").device == "cuda:0"


@pytest.mark.parametrize(
    ("device", "variables", "message"),
    [
        ("gpu", {}, "but is 'gpu'. Did you mean 'cuda'"),
        ("cuda:x", {}, "but is 'cuda:x'"),
        ("cuda:9", {}, "cuda:9 was asked for, but torch finds 0 CUDA devices"),
        ("cpu", {"RANK": "one"}, "RANK must be a whole number, but is 'one'"),
        ("cpu", {"RANK": "2"}, "must be from 0 to 0, but is 2"),
    ],
)
def test_mistakes_are_named(monkeypatch, device, variables, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=message):
        Env.detect(device)

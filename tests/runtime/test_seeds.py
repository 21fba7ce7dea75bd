import json
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from textmill.runtime.seeds import HostRandom, fold, seed_all


def test_fold_has_the_same_values_for_ever():
    assert fold(1, "shuffle", 3) == 4139169465055061369
    code = "from textmill.runtime.seeds import fold; print(fold(-7), fold(2**80, 'é', '', 0))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout == f"{fold(-7)} {fold(2**80, 'é', '', 0)}\n"


def test_seed_all_makes_randomness_a_function_of_seed_and_step():
    seed_all(1, 7)
    first = torch.nn.functional.dropout(torch.ones(100))
    seed_all(1, 7)
    assert torch.equal(first, torch.nn.functional.dropout(torch.ones(100)))
    seed_all(1, 8)
    assert not torch.equal(first, torch.nn.functional.dropout(torch.ones(100)))


def test_seed_all_seeds_cuda_once_it_is_in_use():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    torch.cuda.init()
    seed_all(3, 4)
    first = torch.rand(10, device="cuda")
    seed_all(3, 4)
    assert torch.equal(first, torch.rand(10, device="cuda"))


def draw():
    legacy = np.random  # the global generator is the subject
    return [random.gauss(0, 1), random.random(), legacy.standard_normal(), legacy.rand()]


def test_host_random_goes_on_where_it_was():
    draw()
    random.gauss(0, 1)
    state = json.loads(json.dumps(HostRandom().state_dict()))
    draws = draw()
    HostRandom().load_state_dict(state)
    assert draw() == draws

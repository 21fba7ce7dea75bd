"""What starts each run does without torch's compiler: its import takes longer than all else."""

import os
import subprocess
import sys

import pytest

from textmill.recipes import registries

STEPS = """
import sys, torch
from types import SimpleNamespace
from textmill.models.layers.positions import SinusoidalPositions
from textmill.models.tagger import Tagger
from textmill.preflight.loadable import shape_of
from textmill.recipes import registries
tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0, unk_idx=1))
given = {"tokenizer": tokenizer, "labels": ["O", "B-x", "I-x"]}
module = shape_of(lambda: Tagger.Config(crf=True).build(**given))
assert next(module.parameters()).is_meta
assert shape_of(lambda: SinusoidalPositions(8, max_length=12))
assert "torch._dynamo" not in sys.modules
for name in registries.optimizers.names():
    module = torch.nn.Linear(3, 2)
    config = registries.optimizers.get(name).Config(lr=0.1, weight_decay=0.0)
    optimizer = config.build(module=module)
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad(set_to_none=True)
    print(name)
    if "torch._dynamo" in sys.modules:
        sys.exit(f"{name} imported it")
"""


def test_neither_the_shape_of_a_model_nor_an_optimizer_imports_the_compiler():
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", STEPS], check=False, capture_output=True, text=True, env=environment
    )
    assert done.stderr == ""
    assert done.stdout.split() == sorted(registries.optimizers._modules)


@pytest.mark.slow
def test_torch_still_imports_it_so_the_subclass_is_still_wanted():
    code = "import sys, torch; torch.optim.AdamW([torch.zeros(1)])"
    code += "; sys.exit('torch._dynamo' not in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

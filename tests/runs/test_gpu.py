"""A run on a GPU, by default; skipped where torch finds none."""

import json

import pytest
import torch

import textmill
from tests.runs.tiny import write_recipe

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here"),
]


def test_a_run_takes_the_gpu_and_its_products(tmp_path, monkeypatch):
    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = []
    for device in ("cuda", "cpu"):
        run = textmill.train("tiny.py", ["trainer.max_steps=4"], run_dir=device, device=device)
        found.append(json.loads((run.folder / "run.json").read_text()))
    capability = torch.cuda.get_device_capability()
    assert found[0]["precision"] == ("bf16" if capability >= (8, 0) else "fp32")
    assert found[1]["precision"] == "fp32"
    loss = [each["result"]["test"]["loss"] for each in found]
    assert loss[0] == pytest.approx(loss[1], rel=0.05)
    assert textmill.load("cuda", device="cpu")("my friend sees a bird")

"""Tasks of textmill named by Hydra's configs, in runs that Lightning fits."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import textmill
from tests.recipes.local_data import write_data
from textmill.interop.hydra.run import train_hydra

NAME = "classification/docnn/local"
WORDS = ["train_data.batch_size=3", "train_data.max_tokens=null", "lr_scheduler.type=constant"]
CONFIG = f"""
seed: 1
datamodule:
  _target_: textmill.interop.lightning.as_datamodule
  recipe: {NAME}
  overrides: [{", ".join(WORDS)}]
model:
  _target_: textmill.interop.lightning.as_module
  task: ${{datamodule}}
trainer:
  _target_: lightning.pytorch.Trainer
  accelerator: cpu
  max_epochs: 3
"""
pytestmark = pytest.mark.filterwarnings("ignore::Warning:lightning")


def test_the_weights_are_those_of_textmills_loop_also_where_the_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(NAME)
    Path("configs").mkdir()
    Path("configs/train.yaml").write_text(CONFIG)
    for epochs in (2, 3):
        words = [f"trainer.max_epochs={epochs}"]
        train_hydra("configs", "train.yaml", words, run_dir="by-lightning")
    quiet = ["reporters.console=false", "reporters.html=false", "trainer.max_steps=null"]
    textmill.train(NAME, [*WORDS, *quiet, "trainer.max_epochs=3"], run_dir="run")
    place = "checkpoints/step-00000009/model.safetensors"
    found, own = load_file(f"by-lightning/{place}"), load_file(f"run/{place}")
    assert found.keys() == {f"module.{name}" for name in own}
    assert [name for name in own if not torch.equal(own[name], found[f"module.{name}"])] == []

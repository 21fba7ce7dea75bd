"""Every experiment in its tiny variant under Lightning's Trainer, beside textmill's own loop."""

import json
from pathlib import Path

import pytest
import torch

import textmill
from tests.recipes.local_data import write_data
from textmill.interop.lightning import as_datamodule, as_module, as_trainer
from textmill.recipes import registries
from textmill.recipes.planning import plan_recipe

LOCAL = [
    name
    for name in registries.experiments.names()
    if name.endswith("/local") and not name.endswith("/ngrams/local")  # solved, in one step
]
QUICK = ["classification/docnn/local"]
SILENT = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
SILENT |= {"enable_checkpointing": False}
pytestmark = pytest.mark.filterwarnings("ignore::Warning:lightning")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in LOCAL]
)
def test_it_takes_the_same_steps_as_textmills_loop(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name != "translation/demo/local":
        write_data(name)
    settings = plan_recipe(name, targets=["trainer"]).plan.settings
    words = ["trainer.max_steps=3", "trainer.evaluate_every=3 steps", "reporters.html=false"]
    words += ["reporters.console=false", "trainer.report_every=1 steps"]
    if "decoding" in settings["task"]:
        words += ["task.decoding.max_length_a=0", "task.decoding.max_length_b=5"]
    if settings["trainer"]["ema"]:
        words += ["trainer.ema=null"]
    data = as_datamodule(name, words)
    module, sums = as_module(data), []
    keep(module, sums)
    trainer = as_trainer(data, **SILENT)
    trainer.fit(module, data)

    run = textmill.train(name, words, run_dir="run")
    lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["split"] == "train"]
    assert sums == losses
    own = textmill.load("run", checkpoint="last").task.module.state_dict()
    found = data.task.module.state_dict()
    assert own.keys() == found.keys()
    assert [key for key in own if not torch.equal(own[key], found[key])] == []
    (valid,) = (line for line in lines if line["split"] == "valid")
    values = {n: float(v) for n, v in valid.items() if f"valid/{n}" in trainer.callback_metrics}
    assert "loss" in values
    for key, value in values.items():
        assert trainer.callback_metrics[f"valid/{key}"].item() == pytest.approx(value, nan_ok=True)
    assert run.result["steps"] == trainer.global_step == 3


def keep(module, sums):
    """Keeps the mean loss of each step, as textmill's own reports compute it."""
    step = module.training_step

    def kept(batch, batch_idx):
        total = step(batch, batch_idx)
        sums.append(total.item() / module._losses[-1].count.item())
        return total

    module.training_step = kept

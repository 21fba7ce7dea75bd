"""A recipe in stages: each begins with the weights of the one before, and goes on where it was."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file

import textmill
from tests.recipes.local_data import write_data
from textmill.errors import UserError
from textmill.preflight.check import check

STAGES = """
recipe: bert/pretraining/local
reporters: {console: false, html: false}
trainer: {save_every: 2 steps, evaluate_every: 4 steps}
stages:
  shallow:
    trainer: {max_steps: 6}
  deep:
    model: {encoder: {num_layers: 2}}
    optimizer: {lr: 0.001}
    trainer: {max_steps: 8}
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data("bert/pretraining/local")
    Path("stages.yaml").write_text(STAGES)
    return "stages.yaml"


def weights(stage, run="run"):
    return load_file(max(Path(run, stage).rglob("model.safetensors")))


def test_a_stage_begins_with_the_weights_of_the_one_before(file):
    run = textmill.train(file, ["trainer.max_steps=6"], run_dir="run")
    assert run.folder == Path("run/deep")
    before, after = weights("shallow"), weights("deep")
    assert {*before} < {*after}
    (settings,) = [
        line
        for line in Path("run/deep/config.yaml").read_text().splitlines()
        if "initialize:" in line
    ]
    assert settings.split() == ["initialize:", "run/shallow"]
    log = Path("run/deep/log.txt").read_text()
    assert re.search(r"Initialized from run/shallow/checkpoints/step-00000006: 22 of 34", log)
    assert "layers.1.attention" in log.partition("Not taken from it")[2]


@pytest.mark.parametrize(("stage", "step"), [("shallow", 4), ("deep", 6)])
def test_killed_in_a_stage_it_goes_on_there_to_the_same_weights(file, stage, step):
    textmill.train(file, run_dir="run")
    code = (
        "import os, sys\nfrom textmill.training.checkpoints import RunCheckpoints as R\n"
        "record = R.record\n"
        "def die(self, parts, *, best):\n"
        "    found = record(self, parts, best=best)\n"
        f"    if self.clock.now.steps == {step} and '{stage}' in str(found): os._exit(9)\n"
        "    return found\n"
        "R.record = die\nfrom textmill.cli.main import main\nmain(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", code, "train", file, "--run-dir", "killed"]
    assert subprocess.run(command, env=os.environ, check=False).returncode == 9
    assert Path("killed/deep").exists() == (stage == "deep")
    textmill.train(file, run_dir="killed")
    for each in ("shallow", "deep"):
        one, other = weights(each), weights(each, "killed")
        assert all((one[name] == other[name]).all() for name in one)


def test_stages_are_checked_and_what_is_none_is_refused(file):
    found = check(file, ["model.encoder.depth=3"])
    assert [problem.split(": ")[0] for problem in found.problems] == ["shallow", "deep"]
    Path(file).write_text("recipe: multitask/words\nstages: {a: {trainer: {seed: 2}}}\n")
    with pytest.raises(UserError, match="stages are of one task"):
        textmill.train(file)
    Path(file).write_text("recipe: bert/pretraining/local\nstages: [a, b]\n")
    with pytest.raises(UserError, match="stages: wanted names of stages, in their order"):
        textmill.train(file)
    Path(file).write_text("recipe: bert/pretraining/local\nstages: {../a: {trainer: {seed: 2}}}\n")
    with pytest.raises(UserError, match=r"'\.\./a' is to be the name of a folder"):
        textmill.train(file)

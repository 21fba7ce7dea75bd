"""Going on with a run from a stranger: files that are larger than it can need are not read."""

import json
import os
import resource
import shutil
import time

import pytest

import textmill
from tests.hostile.folder import in_each, manifest_says, steps
from tests.hostile.small_run import small_run, words
from textmill.checkpoint import Checkpoints
from textmill.errors import CheckpointError
from textmill.run_folder.record import Record
from textmill.runtime.jsonl_log import read_lines

SECONDS, MEGABYTES = 5.0, 300
"""Of CPU and memory, for what took a minute and gigabytes."""


def holes(run, name):
    """3 GB that take no disk; the manifest says the size, and the digest fits nobody's bytes."""
    for step in steps(run):
        with (step / name).open("r+b") as file:
            file.truncate(1 << 30)
    size = {"size": 3 << 30}
    manifest_says(files=lambda files: {**files, name: {**files[name], **size}})(run)


def lists(run, name):
    in_each(run, name, b"[" + b"[]," * (21 << 20) + b"1]")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.safetensors", holes, "3,221,225,472 bytes are more than the "),
        ("optimizer.safetensors", holes, "3,221,225,472 bytes are more than the "),
        ("state.json", lists, "44,040,193 items are more than the 1,048,576 allowed"),
    ],
)
def test_what_no_run_can_need_is_not_read_when_it_goes_on(tmp_path, name, change, message):
    small_run()
    run = shutil.copytree(small_run(), tmp_path / "run")
    change(run, name)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(CheckpointError, match=f"{name}: {message}"):
        textmill.train(run, ["trainer.max_steps=6"])
    assert time.process_time() - start < SECONDS
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB"


def pipes(run, name):
    for step in steps(run):
        (step / name).unlink()
        os.mkfifo(step / name)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.safetensors", holes, "3,221,225,472 bytes are more than the 1,07[0-9,]+ that are "),
        ("model.safetensors", pipes, "not a regular file"),
        ("state.json", lists, "44,040,193 items are more than the 1,048,576 allowed"),
        (
            "text/columns/text/tokenizer/words.txt",
            holes,
            "3,[0-9,]* bytes are more than the 1,073,741,824",
        ),
        ("text/columns/text/tokenizer/words.txt", pipes, "not a regular file"),
    ],
)
@pytest.mark.parametrize("part", ["", "checkpoints/step-00000004"])
def test_what_no_run_can_need_is_not_read_to_begin_with(tmp_path, name, change, message, part):
    run = shutil.copytree(small_run(), tmp_path / "run")
    change(run, name)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    said = "text/: " if "text" in name and change is holes else f"{name}: "
    with pytest.raises(CheckpointError, match=f"step-00000004.*{said}{message}"):
        textmill.train(
            "classification/averaging",
            words(**{"trainer.initialize": run / part}),
            run_dir=tmp_path / "new",
        )
    assert time.process_time() - start < SECONDS
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB"


def test_a_part_that_would_not_be_read_again_is_not_saved(tmp_path, monkeypatch):
    import torch
    from torch import nn

    class Large:
        def state_dict(self):
            return {"table": torch.zeros(1000)}

    monkeypatch.setattr("textmill.checkpoint.store.OTHER_STATES", 3000)
    store = Checkpoints(tmp_path / "checkpoints")
    with pytest.raises(CheckpointError) as caught:
        store.save(1, {"model": nn.Linear(1, 1), "data": Large()})
    assert str(caught.value).startswith("Part 'data' has 4,")
    assert "but at most 3,128 are read again beside such a model." in str(caught.value)
    store.save(1, {"data": Large()})  # without a model nothing says what is large
    assert json.loads((tmp_path / "checkpoints" / "last.json").read_text())["step"] == 1


def test_a_log_with_a_hole_of_1_gb_is_not_taken_into_memory(tmp_path):
    run = shutil.copytree(small_run(), tmp_path / "run")
    log = run / "metrics.jsonl"
    size = log.stat().st_size
    with log.open("r+b") as file:
        file.truncate(3 << 30)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len([*read_lines(log)]) == len(Record.read(run).values) > 0
    textmill.train(run, ["trainer.max_steps=6"])
    assert size < log.stat().st_size < 2 * size
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB"

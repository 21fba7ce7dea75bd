"""The disk that a run needs is said before its first step, and refused where it is not there."""

import copy
import logging
import re

import pytest
import torch
from torch import nn

from tests.runs.tiny import write_recipe
from textmill.errors import StorageError
from textmill.preflight.disk_need import optimizer_bytes
from textmill.recipes import registries
from textmill.runs import train as run
from textmill.runtime.disk import operations

QUIET = ["trainer.max_steps=1", "reporters.console=false", "reporters.html=false"]


@pytest.fixture
def train(tmp_path, monkeypatch, caplog):
    """Trains the tiny recipe, with the disk as a test wants it."""
    write_recipe(tmp_path)
    caplog.set_level(logging.INFO, logger="textmill")
    logging.getLogger("textmill").propagate = True

    def command(*words, free=10**12):
        monkeypatch.setattr(operations, "free", lambda folder: free)
        caplog.clear()
        done = run.train("tiny.py", [*QUIET, "valid_data=null", "test_data=null", *words])
        return done, [record.getMessage() for record in caplog.records]

    return command


def test_one_line_says_the_disk_before_step_1_and_one_the_memory_after_it(train):
    done, lines = train("trainer.keep=3")
    (disk,) = (line for line in lines if line.startswith("Disk: "))
    found = re.fullmatch(r"Disk: (\S+) MB for 5 checkpoints of (\S+) MB, of 1,000\.0 GB\.", disk)
    assert float(found[1]) == pytest.approx(5 * float(found[2]), abs=0.3)
    (saved,) = (done.folder / "checkpoints").glob("step-*")
    size = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
    assert float(found[2]) == pytest.approx(size / 1e6, abs=0.15)
    (held,) = (line for line in lines if line.startswith("Memory: "))
    assert re.fullmatch(r"Memory: at most \S+ [MG]B so far, \S+ [MG]B free\.", held)
    assert lines.index(disk) < lines.index(held)


def test_a_disk_without_room_for_all_checkpoints_is_warned_of(train):
    _, lines = train("trainer.keep=9", free=2_000_000)
    assert (
        "The disk has no room for 11 checkpoints (trainer.keep=9, the best, and the one being "
        "written): make room, or lower trainer.keep." in lines
    )
    _, lines = train("trainer.keep=8", "trainer.on_nonfinite=rollback", free=2_000_000)
    assert (
        "The disk has no room for 11 checkpoints (trainer.keep=8, the best, the one that a "
        "rollback goes to, and the one being written): make room, or lower trainer.keep." in lines
    )


def test_a_disk_without_room_for_one_checkpoint_is_refused_before_step_1(train, tmp_path):
    with pytest.raises(StorageError) as caught:
        train(free=1000)
    found = re.fullmatch(
        r"A checkpoint takes 0\.\d MB, but (.*) has 0\.0 MB free\. Make room, or give another disk "
        r"with run_dir\.",
        str(caught.value),
    )
    assert found, caught.value
    (folder,) = (tmp_path / "runs" / "tiny").iterdir()
    assert not (folder / "checkpoints").exists()


@pytest.mark.parametrize("name", sorted(registries.optimizers.names()))
def test_the_state_of_every_optimizer_is_known_before_its_first_step(name):
    module = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 7), nn.LayerNorm(7))
    config = registries.optimizers.get(name).Config(weight_decay=0.0)
    optimizer = config.build(module=module)
    before = copy.deepcopy(module.state_dict())
    found = optimizer_bytes(optimizer)
    assert not optimizer.state
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    module(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    tensors = [v for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
    assert found == sum(t.numel() * t.element_size() for t in tensors)
    assert optimizer_bytes(optimizer) == found

"""What a run needs is said before its first step, once measured, and refused where it cannot be."""

import json
import logging
import re
import subprocess
import sys

import pytest
import torch

from tests.runs.tiny import write_recipe
from textmill.data import Seq2SeqBatch
from textmill.errors import StorageError
from textmill.preflight import resource_estimate as needs
from textmill.preflight.resource_estimate import ResourceEstimate
from textmill.runs import train as run
from textmill.runtime import memory
from textmill.runtime.disk import operations
from textmill.tasks import Translation

QUIET = ["trainer.max_steps=1", "reporters.console=false", "reporters.html=false"]


@pytest.fixture
def train(tmp_path, monkeypatch, caplog):
    """Trains the tiny recipe, with one process's memory and disk as a test wants them."""
    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.INFO, logger="textmill")
    logging.getLogger("textmill").propagate = True

    def command(*words, free=10**12, room=10**12):
        monkeypatch.setattr(operations, "free", lambda folder: free)
        monkeypatch.setattr(memory, "host_room", lambda: room)
        # Else it grows by 0.2 MB from the measurement to the line, more than the room of a test.
        monkeypatch.setattr(memory, "resident", lambda: 300_000_000)
        caplog.clear()
        done = run.train("tiny.py", [*QUIET, "valid_data=null", "test_data=null", *words])
        return done, [record.getMessage() for record in caplog.records]

    return command


def needed(lines):
    return [line for line in lines if line.startswith("Needed: ")]


def test_one_line_says_it_before_step_1_and_a_second_start_does_not_measure(train, monkeypatch):
    done, lines = train("trainer.keep=3")
    (line,) = needed(lines)
    wanted = (
        r"Needed: ([\d.]+) MB of disk for 5 checkpoints of ([\d.]+) MB, of 1,000\.0 GB; "
        r"about ([\d.,]+) [MG]B of memory at most, of 1,00\d\.\d GB\."
    )
    assert re.fullmatch(wanted, line), line
    info = json.loads((done.folder / "run.json").read_text())["need"]
    assert info["batches"] is True
    (saved,) = (done.folder / "checkpoints").glob("step-*")
    size = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
    assert size <= info["checkpoint"] <= size + 100_000
    monkeypatch.setattr(run, "estimate_resources", lambda trainer: pytest.fail("measured again"))
    again = run.train(done.folder, ["trainer.max_steps=2", *QUIET[1:]], allow_code=True)
    assert again.result["steps"] == 2


def test_a_full_disk_and_little_memory_are_warned_of(train):
    _, lines = train("trainer.keep=9", free=2_000_000, room=1000)
    assert (
        "The disk has no room for 11 checkpoints (trainer.keep=9, the best, and the one being "
        "written): make room, or lower trainer.keep." in lines
    )
    assert needs.SHORT in lines
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


class Broken(Translation):
    """Its step fails."""

    def training_step(self, batch):
        raise RuntimeError("not before step 1")


def test_of_ready_batches_and_of_a_step_that_fails_the_rest_is_known(bench):
    whole = needs.estimate_resources(bench.make())
    ids = torch.full((2, 5), 7)
    ready = [Seq2SeqBatch.from_padded(ids, ids, pad_idx=0)]
    for other in (bench.but(train_data=lambda: ready), bench.but(task_class=Broken)):
        found = needs.estimate_resources(other.make())
        assert (whole.batches, found.batches) == (True, False)
        assert found.checkpoint == pytest.approx(whole.checkpoint, abs=200)


def test_a_line_without_what_a_batch_takes_and_without_what_is_there():
    need = ResourceEstimate(checkpoint=1, memory=2_000_000, batches=False, device="mps")
    assert need.memory_words(torch.device("mps")) == (
        "about 2.0 MB of mps memory at most besides what a batch takes",
        None,
    )


MEASURED = """
import json, sys
from textmill.runs.train import train
from textmill.runtime.memory import peak_resident
done = train("tiny.py", sys.argv[1:])
need = json.loads((done.folder / "run.json").read_text())["need"]
print(need["memory"], peak_resident())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["model.dim=512", "train_data.batch_size=26", "trainer.accumulate=1"],
        ["model.dim=512", "model.num_encoder_layers=6", "trainer.ema=0.9", "optimizer.type=lion"],
        ["model.dim=256", "train_data.batch_size=null", "train_data.max_tokens=20000"],
    ],
)
def test_a_process_holds_what_was_said(tmp_path, words):
    write_recipe(tmp_path)
    rows = (tmp_path / "train.tsv").read_text() * 200
    (tmp_path / "train.tsv").write_text(rows)
    settings = ["trainer.max_steps=6", "reporters.console=false", "valid_data=null"]
    settings += ["test_data=null", *words]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *settings],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said, held = map(int, done.stdout.split())
    assert said == pytest.approx(held, rel=0.25)

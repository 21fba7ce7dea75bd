"""Run folders made by hand: as small as they can be, for what only reads or deletes them."""

import json
import os
from pathlib import Path

from torch import nn

from textmill.checkpoint.store import Checkpoints
from textmill.run_folder.folder import RunFolder


def made_run(path: Path, *, steps=(10, 20, 30), best=20, finished=True, lr=0.001, **info) -> Path:
    """A run with checkpoints, values and a record."""
    path.mkdir(parents=True)
    folder = RunFolder(path)
    settings = {
        "optimizer": {"type": "adamw", "lr": lr, "betas": [0.9, 0.98]},
        "trainer": {"max_steps": 30, "seed": 1},
    }
    folder.write_config("tiny/made", settings, {}, swaps={}, run="0" * 16)
    (path / "recipe.py").write_text("model = 1\n")
    result = {"steps": 30, "best": {"step": best, "bleu": 28.5}} if finished else None
    start = {
        "command": ["textmill", "train", "tiny/made"],
        "versions": {"python": "3.11.7", "torch": "2.13.0"},
        "git": {"commit": "a" * 40, "clean": True, "changes": None},
    }
    said = {
        "recipe": "tiny/made", "key": "0123456789ab", "starts": [start],
        "data": {"train_data": "d" * 64}, "finished": finished, "result": result, **info,
    }  # fmt: skip
    folder.write_info(**said)
    lines = [
        {
            "split": split, "step": step, "epoch": step / 10, "loss": 4 - step / 10 + extra,
            "time": {},
        }
        for step in steps
        for split, extra in (("train", 0.0), ("valid", 0.5))
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (path / "metrics.jsonl").write_text(text)
    store = Checkpoints(path / "checkpoints", keep=max(1, len(steps)))
    for step in steps:
        store.save(step, {"model": nn.Linear(2, 1)})
    if best in steps:
        store.mark_best(best)
    return path


def aged(run: Path, days: float, now: float) -> Path:
    """The run as if it was written so long ago."""
    for name in ("run.json", "metrics.jsonl"):
        os.utime(run / name, (now - days * 86_400,) * 2)
    return run


def steps_of(run: Path) -> list[int]:
    """Steps of the checkpoints that are there."""
    found = (run / "checkpoints").glob("step-*")
    return sorted(int(path.name.removeprefix("step-")) for path in found)

"""Steps of textmill's own loop, and of the same task under Lightning's Trainer.

    python benchmarks/under_lightning.py
    python benchmarks/under_lightning.py --recipe translation/tatoeba train_data.path=train.tsv

The two take the same steps on the same batches, to the last bit, one after the other in turn. Of
each the median is given of the time from one step to the next, and what the process used of it.
"""

import argparse
import itertools
import json
import logging
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from textmill.interop.lightning import as_datamodule, as_module, as_trainer
from textmill.interop.lightning.prepared import prepare

QUIET = ["reporters.console=false", "reporters.html=false", "trainer.evaluate_every=1000000 steps"]
SILENT = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}


def timed(task: Any, train: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Seconds on the wall and of the process between the steps of a training."""
    wall, used, step = [], [], task.training_step

    def stepped(batch: Any, examples: Any) -> Any:
        wall.append(time.perf_counter())
        used.append(time.process_time())
        return step(batch, examples)

    task.training_step = stepped
    train()
    warmup = len(wall) // 5
    return [
        [after - before for before, after in itertools.pairwise(times)][warmup:]
        for times in (wall, used)
    ]


def by_textmill(recipe: str, words: list[str]) -> tuple[list[float], list[float]]:
    prepared = prepare(recipe, words, device="cpu")
    return timed(prepared.trainer.task, prepared.trainer.fit)


def by_lightning(recipe: str, words: list[str]) -> tuple[list[float], list[float]]:
    data = as_datamodule(recipe, words, device="cpu")
    module = as_module(data)
    trainer = as_trainer(data, accelerator="cpu", enable_checkpointing=False, **SILENT)
    return timed(module.task, lambda: trainer.fit(module, data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--recipe", default="translation/demo")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "textmill"):
        logging.getLogger(name).setLevel(logging.ERROR)
    words = [*QUIET, f"trainer.max_steps={asked.steps}", *asked.words]
    found: dict[str, list[tuple[float, float]]] = {"textmill": [], "lightning": []}
    for _ in range(asked.repetitions):
        for name, train in (("textmill", by_textmill), ("lightning", by_lightning)):
            wall, used = train(asked.recipe, words)
            found[name].append((statistics.median(wall), statistics.median(used)))
    for name, rows in found.items():
        shown = {"ms_step": 0, "cpu_ms_step": 1}
        best = {key: round(1e3 * min(row[at] for row in rows), 3) for key, at in shown.items()}
        print(json.dumps({"loop": name, "recipe": asked.recipe, **best}))


if __name__ == "__main__":
    main()

"""Training of a tagger in textmill's trainer and in a loop written by hand around the same module.

    python benchmarks/tagging.py --peer "textmill, CRF"
    python benchmarks/tagging.py --peer "bare, LSTM" --steps 200

The module is that of ``tagging/bilstm-crf`` or ``tagging/bilstm``, as they are shipped; sentences
are generated, with lengths and words spread as in a treebank. Every loop takes 16 sentences a step,
clips the gradient's norm and takes torch's fused Adam. "bare" draws its batches at random, as a
DataLoader does; "bare, by length" sorts within pools of 50 batches. What is counted are words
without padding, after the first tenth of the steps.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from machine import Watch

ROWS, POOL, VOCABULARY, LABELS = 16, 50, 8000, 17
PEERS = [
    f"{loop}, {name}"
    for name in ("CRF", "LSTM")
    for loop in ("textmill", "bare", "bare, by length")
]


class Meter:
    """Words and seconds, from the first tenth of the steps to the last: not what a run saves."""

    def __init__(self, steps: int) -> None:
        self.left, self.warmup = steps, max(1, steps // 10)
        self.words, self.watch, self.start = 0, Watch(), (0.0, 0.0)
        self.found: dict[str, float] = {}

    def step(self, words: int) -> bool:
        """Counts a step; whether it was the last."""
        self.left, self.warmup = self.left - 1, self.warmup - 1
        if self.warmup >= 0:
            self.start, self.watch = (time.perf_counter(), time.process_time()), Watch()
        else:
            self.words += words
        if self.left == 0:
            wall = time.perf_counter() - self.start[0]
            cpu = time.process_time() - self.start[1]
            others = self.watch.read()["others"]
            self.found = {
                "tok_s": self.words / wall,
                "tok_cpu_s": self.words / cpu,
                "others": others,
            }
        return self.left <= 0

    def read(self) -> dict[str, float]:
        """Words a second, and a second of this process's CPU."""
        return self.found


def sentences(count: int) -> list[dict[str, str]]:
    """Words whose frequencies fall as those of a language do, 1 to 60 of them, with labels."""
    draw = random.Random(0)
    letters = "etaoinshrdlu"
    words = ["".join(draw.choices(letters, k=draw.randint(1, 10))) for _ in range(VOCABULARY)]
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    rows = []
    for _ in range(count):
        length = min(60, 1 + int(draw.lognormvariate(2.5, 0.7)))
        tags = [f"T{draw.randrange(LABELS)}" for _ in range(length)]
        rows.append(
            {"words": " ".join(draw.choices(words, weights, k=length)), "tags": " ".join(tags)}
        )
    return rows


class Data:
    """Rows as a recipe has them."""

    def __init__(self, rows: list[dict[str, str]], batch_size: int) -> None:
        from textmill.data.batching import Batching

        self._rows, self.batching = rows, Batching(batch_size=batch_size)

    def rows(self) -> list[dict[str, str]]:
        return self._rows

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(self._rows)


def made(rows: list[dict[str, str]], *, crf: bool) -> Any:
    """The task of the shipped experiment with its module."""
    from textmill.recipes.experiments.tagging import tagging_bilstm, tagging_bilstm_crf

    recipe = (tagging_bilstm_crf if crf else tagging_bilstm)().ingredients
    fitted = ("tokenizer", "characters", "affixes", "labels")
    given = {name: recipe[name].build(train_data=rows) for name in fitted}
    return recipe["task"].build(module=recipe["model"].build(**given), **given)


def bare(task: Any, rows: list[dict[str, str]], meter: Meter, *, by_length: bool) -> None:
    """What a careful person writes; rows are encoded before, as a Dataset would have them."""
    encoded = task.text.encode(rows, with_targets=True)
    kinds = task.text.all
    words, tags = encoded["words"], encoded["tags"]
    beside = {
        name: [torch.from_numpy(row).view(-1, kinds[name].width).long() for row in encoded[name]]
        for name in ("characters", "affixes")
    }
    ids, gold = ([torch.from_numpy(row).long() for row in c] for c in (words, tags))
    module, draw = task.module, random.Random(1)
    parameters = list(module.parameters())
    optimizer = torch.optim.Adam(parameters, lr=2e-3, fused=True)
    pad = torch.nn.utils.rnn.pad_sequence
    module.train()
    while True:
        order = draw.sample(range(len(ids)), len(ids))
        pool = ROWS * POOL if by_length else ROWS
        pools = [order[at : at + pool] for at in range(0, len(order), pool)]
        ordered = [i for one in pools for i in sorted(one, key=lambda i: len(ids[i]))]
        batches = [ordered[at : at + ROWS] for at in range(0, len(ordered), ROWS)]
        for batch in draw.sample(batches, len(batches)):
            lengths = torch.tensor([len(ids[i]) for i in batch])
            inputs = pad([ids[i] for i in batch], batch_first=True)
            given = {
                n: pad([made[i] for i in batch], batch_first=True) for n, made in beside.items()
            }
            right = pad([gold[i] for i in batch], batch_first=True, padding_value=-1)
            scores, real = module(inputs, lengths, **given), right >= 0
            if module.crf is None:
                loss = torch.nn.functional.cross_entropy(scores[real], right[real])
            else:
                loss = -module.crf.log_likelihood(scores, right, real).sum() / real.sum()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if meter.step(int(lengths.sum())):
                return


def textmill(
    task: Any,
    rows: list[dict[str, str]],
    meter: Meter,
    *,
    count: Callable[[Any], int] | None = None,
    batch_size: int = ROWS,
    optimizer: Any = None,
    schedule: Any = None,
    **settings: Any,
) -> None:
    """The trainer with the reporters that a run has; what is left out is a tagger's."""
    from textmill.metrics.reporters.console import Console
    from textmill.metrics.reporters.jsonl import JsonLines
    from textmill.runtime.devices import Env, Experiment
    from textmill.training import Adam, Callback, Constant, Trainer

    counted = []
    plain = task.training_step

    def training_step(batch: Any, examples: Any) -> Any:
        counted.append(count(batch) if count else int(batch.lengths["words"].sum()))
        return plain(batch, examples)

    class Clock(Callback):
        def step(self, progress: Any) -> bool:
            return meter.step(counted[-1])

    task.training_step = training_step
    with tempfile.TemporaryDirectory() as folder:
        xp = Experiment(folder=Path(folder), recipe="tagging")
        Trainer.Config(max_epochs=1000, **settings).build(
            task=task,
            optimizer=(optimizer or Adam.Config(lr=2e-3)).build(module=task.module, task=task),
            lr_scheduler=(schedule or Constant.Config()).build(),
            train_data=Data(rows, batch_size),
            reporters=[Console.Config().build(), JsonLines.Config().build(xp=xp)],
            callbacks=[Clock()],
            env=Env(),
            xp=xp,
        ).fit()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    loop, _, model = args.peer.rpartition(", ")
    rows = sentences(ROWS * min(args.steps, 500))
    task, meter = made(rows, crf=model == "CRF"), Meter(args.steps)
    if loop == "textmill":
        textmill(task, rows, meter)
    else:
        bare(task, rows, meter, by_length=loop != "bare")
    print(json.dumps({"bench": "tagging", "peer": args.peer, **meter.read()}))


if __name__ == "__main__":
    main()

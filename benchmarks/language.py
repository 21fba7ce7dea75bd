"""The LSTM language model in textmill's loop and in a plain one: the same losses, and their cost.

    python benchmarks/language.py --data train.txt --lines 3000 --steps 200
    python benchmarks/language.py --data train.txt --valid valid.txt --minutes 20 --side textmill
    python benchmarks/language.py --data train.txt --valid valid.txt --minutes 20 --side plain

Both read the same streams of words, begin with the same weights and use the same optimizer. Times
are seconds of this process's CPU, so that other programs on the machine do not count.

With ``--steps`` both take the same steps, without dropout, which alone would differ. One line of
JSON tells the largest relative difference of a step's loss and the ratio of the speeds; the first
tenth of the steps is not counted.

With ``--minutes`` a side trains for so long, with the dropout and along the cosine of
``language/lstm``, and is evaluated on ``--valid``, both by textmill. The plain loop ends with its
time; textmill takes as many steps as fit by the time of a trial of 40.
"""

import argparse
import json
import logging
import math
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

CLIP, DIM, LAYERS, WARMUP = 0.25, 200, 2, 100
TRIAL = 40  # steps that tell how long one takes, of which the first tenth is not counted


class Plain(nn.Module):
    """The network as a script has it, after pytorch/examples/word_language_model."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size, DIM)
        self.lstm = nn.LSTM(DIM, DIM, num_layers=LAYERS, batch_first=True, dropout=dropout)
        self.output = nn.Linear(DIM, size)
        self.output.weight = self.tokens.weight
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: torch.Tensor, state: Any) -> Any:
        out, state = self.lstm(self.dropout(self.tokens(ids)), state)
        return self.output(self.dropout(out)), state

    def take(self, module: nn.Module) -> None:
        """Takes the weights of textmill's module."""
        weights = module.state_dict()
        named = {theirs: weights[own] for theirs, own in self.names().items()}
        self.load_state_dict({**named, "output.weight": weights["tokens.weight"]})

    def give(self, module: nn.Module) -> None:
        """Gives its weights to textmill's module."""
        weights = self.state_dict()
        named = {own: weights[theirs] for theirs, own in self.names().items()}
        module.load_state_dict({**named, "output_weight": weights["tokens.weight"]})

    def names(self) -> dict[str, str]:
        """What textmill calls each of its weights, but the output's, which are the tokens'."""
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        layers = {
            f"lstm.{kind}_l{number}": f"layers.{number}.{kind}_l0"
            for number in range(LAYERS)
            for kind in kinds
        }
        return {"tokens.weight": "tokens.weight", "output.bias": "output_bias", **layers}


class Meter:
    """Steps and CPU seconds, up to a number of the one or the other."""

    def __init__(self, *, steps: int | None = None, seconds: float = math.inf) -> None:
        self.most_steps, self.most_seconds = steps, seconds
        self.warmup = max(1, (steps or 0) // 10)
        self.begin()

    def begin(self) -> None:
        """Starts the clock: what was made ready before does not count."""
        self.steps = 0
        self.start = self.warm = self.now = time.process_time()

    def step(self) -> None:
        """Counts a step."""
        self.steps += 1
        self.now = time.process_time()
        if self.steps == self.warmup:
            self.warm = self.now

    def share(self) -> float:
        """How much of the run is over, from 0 to 1."""
        if self.most_steps is not None:
            return self.steps / self.most_steps
        return min(1.0, (time.process_time() - self.start) / self.most_seconds)

    def seconds_a_step(self) -> float:
        """Without the first tenth."""
        return (self.now - self.warm) / (self.steps - self.warmup)


def cosine(meter: Meter) -> float:
    """The factor of the learning rate that ``language/lstm`` has."""
    return min(1.0, (meter.steps + 1) / WARMUP) * (1 + math.cos(math.pi * meter.share())) / 2


def plain(
    ids: torch.Tensor,
    model: Plain,
    args: argparse.Namespace,
    meter: Meter,
    *,
    factor: Callable[[Meter], float] = lambda _: 1.0,
) -> list[float]:
    """The loop of a script: streams side by side, the state detached from step to step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=args.rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: factor(meter))
    criterion = nn.CrossEntropyLoss()
    count = len(ids) - 1
    cuts = [number * count // args.batch for number in range(args.batch)]
    length = count // args.batch
    inputs = torch.stack([ids[cut : cut + length] for cut in cuts])
    targets = torch.stack([ids[cut + 1 : cut + 1 + length] for cut in cuts])
    state, losses, at = None, [], 0
    meter.begin()
    while meter.share() < 1:
        if at + args.block > length:
            state, at = None, 0
        out, state = model(inputs[:, at : at + args.block], state)
        state = tuple(part.detach() for part in state)
        wanted = targets[:, at : at + args.block]
        loss = criterion(out.reshape(-1, out.shape[-1]), wanted.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
        at += args.block
        meter.step()
        schedule.step()
    return losses


def textmill(
    task: Any, data: Any, args: argparse.Namespace, meter: Meter, *, cosine: bool = False
) -> list[float]:
    """The same by textmill's trainer, with its metrics.jsonl."""
    from textmill.metrics.reporters.jsonl import JsonLines
    from textmill.runtime.devices import Env, Experiment
    from textmill.training import Adam, Callback, Constant, Cosine, Every, Trainer

    class Clock(Callback):
        def start(self, progress: Any) -> None:
            meter.begin()

        def step(self, progress: Any) -> None:
            meter.step()

    schedule = Cosine.Config(warmup_steps=WARMUP) if cosine else Constant.Config(warmup_steps=0)
    with tempfile.TemporaryDirectory() as folder:
        xp, steps = Experiment(Path(folder)), Every(1, "steps")
        Trainer.Config(max_steps=meter.most_steps, clip_norm=CLIP, report_every=steps).build(
            task=task,
            optimizer=Adam.Config(lr=args.rate, betas=(0.9, 0.999), eps=1e-8).build(
                module=task.module, task=task
            ),
            lr_scheduler=schedule.build(),
            train_data=data,
            reporters=[JsonLines.Config().build(xp=xp)],
            callbacks=[Clock()],
            env=Env(),
            xp=xp,
        ).fit()
        lines = [json.loads(line) for line in (xp.folder / "metrics.jsonl").open()]
    return [line["loss"] for line in lines if line.get("split") == "train"]


class Job:
    """The text, and both models with the same weights."""

    def __init__(self, path: Path, args: argparse.Namespace, *, dropout: float) -> None:
        from textmill.data.text_lines import TextLines
        from textmill.text.tokenizers.word_tokenizer import FittedWords

        lines = TextLines.Config(path=path, batch_size=args.batch, shuffle=False)
        self.args, self.dropout, self.data = args, dropout, lines.build().read()
        words = FittedWords.Config(marks=True, lowercase=False)
        self.tokenizer = words.build(train_data=self.data)

    def task(self) -> Any:
        """Textmill's task, with a new module."""
        from textmill.models.language_model import LstmLanguageModel
        from textmill.tasks.language_model import LanguageModeling

        torch.manual_seed(1)
        config = LstmLanguageModel.Config(dim=DIM, num_layers=LAYERS, dropout=self.dropout)
        module = config.build(tokenizer=self.tokenizer)
        return LanguageModeling.Config(block=self.args.block).build(
            module=module, tokenizer=self.tokenizer
        )

    def plain(self, task: Any) -> Plain:
        """The script's model, with the weights of the task's."""
        model = Plain(self.tokenizer.vocab_info.size, self.dropout)
        model.take(task.module)
        return model

    def ids(self, task: Any) -> torch.Tensor:
        """The text as the script has it."""
        rows = task.text.encode(self.data.rows(), with_targets=False)["text"].values
        return torch.tensor([task.text.eos_idx, *rows.tolist()])


def compared(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    """The same steps by both."""
    job = Job(path, args, dropout=0.0)
    task = job.task()
    model, ids = job.plain(task), job.ids(task)
    meters = Meter(steps=args.steps), Meter(steps=args.steps)
    found, wanted = textmill(task, job.data, args, meters[0]), plain(ids, model, args, meters[1])
    apart = max(abs(a - b) / b for a, b in zip(found, wanted, strict=True))
    speeds = [args.batch * args.block / meter.seconds_a_step() for meter in meters]
    return {
        "vocabulary": job.tokenizer.vocab_info.size,
        "steps": args.steps,
        "first_loss": round(wanted[0], 4),
        "last_loss_textmill": round(found[-1], 4),
        "last_loss_plain": round(wanted[-1], 4),
        "largest_relative_difference": apart,
        "targets_per_cpu_second_textmill": round(speeds[0]),
        "targets_per_cpu_second_plain": round(speeds[1]),
        "speed_ratio": round(speeds[0] / speeds[1], 3),
    }


def timed(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    """One side for some minutes."""
    from textmill.data.text_lines import TextLines
    from textmill.models.language_model import LstmLanguageModel
    from textmill.tasks.evaluation import evaluate

    job = Job(path, args, dropout=LstmLanguageModel.Config().dropout)
    task, seconds = job.task(), 60 * args.minutes
    if args.side == "textmill":
        trial = Meter(steps=TRIAL)
        textmill(job.task(), job.data, args, trial)
        meter = Meter(steps=max(1, int(seconds / trial.seconds_a_step())))
        textmill(task, job.data, args, meter, cosine=True)
    else:
        model, meter = job.plain(task), Meter(seconds=seconds)
        plain(job.ids(task), model, args, meter, factor=cosine)
        model.give(task.module)
    valid = TextLines.Config(path=args.valid, batch_size=args.batch, shuffle=False).build().read()
    found = evaluate(task, task.batches(valid, train=False, seed=0)).values
    return {
        "side": args.side,
        "vocabulary": job.tokenizer.vocab_info.size,
        "cpu_minutes": round((meter.now - meter.start) / 60, 2),
        "steps": meter.steps,
        "valid_loss": round(found["loss"], 4),
        "valid_perplexity": round(found["perplexity"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a text file, as WikiText-2's")
    parser.add_argument("--lines", type=int, help="how many of its first lines; all if left out")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--minutes", type=float, help="train so long instead, of a process's CPU")
    parser.add_argument(
        "--side", choices=("textmill", "plain"), default="textmill", help="of --minutes"
    )
    parser.add_argument("--valid", type=Path, help="what --minutes is evaluated on")
    parser.add_argument("--batch", type=int, default=20, help="streams")
    parser.add_argument("--block", type=int, default=35, help="tokens of a stream in a step")
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    if args.minutes is not None and args.valid is None:
        parser.error("--minutes needs --valid, a text to evaluate on")
    torch.set_num_threads(args.threads)
    logging.getLogger("textmill").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        with args.data.open(encoding="utf-8") as lines:
            path.write_text("".join(islice(lines, args.lines)), encoding="utf-8")
        print(json.dumps(compared(args, path) if args.minutes is None else timed(args, path)))


if __name__ == "__main__":
    main()

"""The LSTM language model in weft's loop and in a plain one: the same losses, and what they take.

    python benchmarks/language.py --data train.txt --lines 3000 --steps 200

Both read the same streams of words, begin with the same weights and take the same steps, without
dropout, which alone would differ. What is counted are targets in a second of this process's CPU;
the first tenth of the steps is not counted. One line of JSON tells the largest relative difference
of a step's loss and the ratio of the speeds.
"""

import argparse
import json
import logging
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

RATE, CLIP, DIM, LAYERS = 2e-3, 0.25, 200, 2


class Plain(nn.Module):
    """The network as a script has it, after pytorch/examples/word_language_model."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size, DIM)
        self.lstm = nn.LSTM(DIM, DIM, num_layers=LAYERS, batch_first=True)
        self.output = nn.Linear(DIM, size)
        self.output.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor, state: Any) -> Any:
        out, state = self.lstm(self.tokens(ids), state)
        return self.output(out), state

    def take(self, weights: dict[str, torch.Tensor]) -> None:
        """Takes the weights of weft's module."""
        named = {
            "tokens.weight": weights["tokens.weight"],
            "output.weight": weights["tokens.weight"],
        }
        named["output.bias"] = weights["output_bias"]
        for number in range(LAYERS):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                own = weights[f"layers.{number}.{kind}_l0"]
                named[f"lstm.{kind}_l{number}"] = own
        self.load_state_dict(named)


class Meter:
    """CPU seconds from the end of the steps that warm up to the last one."""

    def __init__(self, warmup: int) -> None:
        self.warmup, self.steps, self.began, self.seconds = warmup, 0, 0.0, 0.0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.warmup:
            self.began = time.process_time()
        self.seconds = time.process_time() - self.began


def plain(ids: torch.Tensor, model: Plain, args: argparse.Namespace, meter: Meter) -> list[float]:
    """The loop of a script: streams side by side, the state detached from step to step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    criterion = nn.CrossEntropyLoss()
    count = len(ids) - 1
    cuts = [number * count // args.batch for number in range(args.batch)]
    length = count // args.batch
    inputs = torch.stack([ids[cut : cut + length] for cut in cuts])
    targets = torch.stack([ids[cut + 1 : cut + 1 + length] for cut in cuts])
    state, losses, at = None, [], 0
    while len(losses) < args.steps:
        if at + args.block > length:
            raise SystemExit("The text is too short for so many steps: raise --lines.")
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
    return losses


def weft(task: Any, data: Any, args: argparse.Namespace, meter: Meter) -> list[float]:
    """The same by weft's trainer, with its metrics.jsonl."""
    from weft.metrics.reporters.jsonl import JsonLines
    from weft.runtime.devices import Env
    from weft.runtime.experiment import Experiment
    from weft.training import Adam, Callback, Constant, Every, Trainer

    class Clock(Callback):
        def step(self, progress: Any) -> None:
            meter.step()

    with tempfile.TemporaryDirectory() as folder:
        xp = Experiment(Path(folder))
        Trainer.Config(max_steps=args.steps, clip_norm=CLIP, report_every=Every(1, "steps")).build(
            task=task,
            optimizer=Adam.Config(lr=RATE, betas=(0.9, 0.999), eps=1e-8).build(
                module=task.module, task=task
            ),
            lr_scheduler=Constant.Config(warmup_steps=0).build(),
            train_data=data,
            reporters=[JsonLines.Config().build(xp=xp)],
            callbacks=[Clock()],
            env=Env(),
            xp=xp,
        ).fit()
        lines = [json.loads(line) for line in (xp.folder / "metrics.jsonl").open()]
    return [line["loss"] for line in lines if line.get("split") == "train"]


def measured(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    from weft.data.text_lines import TextLines
    from weft.models.language_model import LstmLanguageModel
    from weft.tasks.language_model import LanguageModeling
    from weft.text.words import FittedWords

    data = TextLines.Config(path=path, batch_size=args.batch, shuffle=False).build().read()
    tokenizer = FittedWords.Config(marks=True, lowercase=False).build(train_data=data)
    torch.manual_seed(1)
    config = LstmLanguageModel.Config(dim=DIM, num_layers=LAYERS, dropout=0.0)
    module = config.build(tokenizer=tokenizer)
    task = LanguageModeling.Config(block=args.block).build(module=module, tokenizer=tokenizer)
    model = Plain(tokenizer.vocab_info.size)
    model.take(module.state_dict())
    rows = task.text.encode(data.rows(), with_targets=False)["text"].values
    ids = torch.tensor([task.text.eos_idx, *rows.tolist()])
    meters = Meter(max(1, args.steps // 10)), Meter(max(1, args.steps // 10))
    found, wanted = weft(task, data, args, meters[0]), plain(ids, model, args, meters[1])
    apart = max(abs(a - b) / b for a, b in zip(found, wanted, strict=True))
    targets = (args.steps - meters[0].warmup) * args.batch * args.block
    speeds = [targets / meter.seconds for meter in meters]
    return {
        "vocabulary": tokenizer.vocab_info.size,
        "steps": args.steps,
        "first_loss": round(wanted[0], 4),
        "last_loss_weft": round(found[-1], 4),
        "last_loss_plain": round(wanted[-1], 4),
        "largest_relative_difference": apart,
        "targets_per_cpu_second_weft": round(speeds[0]),
        "targets_per_cpu_second_plain": round(speeds[1]),
        "speed_ratio": round(speeds[0] / speeds[1], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a text file, as WikiText-2's")
    parser.add_argument("--lines", type=int, default=3000, help="how many of its first lines")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=20, help="streams")
    parser.add_argument("--block", type=int, default=35, help="tokens of a stream in a step")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.getLogger("weft").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        with args.data.open(encoding="utf-8") as lines:
            path.write_text("".join(islice(lines, args.lines)), encoding="utf-8")
        print(json.dumps(measured(args, path)))


if __name__ == "__main__":
    main()

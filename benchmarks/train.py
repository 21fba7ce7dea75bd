"""Training throughput of one loop on the work of bare.py: one repetition, one line of JSON.

    python benchmarks/train.py --data train.tsv --cache /tmp/bench --peer textmill --seconds 10

What is counted are target ids without padding, in a second and in a CPU second; the clock starts
when the first steps are over.
"""

import argparse
import json
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from bare import (
    BATCH,
    DIM,
    DROPOUT,
    FFN,
    HEADS,
    LAYERS,
    PAD,
    RATE,
    Bare,
    Sizes,
    attention_flops,
    budget_batches,
    collated,
    encoded,
    flops,
    loss_of,
    pieces_of,
    random_batches,
    sizes,
)
from machine import Watch, peak_megabytes
from marian import marian

FAST = {"linear": "torch", "dropout_masks": False, "split_loss": False, "keep_memory": False}
"""The faster paths of textmill's step, and what takes each away."""
PEERS: dict[str, tuple[str, ...]] = {
    "textmill": (),
    **{f"textmill without fast {name}": () for name in FAST},
    "textmill without any": (),
    "bare": (),
    "bare, token budget": (),
    "transformers": ("transformers", "datasets", "accelerate"),
    "transformers, by length": ("transformers", "datasets", "accelerate"),
    "lightning": ("lightning",),
    "accelerate": ("accelerate",),
}
"""Each with the packages it needs."""


class Meter:
    """Counts steps; ``step`` answers True when enough is measured."""

    def __init__(self, warmup: int, seconds: float, *, first_step: bool = False) -> None:
        self.warmup, self.seconds, self.first_step = warmup, seconds, first_step
        self.sizes: list[Sizes] = []
        self.steps, self.watch, self.result = 0, Watch(), dict[str, float]()

    def step(self) -> bool:
        self.steps += 1
        if self.first_step:
            os._exit(0)  # the parent's clock stops here
        if self.steps == self.warmup:
            _settle()
            self.watch, self.began = Watch(), time.perf_counter()
        done = self.steps > self.warmup and time.perf_counter() - self.began >= self.seconds
        if done and not self.result:
            self.result = self.read()
        return done

    def read(self) -> dict[str, float]:
        _settle()
        read = self.watch.read()
        counted = self.sizes[self.warmup : self.steps]
        source, target, source_cells, target_cells, _ = map(sum, zip(*counted, strict=True))
        attention = sum(attention_flops(s, t, rows) for s, t, _, _, rows in counted)
        wall, cpu = read["wall_s"], read["cpu_s"]
        return {
            "steps": self.steps - self.warmup,
            "tok_s": target / wall,
            "tok_cpu_s": target / cpu,
            "ms_step": 1e3 * wall / len(counted),
            "padding": 1 - (source + target) / (source_cells + target_cells),
            "gflops": flops(source, target) / wall / 1e9,
            "gflops_whole": (flops(source, target) + attention) / wall / 1e9,
            "gpu_mb": _gpu_megabytes(),
            "gflops_cpu": flops(source, target) / cpu / 1e9,
            "others": read["others"],
            "peak_mb": peak_megabytes(),
        }


def _settle() -> None:
    """Waits until a GPU has done what it was given."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _gpu_megabytes() -> float:
    """The most that torch has held on a GPU."""
    used = torch.cuda.is_initialized()
    return torch.cuda.max_memory_allocated() / 2**20 if used else 0.0


# -- textmill


def textmill(args: argparse.Namespace, meter: Meter, **fast: Any) -> None:
    """The trainer as a recipe has it, with its console and metrics.jsonl."""
    from textmill.data.text_pairs import TextPairs
    from textmill.metrics.reporters.console import Console
    from textmill.metrics.reporters.jsonl import JsonLines
    from textmill.models.fast import Fast
    from textmill.models.transformer import Transformer
    from textmill.runtime.devices import Env, Experiment
    from textmill.tasks.generation import Translation
    from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer
    from textmill.training import AdamW, Callback, Constant, Trainer

    class Counted(Translation):
        def training_step(self, batch: Any, examples: Any = ()) -> Any:
            labels = len(batch.target) * (batch.target.shape[1] - 1)
            target = batch.num_labels  # both are on the host
            source = batch.num_tokens - target
            meter.sizes.append((source, target, batch.source.numel(), labels, len(batch)))
            return super().training_step(batch, examples)

    class Clock(Callback):
        def step(self, progress: Any) -> bool:
            return meter.step()

    os.environ.setdefault("TEXTMILL_CACHE", str(args.cache / "textmill"))
    languages = {"source_langs": ("eng",), "target_langs": ("fra",)}
    pieces = pieces_of(args.data, args.cache)
    tokenizer = MultilingualTokenizer.from_file(pieces, **languages)
    layers = {"num_encoder_layers": LAYERS, "num_decoder_layers": LAYERS}
    width = {"dim": DIM, "num_heads": HEADS, "ffn_dim": FFN}
    module = Transformer.Config(dropout=DROPOUT, **layers, **width).build(tokenizer=tokenizer)
    task = Counted.Config(label_smoothing=0.0).build(module=module, tokenizer=tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        xp = Experiment(folder=Path(folder), recipe="bench")
        Trainer.Config(max_epochs=1000, precision=args.precision, fast=Fast(**fast)).build(
            task=task,
            optimizer=AdamW.Config(lr=RATE).build(module=module, task=task),
            lr_scheduler=Constant.Config().build(),
            train_data=TextPairs.Config(path=args.data, max_tokens=args.cells).build().read(),
            reporters=[Console.Config().build(), JsonLines.Config().build(xp=xp)],
            callbacks=[Clock()],
            env=Env(device=args.device),
            xp=xp,
        ).fit()


# -- the others


def counted(batches: Iterator[Any], meter: Meter) -> Iterator[Any]:
    for rows in batches:
        meter.sizes.append(sizes(rows))
        yield collated(rows)


def loader(args: argparse.Namespace, meter: Meter) -> Any:
    """A DataLoader over all rows, as most programs have it."""

    def collate(rows: Any) -> Any:
        meter.sizes.append(sizes(rows))
        return collated(rows)

    rows: Any = encoded(args.data, args.cache)
    size = min(BATCH, len(rows))
    return torch.utils.data.DataLoader(
        rows, batch_size=size, shuffle=True, collate_fn=collate, drop_last=True
    )


def by_hand(args: argparse.Namespace, batches: Iterator[Any], meter: Meter) -> None:
    model = Bare().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for made in batches:
        optimizer.zero_grad()
        batch = [part.to(args.device) for part in made]
        with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        if meter.step():
            return


def bare(args: argparse.Namespace, meter: Meter) -> None:
    by_hand(args, counted(random_batches(encoded(args.data, args.cache)), meter), meter)


def bare_budget(args: argparse.Namespace, meter: Meter) -> None:
    by_hand(args, counted(budget_batches(encoded(args.data, args.cache), args.cells), meter), meter)


def transformers(args: argparse.Namespace, meter: Meter, **extra: Any) -> None:
    """Seq2SeqTrainer with its defaults, saving and reporting off."""
    from datasets import Dataset
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

    rows = encoded(args.data, args.cache)
    columns = {"input_ids": [s for s, _ in rows], "labels": [t for _, t in rows]}
    data = Dataset.from_dict({**columns, "length": [len(s) for s, _ in rows]})

    def collate(rows: list[Any]) -> dict[str, torch.Tensor]:
        pairs = [(row["input_ids"], row["labels"]) for row in rows]
        meter.sizes.append(sizes(pairs))
        source, inputs, labels = collated(pairs)
        labels = labels.masked_fill(labels == PAD, -100)
        mask = (source != PAD).long()
        return {
            "input_ids": source,
            "attention_mask": mask,
            "decoder_input_ids": inputs,
            "labels": labels,
        }

    class Clock(TrainerCallback):
        def on_step_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            if meter.step():
                control.should_training_stop = True

    with tempfile.TemporaryDirectory() as folder:
        settings = Seq2SeqTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            save_strategy="no",
            report_to="none",
            use_cpu=args.device == "cpu",
            bf16=args.precision == "bf16",
            num_train_epochs=1000,
            **extra,
        )
        Seq2SeqTrainer(
            model=marian(),
            args=settings,
            train_dataset=data,
            data_collator=collate,
            callbacks=[Clock()],
        ).train()


def lightning(args: argparse.Namespace, meter: Meter) -> None:
    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Bare()

        def training_step(self, batch: Any, _: int) -> Any:
            loss = loss_of(self.model, *batch)
            self.log("loss", loss, prog_bar=True)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=RATE)

    class Clock(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            if meter.step():
                trainer.should_stop = True

    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=1000,
            accelerator="cpu" if args.device == "cpu" else "gpu",
            devices=1,
            precision="bf16-mixed" if args.precision == "bf16" else "32-true",
            default_root_dir=folder,
            callbacks=[Clock()],
        )
        trainer.fit(Module(), loader(args, meter))


def accelerate(args: argparse.Namespace, meter: Meter) -> None:
    from accelerate import Accelerator

    precision = "bf16" if args.precision == "bf16" else "no"
    accelerator = Accelerator(cpu=args.device == "cpu", mixed_precision=precision)
    model: Any = Bare()
    optimizer: Any = torch.optim.Adam(model.parameters(), lr=RATE)
    model, optimizer, data = accelerator.prepare(model, optimizer, loader(args, meter))
    while True:
        for batch in data:
            optimizer.zero_grad()
            accelerator.backward(loss_of(model, *batch))
            optimizer.step()
            if meter.step():
                return


def run(args: argparse.Namespace, meter: Meter) -> None:
    peer: str = args.peer
    if peer.startswith("textmill"):
        left = peer.removeprefix("textmill without fast ")
        taken = (
            FAST if peer == "textmill without any" else {k: v for k, v in FAST.items() if k == left}
        )
        textmill(args, meter, **taken)
        return
    others: dict[str, Callable[[], None]] = {
        "bare": lambda: bare(args, meter),
        "bare, token budget": lambda: bare_budget(args, meter),
        "transformers": lambda: transformers(args, meter),
        "transformers, by length": lambda: transformers(
            args, meter, train_sampling_strategy="group_by_length"
        ),
        "lightning": lambda: lightning(args, meter),
        "accelerate": lambda: accelerate(args, meter),
    }
    others[peer]()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a TSV file of pairs")
    parser.add_argument("--cache", type=Path, required=True, help="folder of pieces and ids")
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--cells", type=int, default=2048, help="of a batch by token budget")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--first-step", action="store_true", help="end the process at step 1")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    quick = args.seconds < 1
    meter = Meter(2 if quick else 10, args.seconds, first_step=args.first_step)
    run(args, meter)
    print(json.dumps({"bench": "train", "peer": args.peer, **meter.result}))


if __name__ == "__main__":
    main()

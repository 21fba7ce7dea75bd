"""What a loop costs a step, and how long it takes to start, on a job so small that it is all loop.

    python benchmarks/overhead.py --peer textmill
    python benchmarks/overhead.py --peer textmill --steps 1

A model of 1 + 1 layers and 16 features, batches of 8 rows of 8 random ids in memory. Every loop
clips the gradient's norm and takes torch's fused AdamW. "bare, the same model" is the loop that a
person writes around the very module and loss that textmill trains. With ``--steps 1`` the process
ends at the first step: its parent takes the time from its start.
"""

import argparse
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from machine import Watch

VOCABULARY, WIDTH, ROWS = 100, 8, 8
PEERS: dict[str, tuple[str, ...]] = {
    "textmill": (),
    "bare, the same model": (),
    "bare": (),
    "accelerate": ("accelerate",),
    "transformers": ("transformers", "accelerate"),
    "lightning": ("lightning",),
}
"""Each with the packages it needs."""


class Steps:
    """When each step ended."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.warmup = 0 if count == 1 else count // 5
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def step(self) -> bool:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
        if self.count == 1:
            os._exit(0)  # the parent's clock stops here
        return len(self.wall) >= self.count + self.warmup

    def read(self) -> dict[str, float]:
        times = {"us_step": self.wall, "cpu_us_step": self.cpu}
        return {
            name: statistics.median(
                1e6 * (b - a)
                for a, b in zip(all_[self.warmup :], all_[self.warmup + 1 :], strict=False)
            )
            for name, all_ in times.items()
        }


def rows(count: int) -> list[dict[str, torch.Tensor]]:
    names = ("source", "inputs", "labels")
    return [{n: torch.randint(4, VOCABULARY, (WIDTH,)) for n in names} for _ in range(count)]


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3, fused=True)


def loader(steps: Steps) -> Any:
    data: Any = rows(ROWS * min(500, steps.count + 2))
    return torch.utils.data.DataLoader(data, batch_size=ROWS, shuffle=True)


def forever(data: Any) -> Iterator[Any]:
    while True:
        yield from data


def tiny() -> Any:
    from bare import Bare

    return Bare(VOCABULARY, dim=16, layers=1, heads=1, ffn=32)


def loss_of(model: Any, batch: Any) -> Any:
    from bare import loss_of as loss

    return loss(model, batch["source"], batch["inputs"], batch["labels"])


def step_by_hand(parameters: list[Any], optimizer: Any, loss: Any) -> None:
    """What a careful person writes: clipping, and a look whether all is finite."""
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    if not torch.isfinite(norm + loss.detach()):
        raise FloatingPointError("The loss or its gradient is not finite.")
    optimizer.step()
    optimizer.zero_grad()


def bare(steps: Steps) -> None:
    model = tiny()
    parameters = list(model.parameters())
    optimizer = adamw(parameters)
    for batch in forever(loader(steps)):
        step_by_hand(parameters, optimizer, loss_of(model, batch))
        if steps.step():
            return


def batches(count: int) -> list[Any]:
    from textmill.data.seq2seq_batch import Seq2SeqBatch

    lengths = torch.full((ROWS,), WIDTH)
    return [
        Seq2SeqBatch(
            source=torch.randint(4, VOCABULARY, (ROWS, WIDTH)),
            source_lengths=lengths,
            target=torch.randint(4, VOCABULARY, (ROWS, WIDTH + 1)),
            target_lengths=lengths,
        )
        for _ in range(min(500, count + 2))
    ]


def our_task() -> Any:
    """textmill's model of the same size, and its task."""
    from textmill.models.transformer import Transformer
    from textmill.tasks.generation import Translation
    from textmill.text.tokenizers.character_tokenizers import ByteTokenizer

    tokenizer = ByteTokenizer.Config().build()
    config = Transformer.Config(
        dim=16, num_encoder_layers=1, num_decoder_layers=1, num_heads=1, ffn_dim=32
    )
    module = config.build(tokenizer=tokenizer)
    task = Translation.Config(label_smoothing=0.0).build(module=module, tokenizer=tokenizer)
    return module, task


def textmill(steps: Steps) -> None:
    """The trainer with the reporters that a run has."""
    from textmill.metrics.reporters.console import Console
    from textmill.metrics.reporters.jsonl import JsonLines
    from textmill.runtime.devices import Env, Experiment
    from textmill.training import AdamW, Callback, Constant, Trainer

    class Clock(Callback):
        def step(self, progress: Any) -> bool:
            return steps.step()

    module, task = our_task()
    with tempfile.TemporaryDirectory() as folder:
        xp = Experiment(folder=Path(folder), recipe="tiny")
        Trainer.Config(max_epochs=1000).build(
            task=task,
            optimizer=AdamW.Config(lr=1e-3).build(module=module, task=task),
            lr_scheduler=Constant.Config().build(),
            train_data=batches(steps.count),
            reporters=[Console.Config().build(), JsonLines.Config().build(xp=xp)],
            callbacks=[Clock()],
            env=Env(),
            xp=xp,
        ).fit()


def bare_with_ours(steps: Steps) -> None:
    module, task = our_task()
    parameters = list(module.parameters())
    optimizer = adamw(parameters)
    module.train()
    for batch in forever(batches(steps.count)):
        found = task.training_step(batch)
        step_by_hand(parameters, optimizer, found.total / found.count)
        if steps.step():
            return


def accelerate(steps: Steps) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = tiny()
    model, optimizer, data = accelerator.prepare(model, adamw(model.parameters()), loader(steps))
    for batch in forever(data):
        accelerator.backward(loss_of(model, batch))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if steps.step():
            return


def transformers(steps: Steps) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = tiny()

        def forward(self, source: Any, inputs: Any, labels: Any) -> dict[str, Any]:
            batch = {"source": source, "inputs": inputs, "labels": labels}
            return {"loss": loss_of(self.inner, batch)}

    class Clock(TrainerCallback):
        def on_step_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            if steps.step():
                control.should_training_stop = True

    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=ROWS,
            learning_rate=1e-3,
            lr_scheduler_type="constant",
            num_train_epochs=1000,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
        )
        data: Any = rows(ROWS * min(500, steps.count + 2))
        Trainer(model=Model(), args=settings, train_dataset=data, callbacks=[Clock()]).train()


def lightning(steps: Steps) -> None:
    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = tiny()

        def training_step(self, batch: Any, _: int) -> Any:
            loss = loss_of(self.model, batch)
            self.log("loss", loss, prog_bar=True)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-3, foreach=True)  # it clips outside

    class Clock(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            if steps.step():
                trainer.should_stop = True

    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=1000,
            accelerator="cpu",
            gradient_clip_val=1.0,
            default_root_dir=folder,
            callbacks=[Clock()],
        )
        trainer.fit(Module(), loader(steps))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    steps, watch = Steps(args.steps), Watch()
    loops: dict[str, Callable[[Steps], None]] = {
        "textmill": textmill,
        "bare, the same model": bare_with_ours,
        "bare": bare,
        "accelerate": accelerate,
        "transformers": transformers,
        "lightning": lightning,
    }
    loops[args.peer](steps)
    others = watch.read()["others"]
    print(json.dumps({"bench": "overhead", "peer": args.peer, **steps.read(), "others": others}))


if __name__ == "__main__":
    main()

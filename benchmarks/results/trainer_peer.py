"""Fine-tuning by transformers' own Trainer, as its examples do it: one line of JSON.

    python -m benchmarks.results.trainer_peer --task classification --model DIR --train FILE \
        --dev FILE --reading '{"columns": {"label": 0, "text": 1}}' --epochs 3 --lr 1e-4

Batches of rows of like length, a linear schedule with a tenth of it as the warm-up, an evaluation
and a checkpoint after each epoch, the best of which scores: what textmill's experiments do, too.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from torch.utils.data import Dataset, SequentialSampler

from benchmarks.results import scores
from benchmarks.results.crf import listed
from benchmarks.results.files import rows

Row = Mapping[str, Any]
LONGEST = 256
"""Tokens of a row."""
SKIPPED = -100
"""The label of a piece that is not the first of its word."""


class Encoded(Dataset[dict[str, Any]]):
    """Rows as the Trainer takes them."""

    def __init__(self, encoded: Sequence[dict[str, Any]]) -> None:
        self.rows = encoded

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]


class InOrder(transformers.Trainer):
    """The Trainer, which evaluates rows in their order: it would shuffle those, too."""

    def _get_eval_sampler(self, eval_dataset: Encoded) -> SequentialSampler:
        return SequentialSampler(eval_dataset)


def of_texts(tokenizer: Any, found: Sequence[Row], labels: Sequence[str]) -> Encoded:
    """One text, or two as one, and the number of the label."""
    names = ["text"] if "text" in found[0] else ["text1", "text2"]
    given = tokenizer(
        *[[row[n] for row in found] for n in names], truncation=True, max_length=LONGEST
    )
    return Encoded([
        {**{k: given[k][i] for k in given}, "labels": labels.index(row["label"])}
        for i, row in enumerate(found)
    ])  # fmt: skip


def of_words(
    tokenizer: Any, words: Sequence[list[str]], tags: Sequence[list[str]], labels: Sequence[str]
) -> Encoded:
    """Words' pieces, of which the first has the word's label."""
    given = tokenizer(list(words), is_split_into_words=True, truncation=True, max_length=LONGEST)
    made = []
    for i, row in enumerate(tags):
        before, numbers = None, []
        for word in given.word_ids(i):
            first = word is not None and word != before
            known = first and row[word] in labels
            numbers.append(labels.index(row[word]) if known else SKIPPED)
            before = word
        made.append({**{k: given[k][i] for k in given}, "labels": numbers})
    return Encoded(made)


def tagged(
    tokenizer: Any, words: Sequence[list[str]], best: Any, labels: Sequence[str]
) -> list[list[str]]:
    """A tag for each word; that of one which was cut off is the first label's."""
    given = tokenizer(list(words), is_split_into_words=True, truncation=True, max_length=LONGEST)
    answers = []
    for i, row in enumerate(words):
        places = given.word_ids(i)
        firsts = {w: at for at, w in reversed([*enumerate(places)]) if w is not None}
        answers.append(
            [labels[best[i][firsts[w]]] if w in firsts else labels[0] for w in range(len(row))]
        )
    return answers


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Fine-tunes and scores the dev rows."""
    reading = json.loads(args.reading)
    parts = [rows(path, reading) for path in (args.train, args.dev)]
    parts[1] = sorted(parts[1], key=lambda row: len(str(row)))  # of like length in a batch
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    of_tags = args.task != "classification"
    if of_tags:
        texts = [[listed(row[args.words]) for row in part] for part in parts]
        tags = [[listed(row[args.tags]) for row in part] for part in parts]
        labels = sorted({tag for row in tags[0] for tag in row}, key=lambda tag: (tag != "O", tag))
        data = [of_words(tokenizer, texts[i], tags[i], labels) for i in (0, 1)]
        kind = transformers.AutoModelForTokenClassification
        collate: Any = transformers.DataCollatorForTokenClassification(tokenizer)
    else:
        labels = sorted({row["label"] for row in parts[0]})
        data = [of_texts(tokenizer, part, labels) for part in parts]
        kind = transformers.AutoModelForSequenceClassification
        collate = transformers.DataCollatorWithPadding(tokenizer)
    transformers.set_seed(args.seed)
    model = kind.from_pretrained(args.model, num_labels=len(labels), dtype="float32")

    def score(found: Any) -> dict[str, float]:
        best = found.predictions.argmax(-1)
        if not of_tags:
            return {"score": float(np.mean(best == found.label_ids))}
        answers = tagged(tokenizer, texts[1], best, labels)
        if args.spans != "none":
            return {"score": scores.span_f1(tags[1], answers, args.spans).value / 100}
        return {"score": scores.token_accuracy(tags[1], answers).value / 100}

    with tempfile.TemporaryDirectory(prefix="textmill-peer-") as folder:
        trainer = InOrder(
            model=model,
            args=arguments(args, folder, rows=len(data[0])),
            train_dataset=data[0],
            eval_dataset=data[1],
            data_collator=collate,
            compute_metrics=score,
        )
        begun = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - begun
        return {"score": trainer.evaluate()["eval_score"], "wall_s": seconds}


def arguments(
    args: argparse.Namespace, folder: str, *, rows: int
) -> transformers.TrainingArguments:
    """The Trainer's settings: what is not named is as it comes."""
    return transformers.TrainingArguments(
        output_dir=folder,
        num_train_epochs=args.epochs,
        learning_rate=args.lr,
        weight_decay=0.01,
        warmup_steps=-(-(-(-rows // args.batch_size) * args.epochs) // 10),  # rounded up, twice
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=128,
        train_sampling_strategy="group_by_length",
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="score",
        report_to="none",
        seed=args.seed,
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )


def main() -> None:
    """Prints the score and the seconds of training."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--task", choices=("classification", "tagging"), required=True)
    for name in ("model", "train", "dev"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--reading", default="{}", help="settings of train_data, as JSON")
    parser.add_argument("--words", default="words", help="the column of words")
    parser.add_argument("--tags", default="tags", help="the column of their tags")
    parser.add_argument("--spans", choices=("bio", "io", "none"), default="none")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    print(json.dumps(train(parser.parse_args())))


if __name__ == "__main__":
    main()

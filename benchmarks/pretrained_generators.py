"""Fine-tuning of a Marian and a GPT-2 in textmill's own layers, and by transformers' Trainers.

    python benchmarks/pretrained_generators.py --peer "textmill, OPUS-MT"
    python benchmarks/pretrained_generators.py --peer "Trainer, GPT-2" --steps 6 --threads 1

Models are of the published sizes (an OPUS-MT's with 58,101 tokens, the smallest GPT-2), of random
weights; texts are words of their vocabularies. Every side has the same rows: pairs of about 18
tokens a side, 16 of like length a batch; or 4 blocks of 128 tokens. All have AdamW, dropout as the
models say, and a gradient that is clipped. What is counted are tokens that are scored, without
padding, after the first tenth of the steps.
"""

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import tagging
import torch

RATE, BLOCK = 5e-5, 128
ROWS = {"OPUS-MT": 16, "GPT-2": 4}
PEERS = [f"{loop}, {model}" for model in ROWS for loop in ("textmill", "Trainer")]
NEEDS = ("accelerate", "transformers")
"""Packages of the extra ``bench``."""
SIZES: dict[str, dict[str, Any]] = {
    "OPUS-MT": {
        "vocab_size": 58_101,
        "d_model": 512,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 2048,
        "decoder_ffn_dim": 2048,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 512,
        "pad_token_id": 58_100,
        "decoder_start_token_id": 58_100,
        "eos_token_id": 0,
    },
    "GPT-2": {},
}
SMALL: dict[str, dict[str, Any]] = {
    "OPUS-MT": {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1},
    "GPT-2": {"n_embd": 24, "n_layer": 1},
}
"""What a smoke run has instead."""


def save(folder: Path, model: str, *, quick: bool) -> None:
    """A checkpoint with a tokenizer whose tokens are words."""
    import tokenizers
    import transformers
    from tokenizers import models, pre_tokenizers, processors

    kind = "marian" if model == "OPUS-MT" else "gpt2"
    settings = SIZES[model] | (SMALL[model] if quick else {})
    config = transformers.AutoConfig.for_model(kind, **settings)
    if kind == "marian":
        made: Any = transformers.MarianMTModel(config)
    else:
        made = transformers.GPT2LMHeadModel(config)
    made.save_pretrained(folder)
    end = config.eos_token_id
    names = [f"w{i}" for i in range(config.vocab_size)]
    names[end] = "</s>"
    if kind == "marian":
        names[1], names[config.pad_token_id] = "<unk>", "<pad>"
    vocab = {name: i for i, name in enumerate(names)}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token=names[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    tokenizer.add_special_tokens([name for name in names if not name.startswith("w")])
    if kind == "marian":
        tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
            single="$A </s>", special_tokens=[("</s>", end)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))


def ids_of(model: str, steps: int) -> list[list[list[int]]]:
    """Rows of the ids of each side, without marks, for so many steps."""
    draw, rows, size = random.Random(0), ROWS[model] * steps, 50_000
    if model == "GPT-2":  # with the mark of its end a row is a block
        return [[draw.choices(range(2, size), k=BLOCK - 1)] for _ in range(rows)]

    def side() -> list[int]:
        length = min(60, 1 + int(draw.lognormvariate(2.7, 0.6)))
        return draw.choices(range(2, size), k=length)

    return [[side(), side()] for _ in range(rows)]


def textmill(rows: list[list[list[int]]], meter: tagging.Meter, model: str, folder: Path) -> None:
    """The tasks in the trainer, with the reporters that a run has."""
    from textmill.models.decoders.pretrained_transformer import PretrainedTransformer
    from textmill.tasks.generation import Translation
    from textmill.tasks.language_model import LanguageModeling
    from textmill.text.tokenizers.pretrained import PretrainedTokenizer
    from textmill.training import AdamW

    config = PretrainedTransformer.Config(path=str(folder))
    tokenizer = PretrainedTokenizer.Config().build(model=config)
    given = {"module": config.build(tokenizer=tokenizer), "tokenizer": tokenizer}
    texts = [[" ".join(f"w{i}" for i in ids) for ids in sides] for sides in rows]
    if model == "GPT-2":
        task: Any = LanguageModeling.Config(block=BLOCK).build(**given)
        found = [{"text": text} for (text,) in texts]
    else:
        task = Translation.Config(label_smoothing=0.0, generate=False).build(**given)
        found = [{"source": source, "target": target} for source, target in texts]

    def count(batch: Any) -> int:
        return int(batch.num_labels if model == "OPUS-MT" else batch.targets.numel())

    chosen = {"optimizer": AdamW.Config(lr=RATE, weight_decay=0.0), "batch_size": ROWS[model]}
    tagging.textmill(task, found, meter, count=count, **chosen)


def trainer(rows: list[list[list[int]]], meter: tagging.Meter, model: str, folder: Path) -> None:
    """transformers' Trainers as its examples have them, with batches of rows of like length."""
    import transformers

    from textmill.runtime.seeds import seed_everything

    seed_everything(1)
    marks = {"eos_token": "</s>"} | ({"pad_token": "<pad>"} if model == "OPUS-MT" else {})
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), **marks
    )
    if model == "OPUS-MT":
        module: Any = transformers.MarianMTModel.from_pretrained(folder)
        data = [{"input_ids": [*s, 0], "labels": [*t, 0]} for s, t in rows]
        collator: Any = transformers.DataCollatorForSeq2Seq(tokenizer, model=module)
        kinds: tuple[Any, Any] = (
            transformers.Seq2SeqTrainer,
            transformers.Seq2SeqTrainingArguments,
        )
    else:
        module = transformers.GPT2LMHeadModel.from_pretrained(folder)
        end = module.config.eos_token_id
        data = [{"input_ids": [*ids, end], "labels": [*ids, end]} for (ids,) in rows]
        collator = transformers.default_data_collator
        kinds = (transformers.Trainer, transformers.TrainingArguments)
    scored = [0]

    def count(_module: Any, _given: Any, named: Any) -> None:
        scored[0] = int((named["labels"] != -100).sum())

    module.register_forward_pre_hook(count, with_kwargs=True)

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> Any:
            control.should_training_stop = meter.step(scored[0])
            return control

    with tempfile.TemporaryDirectory() as out:
        arguments = kinds[1](
            output_dir=out,
            num_train_epochs=1000,
            learning_rate=RATE,
            per_device_train_batch_size=ROWS[model],
            train_sampling_strategy="group_by_length",
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        kinds[0](
            model=module,
            args=arguments,
            train_dataset=data,
            data_collator=collator,
            callbacks=[Clock()],
        ).train()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small models: a smoke run")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    loop, _, model = args.peer.rpartition(", ")
    with tempfile.TemporaryDirectory(prefix="textmill-bench-") as folder:
        save(Path(folder), model, quick=args.quick)
        rows, meter = ids_of(model, args.steps), tagging.Meter(args.steps)
        (textmill if loop == "textmill" else trainer)(rows, meter, model, Path(folder))
    print(json.dumps({"bench": "pretrained", "peer": args.peer, **meter.read()}))


if __name__ == "__main__":
    main()

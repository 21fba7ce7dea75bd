"""Prints the loss of 20 steps of the tiny translation: ``python -m tests.training.curve fast``."""

import platform
import sys
import tempfile
from pathlib import Path

import torch

from tests.training.bench import Bench, metrics_of, sentences
from textmill.models.fast import Fast
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer, train_sentencepiece
from textmill.training import Every

PATHS = {
    "fast": Fast(linear="torch"),
    "plain": Fast(linear="torch", dropout_masks=False, split_loss=False),
}


def main(paths):
    """The first line says on what the digits depend."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = [text for row in sentences() for text in row.values()]
        train_sentencepiece(texts, folder / "tiny.model", vocab_size=44)
        tokenizer = MultilingualTokenizer.from_file(
            folder / "tiny.model", source_langs=("eng",), target_langs=("fra",)
        )
        bench = Bench(tokenizer, folder / "run", valid_data=None, test_data=None)
        bench.make(max_steps=20, report_every=Every(1), fast=paths).fit()
        print(torch.__version__, torch.backends.cpu.get_cpu_capability(), processor())
        for line in metrics_of(folder / "run"):
            print(line["step"], repr(line["loss"]))


def processor():
    """Maker, family and model: MKL has other kernels, and so other last digits, for each."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    return " ".join(facts.get(name, "?") for name in ("vendor_id", "cpu family", "model"))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(PATHS[name])

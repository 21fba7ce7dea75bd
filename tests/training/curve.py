"""Prints the loss of 20 steps of the tiny translation: ``python -m tests.training.curve``."""

import tempfile
from pathlib import Path

import torch

from tests.training.bench import Bench, metrics_of, sentences
from weft.text.multilingual import MultilingualTokenizer
from weft.text.sentencepiece import train_sentencepiece
from weft.training import Every


def main() -> None:
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
        bench.make(max_steps=20, report_every=Every(1)).fit()
        print(torch.__version__, torch.backends.cpu.get_cpu_capability())
        for line in metrics_of(folder / "run"):
            print(line["step"], repr(line["loss"]))


if __name__ == "__main__":
    main()

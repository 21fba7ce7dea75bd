"""Data: from a TSV file to padded batches, textmill beside what people write otherwise.

    python benchmarks/data.py --data train.tsv

The work: every pair of the file, encoded by one SentencePiece model of 5,000 pieces, once as padded
int64 batches. Rows of textmill: the first pass (file, tokens, plan, batches), the first pass that
also writes the token store, and a later epoch. The peers: SentencePiece in a DataLoader's data set
and in its collate function, Hugging Face datasets with a fast tokenizer of the same pieces, and
fairseq2 where it is installed. The peers take turns, one process a repetition; printed are medians
of pairs per CPU second (what counts where other processes run) and per second of wall-clock time,
and the share of padding. At the end stands a line of JSON for each. A peer that is not installed is
left out with a line that says so.
"""

import argparse
import importlib.util
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PAD, BOS, EOS, VOCABULARY = 0, 2, 3, 5000
BATCH = 32

PEERS = {
    "textmill first pass": (),
    "textmill first pass, stored": (),
    "textmill later epoch": (),
    "textmill later epoch, stored": (),
    "DataLoader, encoding a row": ("sentencepiece",),
    "DataLoader, encoding a batch": ("sentencepiece",),
    "datasets.map, fast tokenizer": ("datasets", "tokenizers"),
    "fairseq2": ("fairseq2",),
}
"""Each with the packages it needs."""


class Clock:
    """Wall-clock and CPU seconds since ``start``, of this process and its children."""

    def start(self) -> None:
        self.began, self.used = time.perf_counter(), self._cpu()

    def stop(self) -> tuple[float, float]:
        return time.perf_counter() - self.began, self._cpu() - self.used

    @staticmethod
    def _cpu() -> float:
        times = os.times()  # whose own figures have steps of 10 ms
        return time.process_time() + times.children_user + times.children_system


def pairs_of(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        rows = (line.rstrip("\n").split("\t") for line in file)
        return [(row[0], row[1]) for row in rows]


def model_of(path: Path, cache: Path) -> Path:
    """The SentencePiece model that all peers encode with, trained once on a part of the file."""
    from textmill.text.tokenizers.sentencepiece import train_sentencepiece

    model = cache / f"data-{path.stat().st_size}.model"
    if not model.exists():
        pairs = pairs_of(path)
        chosen = random.Random(0).sample(pairs, min(len(pairs), 20_000))
        size = VOCABULARY if path.stat().st_size > 5_000_000 else 500  # few texts give few pieces
        train_sentencepiece((side for pair in chosen for side in pair), model, vocab_size=size)
    return model


def rectangle(rows: list[list[int]]) -> Any:
    """A padded batch, made as fast as lists allow: a third of the time of a tensor for each row."""
    import torch

    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


# -- textmill


def textmill(path: Path, model: Path, clock: Clock, *, stored: bool, later: bool) -> Iterator[Any]:
    from textmill.data.batches import EpochBatches
    from textmill.data.seq2seq_batch import collate_seq2seq
    from textmill.data.store.tokens import TokenStore
    from textmill.data.text_pairs import TextPairs
    from textmill.text.processors.seq2seq import Seq2SeqText
    from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer

    text = Seq2SeqText(MultilingualTokenizer.from_file(model))

    def begin() -> EpochBatches[Any]:
        data = TextPairs.Config(path=path).build().read()
        if stored:
            store = TokenStore.of(text, data.fingerprint())
            encoded = store.get(text, data.rows(), workers=0, say=lambda _: None)
        else:
            encoded = text.encode(data.rows(), with_targets=True)

        def collate(rows: Any) -> Any:
            return collate_seq2seq(encoded.columns, rows, pad_idx=PAD)

        return EpochBatches(encoded.columns, data.batching, collate, seed=1)

    with tempfile.TemporaryDirectory() as cache:
        os.environ["TEXTMILL_CACHE"] = cache
        if later:
            batches = begin()
            for _ in batches:
                pass
            clock.start()
        else:
            clock.start()
            batches = begin()
        for batch in batches:
            yield batch.source, batch.target


# -- the others


def loader(path: Path, model: Path, clock: Clock, *, by_batch: bool) -> Iterator[Any]:
    import sentencepiece
    from torch.utils.data import DataLoader

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    clock.start()
    rows = pairs_of(path)

    def encode(texts: Any) -> Any:
        return pieces.encode(texts, add_eos=True)

    if by_batch:

        def collate(batch: list[Any]) -> Any:
            sides = [[pair[side] for pair in batch] for side in (0, 1)]
            sources, targets = map(encode, sides)
            return rectangle(sources), rectangle([[BOS, *row] for row in targets])

        yield from DataLoader(rows, batch_size=BATCH, shuffle=True, collate_fn=collate)  # type: ignore[arg-type]
        return

    class Encoded:
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, index: int) -> Any:
            return encode(rows[index][0]), [BOS, *encode(rows[index][1])]

    def padded(batch: list[Any]) -> Any:
        return rectangle([s for s, _ in batch]), rectangle([t for _, t in batch])

    yield from DataLoader(Encoded(), batch_size=BATCH, shuffle=True, collate_fn=padded)  # type: ignore[arg-type]


def hf_datasets(path: Path, model: Path, clock: Clock) -> Iterator[Any]:
    """``load_dataset``, ``map`` in batches with a fast tokenizer, a DataLoader with padding."""
    os.environ["HF_DATASETS_OFFLINE"] = "1"
    import datasets
    import sentencepiece
    import tokenizers
    from torch.utils.data import DataLoader

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    vocabulary = [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(len(pieces))]
    fast = tokenizers.Tokenizer(tokenizers.models.Unigram(vocabulary, unk_id=pieces.unk_id()))
    fast.normalizer = tokenizers.normalizers.NFKC()
    fast.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    datasets.disable_progress_bars()
    clock.start()
    with tempfile.TemporaryDirectory() as cache:
        found = datasets.load_dataset(
            "csv",
            data_files=str(path),
            delimiter="\t",
            column_names=["source", "target", "from"],
            quoting=3,
            split="train",
            cache_dir=cache,
        )

        def encode(batch: Any) -> Any:
            sides = [[e.ids for e in fast.encode_batch(batch[n])] for n in ("source", "target")]
            return {
                "source": [[*ids, EOS] for ids in sides[0]],
                "target": [[BOS, *ids, EOS] for ids in sides[1]],
            }

        found = found.map(encode, batched=True, remove_columns=["from"])

        def padded(batch: list[Any]) -> Any:
            return tuple(rectangle([row[n] for row in batch]) for n in ("source", "target"))

        yield from DataLoader(found, batch_size=BATCH, shuffle=True, collate_fn=padded)


def fairseq2(path: Path, model: Path, clock: Clock) -> Iterator[Any]:
    from fairseq2.data.data_pipeline import Collater
    from fairseq2.data.text import StrSplitter, read_text
    from fairseq2.data.tokenizers.sentencepiece import SentencePieceEncoder, SentencePieceModel

    pieces = SentencePieceModel(model)
    source = SentencePieceEncoder(pieces, suffix_tokens=["</s>"])
    target = SentencePieceEncoder(pieces, prefix_tokens=["<s>"], suffix_tokens=["</s>"])
    clock.start()
    names = StrSplitter(names=["source", "target", "from"])
    chain = read_text(path).map(names).map(source, selector="source").map(target, selector="target")
    chain = chain.shuffle(0, seed=0).bucket(BATCH).map(Collater(pad_value=PAD)).prefetch(4)
    for batch in chain.and_return():
        yield batch["source"]["seqs"], batch["target"]["seqs"]


def made(peer: str, path: Path, model: Path, clock: Clock) -> Iterator[Any]:
    if peer.startswith("textmill"):
        return textmill(path, model, clock, stored="stored" in peer, later="later" in peer)
    others: dict[str, Callable[[], Iterator[Any]]] = {
        "DataLoader, encoding a row": lambda: loader(path, model, clock, by_batch=False),
        "DataLoader, encoding a batch": lambda: loader(path, model, clock, by_batch=True),
        "datasets.map, fast tokenizer": lambda: hf_datasets(path, model, clock),
        "fairseq2": lambda: fairseq2(path, model, clock),
    }
    return others[peer]()


def measure(peer: str, path: Path, model: Path) -> dict[str, float]:
    """One repetition, in this process."""
    import torch

    torch.set_num_threads(1)
    clock = Clock()
    batches = list(made(peer, path, model, clock))
    wall, cpu = clock.stop()
    pairs = sum(len(source) for source, _ in batches)
    cells = sum(side.numel() for batch in batches for side in batch)
    held = sum(int((side != PAD).sum()) for batch in batches for side in batch)
    return {"pairs": pairs, "wall_s": wall, "cpu_s": cpu, "padding": 1 - held / cells}


def run(
    args: argparse.Namespace, cache: Path
) -> tuple[dict[str, list[dict[str, float]]], dict[str, str]]:
    """All repetitions of all peers that are installed, in turn; those that failed, and why."""
    model = model_of(args.data, cache)
    missing = {
        peer: [name for name in needs if importlib.util.find_spec(name) is None]
        for peer, needs in PEERS.items()
    }
    for peer, names in missing.items():
        if names:
            print(f"{peer}: left out, {' and '.join(names)} is not installed", file=sys.stderr)
    results: dict[str, list[dict[str, float]]] = {
        p: [] for p, names in missing.items() if not names
    }
    failed: dict[str, str] = {}
    for _, peer in itertools.product(range(args.repetitions), results):
        command = [sys.executable, __file__, "--data", args.data, "--model", model, "--peer", peer]
        done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
        sys.stderr.write(done.stderr)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            failed[peer] = f"it ended with {done.returncode}: {last}"
            continue
        results[peer].append(json.loads(done.stdout.splitlines()[-1]))
    return {peer: found for peer, found in results.items() if found}, failed


def show(results: dict[str, list[dict[str, float]]], failed: dict[str, str]) -> None:
    print("| | pairs per CPU second | pairs per second | padding |\n|---|---|---|---|")
    lines: list[dict[str, Any]] = []
    for peer, found in results.items():
        cpu = statistics.median(one["pairs"] / one["cpu_s"] for one in found)
        wall = statistics.median(one["pairs"] / one["wall_s"] for one in found)
        padding = statistics.median(one["padding"] for one in found)
        print(f"| {peer} | {cpu:,.0f} | {wall:,.0f} | {100 * padding:.1f} % |")
        rates = {"cpu_pairs_s": round(cpu), "pairs_s": round(wall), "padding": round(padding, 4)}
        lines.append({"bench": "data", "peer": peer, "repetitions": len(found), **rates})
    lines += [{"bench": "data", "peer": peer, "failed": why} for peer, why in failed.items()]
    for line in lines:
        print(json.dumps(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a TSV file of pairs")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        print(json.dumps(measure(args.peer, args.data, args.model)))
        return
    with tempfile.TemporaryDirectory(prefix="textmill-bench-") as cache:
        show(*run(args, Path(cache)))


if __name__ == "__main__":
    main()

"""Many rows: what they cost in memory, at the start of an epoch, and when a run goes on.

    python benchmarks/rows.py --rows 1e6 1e7 --cache /scratch

Synthetic pairs of sentences in eight TSV files are tokenized once into a store; then a process of
its own for each figure opens them as training does, with batches of 2,048 cells. Memory is what
only this process holds (RssAnon): pages of the mapped files are the system's to drop. It is taken
before the first batch of an epoch and after each window of the first part of one. Printed are the
seconds to write, index and tokenize the rows, those from nothing to the first batch of an epoch, at
0 % and at 90 % of it, and those from one epoch to the first batch of the next; and a line of JSON
for each number of rows. With --encode the token store is made by this process, and by two.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

FILES, WORDS, PAD = 8, 20_000, 0
CHUNK = 100_000  # rows written at once


def write(folder: Path, rows: int) -> None:
    """Rows of two sentences of 3 to 16 words, as many of a word as in a language."""
    random = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlu"))
    words = np.array(["".join(random.choice(letters, random.integers(2, 9))) for _ in range(WORDS)])
    share = 1 / np.arange(1, WORDS + 1)
    table = random.choice(WORDS, 1 << 22, p=share / share.sum())
    for number in range(FILES):
        part = folder / f"part-{number}.tsv.part"
        with part.open("w", encoding="utf-8") as file:
            left = rows * (number + 1) // FILES - rows * number // FILES
            while left:
                count = min(left, CHUNK)
                lengths = random.integers(3, 17, 2 * count)
                ends = np.cumsum(lengths)
                first = int(random.integers(len(table) - int(ends[-1])))
                said = words[table[first : first + int(ends[-1])]].tolist()
                starts = (ends - lengths).tolist()
                texts = [" ".join(said[a:b]) for a, b in zip(starts, ends.tolist(), strict=True)]
                pairs = zip(texts[::2], texts[1::2], strict=True)
                file.writelines(f"{source}\t{target}\n" for source, target in pairs)
                left -= count
        part.rename(part.with_suffix(""))


class Opened:
    """The data as training has it: rows in their files, tokens in the store, batches of tensors."""

    def __init__(self, folder: Path, *, workers: int | None = None, encode: bool = False) -> None:
        from textmill.data.batches import EpochBatches
        from textmill.data.seq2seq_batch import collate_seq2seq
        from textmill.data.store.tokens import TokenStore
        from textmill.data.text_pairs import TextPairs
        from textmill.text.processors.seq2seq import Seq2SeqText
        from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer

        text = Seq2SeqText(MultilingualTokenizer.from_file(folder / "sp.model"))
        start = time.perf_counter()
        data = TextPairs.Config(path=folder / "rows").build().read()
        self.indexed = time.perf_counter() - start
        store = TokenStore.of(text, data.fingerprint())
        if encode:
            shutil.rmtree(store.folder, ignore_errors=True)
        start = time.perf_counter()
        encoded = store.get(text, data.rows(), workers=workers, say=lambda _: None)
        self.tokenized = time.perf_counter() - start
        self.data = data

        def collate(rows: Any) -> Any:
            return collate_seq2seq(encoded.columns, rows, pad_idx=PAD)

        self.batches = EpochBatches(encoded.columns, data.batching, collate, seed=1)

    def first_batch(self, *, epoch: int = 0) -> float:
        """Seconds to the first batch of an epoch, from its beginning."""
        start = time.perf_counter()
        place = dict.fromkeys(self.batches.state_dict(), 0)
        self.batches.load_state_dict({**place, "epoch": epoch})
        next(iter(self.batches))
        return time.perf_counter() - start


def held() -> float:
    """Megabytes that only this process holds."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("RssAnon"))
    return int(kilobytes) / 1024


def make(folder: Path, rows: int) -> dict[str, float]:
    from textmill.text.tokenizers.sentencepiece import train_sentencepiece

    start = time.perf_counter()
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    write(folder / "rows", rows)
    written = time.perf_counter() - start
    with (folder / "rows" / "part-0.tsv").open(encoding="utf-8") as file:
        lines = [line for line, _ in zip(file, range(20_000), strict=False)]
    sides = (side for line in lines for side in line.rstrip("\n").split("\t"))
    train_sentencepiece(sides, folder / "sp.model", vocab_size=4000)
    opened = Opened(folder)
    return {"write_s": written, "index_s": opened.indexed, "tokenize_s": opened.tokenized}


def resume(folder: Path, share: float) -> dict[str, float]:
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    opened = Opened(folder)
    batches = opened.batches
    place = {"epoch": 0, "position": int(share * len(batches))}
    if batches.num_windows > 1:
        place |= {"window": int(share * batches.num_windows), "at": 0}
    batches.load_state_dict(place)
    next(iter(batches))
    return {f"resume_{100 * share:.0f}_s": time.perf_counter() - start}


def epoch(folder: Path, windows: int) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    opened = Opened(folder)
    batches, found = opened.batches, [held()]
    opened.first_batch()
    for window in range(min(windows, batches.num_windows)):
        for _ in batches:
            if batches.num_windows > 1 and batches.state_dict()["window"] > window:
                break
        found.append(held())
    seconds = opened.first_batch(epoch=1)
    return {"held_mb": found, "most_mb": max(found), "epoch_s": seconds}


def child(folder: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", str(folder), *words]
    environment = {**os.environ, "TEXTMILL_CACHE": str(folder / "cache")}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(cache: Path, rows: int, repetitions: int) -> dict[str, Any]:
    folder = cache / f"rows-{rows}"
    line: dict[str, Any] = {"bench": "rows", "rows": rows}
    if not (folder / "sp.model").exists():
        line |= child(folder, "--make", str(rows))
    parts: list[Mapping[str, Any]] = []
    for _ in range(repetitions):
        parts += [child(folder, "--resume", share) for share in ("0", "0.9")]
        parts.append(child(folder, "--windows", "4"))
    names = dict.fromkeys(name for part in parts for name in part)
    for name in names:
        values = [part[name] for part in parts if name in part]
        line[name] = values[0] if name == "held_mb" else statistics.median(values)
    return line


def encode(cache: Path, rows: int, repetitions: int) -> None:
    """The token store by one process and by two, in turns; the least seconds of each.

    "Others" is how many cores other processes used meanwhile.
    """
    folder = cache / f"rows-{rows}"
    found: dict[str, list[dict[str, Any]]] = {"0": [], "2": []}
    for _ in range(repetitions):
        for workers, times in found.items():
            times.append(child(folder, "--encode-with", workers))
    one, two = (min(times, key=lambda one: one["tokenize_s"]) for times in found.values())
    said = [
        f"{each['tokenize_s']:.1f} s ({each['cpu_s']:.1f} CPU s, others {each['others']:.2f})"
        for each in (one, two)
    ]
    times_as_fast = one["tokenize_s"] / two["tokenize_s"]
    print(
        f"Token store of {rows:,} rows: {said[0]} by one process, {said[1]} with two that encode: "
        f"{times_as_fast:.2f} times as fast."
    )
    print(json.dumps({"bench": "rows", "rows": rows, "one": one, "two": two}))


def encode_once(folder: Path, workers: int) -> dict[str, float]:
    import machine

    watch = machine.Watch()
    opened = Opened(folder, workers=workers, encode=True)
    return {**watch.read(), "tokenize_s": opened.tokenized}


def one(args: argparse.Namespace) -> dict[str, Any]:
    """What a process of its own measures."""
    folder = Path(args.folder)
    if args.make:
        return make(folder, int(args.make))
    if args.resume:
        return resume(folder, float(args.resume))
    if args.encode_with:
        return encode_once(folder, int(args.encode_with))
    return epoch(folder, int(args.windows))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--cache", type=Path, help="a folder for rows and tokens, kept")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--encode", action="store_true", help="measure how tokens are made")
    for hidden in ("--folder", "--make", "--resume", "--windows", "--encode-with"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.folder is not None:
        print(json.dumps(one(args)))
        return
    if args.cache is None:
        parser.error("--cache names a folder for the rows, some 150 bytes each")
    lines = [measure(args.cache, int(rows), args.repetitions) for rows in args.rows]
    print("| rows | held, MB | epoch to epoch | from nothing, at 0 % | at 90 % |")
    print("|---|---|---|---|---|")
    for line in lines:
        seconds = " | ".join(f"{line[n]:.2f} s" for n in ("epoch_s", "resume_0_s", "resume_90_s"))
        print(f"| {line['rows']:,} | {line['most_mb']:.0f} | {seconds} |")
    for line in lines:
        print(json.dumps(line))
    if args.encode:
        for rows in args.rows:
            encode(args.cache, int(rows), args.repetitions)


if __name__ == "__main__":
    main()

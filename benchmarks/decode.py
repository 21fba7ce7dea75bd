"""Decoding: one peer in a process of its own; the last line it prints is JSON.

    python benchmarks/decode.py --peer textmill --beam 5 --threads 2 --data train.tsv --cache FOLDER

The work: sentences of the data in batches of 32 sorted by length, exactly 32 new tokens each, the
same model and weights for all peers (``decode_peers.py``). Printed are tokens a second of the clock
and of the processor, and a number for the ids of each sentence, by which ``run.py`` tells how many
sentences two peers decode alike. The first and the longest batch are decoded once before.
"""

import argparse
import json
import random
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import decode_peers
import machine
import torch
from bare import BATCH, EOS, pairs_of, pieces_of
from decode_peers import NEW, Peer, Rows

PEERS = {
    "transformers": ("transformers",),
    "textmill": (),
    "textmill, plain step": (),
    "ctranslate2": ("ctranslate2",),
}
"""Each with the packages it needs."""


def sources(data: Path, cache: Path, count: int) -> list[Rows]:
    """The ids of ``count`` sentences in sorted batches; kept as JSON for the next process."""
    kept = cache / f"decode-{data.stat().st_size}-{count}.json"
    if not kept.exists():
        import sentencepiece

        pieces = sentencepiece.SentencePieceProcessor(model_file=str(pieces_of(data, cache)))
        pairs = pairs_of(data)
        chosen = random.Random(0).sample(pairs, min(count, len(pairs)))
        rows = sorted(([*pieces.encode(source), EOS] for source, _ in chosen), key=len)
        kept.write_text(json.dumps(rows), encoding="ascii")
    rows = json.loads(kept.read_text(encoding="ascii"))
    return [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]


def peer_of(args: argparse.Namespace) -> Peer:
    weights = args.cache / "decode-weights.safetensors"
    if not weights.exists():
        decode_peers.write_weights(weights)
    makers: dict[str, Callable[[], Peer]] = {
        "transformers": lambda: decode_peers.transformers(args.beam, weights),
        "textmill": lambda: decode_peers.textmill(args.beam, weights, fast=True),
        "textmill, plain step": lambda: decode_peers.textmill(args.beam, weights, fast=False),
        "ctranslate2": lambda: decode_peers.ctranslate2(args.beam, weights, args.threads),
    }
    return makers[args.peer]()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a TSV file of pairs")
    parser.add_argument("--cache", type=Path, required=True, help="folder of pieces and weights")
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=512)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)
    args.cache.mkdir(parents=True, exist_ok=True)
    batches = sources(args.data, args.cache, args.sentences)
    run = peer_of(args)
    for batch in (batches[0], batches[-1]):
        run(batch)
    watch = machine.Watch()
    found = [row for batch in batches for row in run(batch)]
    read = watch.read()
    assert all(len(row) == NEW for row in found)
    result = {
        "beam": args.beam,
        "tok_s": NEW * len(found) / read["wall_s"],
        "tok_cpu_s": NEW * len(found) / read["cpu_s"],
        "others": read["others"],
        "rows": [zlib.crc32(json.dumps(row).encode()) for row in found],
    }
    print(json.dumps({"bench": "decode", "peer": args.peer, **result}))


if __name__ == "__main__":
    main()

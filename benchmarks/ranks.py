"""Training throughput of one run in one process, or in two: one repetition, one line of JSON.

    python benchmarks/ranks.py --data train.tsv --dev dev.tsv --cache /tmp/bench --peer "2 ranks"

``textmill train translation/tatoeba`` as a user types it, by a token budget; what is counted are
target ids without padding in a second, from the first report on.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import Watch

PEERS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "1 process, 1 thread": (1, 1, ()),
    "1 process, 2 threads": (1, 2, ()),
    "2 ranks, 1 thread each": (2, 1, ()),
}
"""Each with its ranks, the threads of each, and settings."""


def command(args: argparse.Namespace, folder: Path) -> list[str]:
    """The words of the run."""
    ranks, _, settings = PEERS[args.peer]
    return [
        *(sys.executable, "-m", "textmill", "train", "translation/tatoeba"),
        *(f"train_data.path={args.data}", f"valid_data.path={folder.parent / 'dev.tsv'}"),
        *(f"trainer.max_steps={args.steps}", f"trainer.report_every={args.warmup}"),
        *("trainer.evaluate_every=1000000 steps", "--run-dir", str(folder), *settings),
        *(["--nproc", str(ranks)] if ranks > 1 else []),
    ]


def reports(folder: Path) -> list[dict[str, float]]:
    """What the run reported of its training."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row["time"] for row in map(json.loads, lines) if row["split"] == "train"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a TSV file of pairs")
    parser.add_argument("--dev", type=Path, required=True, help="another, of which 64 are used")
    parser.add_argument("--cache", type=Path, required=True, help="folder of pieces and ids")
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--warmup", type=int, default=20)
    args = parser.parse_args()
    _, threads, _ = PEERS[args.peer]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "TEXTMILL_CACHE": str(args.cache / "textmill"),
    }
    watch = Watch()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work, "run")
        few = args.dev.read_text(encoding="utf-8").splitlines(keepends=True)[:64]
        Path(work, "dev.tsv").write_text("".join(few), encoding="utf-8")
        done = subprocess.run(
            command(args, folder),
            check=False,
            capture_output=True,
            text=True,
            env=environment,
            cwd=args.cache,
        )
        if done.returncode:
            sys.exit(done.stderr or done.stdout)
        first, *rest = reports(folder)
    before, targets = first["elapsed"], 0.0
    for row in rest:
        targets += row["targets_per_second"] * (row["elapsed"] - before)
        before = row["elapsed"]
    read, seconds = watch.read(), before - first["elapsed"]
    figures = {
        "tok_s": targets / seconds,
        "ms_step": 1e3 * seconds / (args.steps - args.warmup),
        "others": read["others"],
    }
    print(json.dumps({"bench": "ranks", "peer": args.peer, **figures}))


if __name__ == "__main__":
    main()

"""The translation recipe of README.md, started in each way: whether the results agree.

    python benchmarks/launchers.py --data data/tatoeba

``examples/tatoeba.py`` is trained for ``--steps`` steps, without dropout and with some of the rows
that it validates on, by one process and by two in each way there is to start them. Each has a run
folder of its own. Printed are the words that were typed, and how far the result is from that of the
first two processes: weights, optimizer, values and predictions byte for byte, or the largest
relative difference of any value that was measured.
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TRAIN = "textmill train examples/tatoeba.py"
NODES = "torchrun --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint localhost:PORT"
WAYS = {
    "nproc": ("two processes", f"{TRAIN} --nproc 2", 1),
    "alone": ("one process", TRAIN, 1),
    "torchrun": ("two processes", f"torchrun --nproc-per-node 2 -m {TRAIN}", 1),
    "nodes": ("two agents of torchrun, typed twice", f"{NODES} -m {TRAIN}", 2),
    "ray": ("a Ray cluster of this machine", f"{TRAIN} --launcher ray --nproc 2", 1),
}
"""What it ran on, what was typed, and how often."""
PROGRAMS = {"textmill": ["-m", "textmill"], "torchrun": ["-m", "torch.distributed.run"]}
VALID_ROWS = 300
LONGEST_WAIT = 1800


def prepared(folder: Path, data: Path) -> None:
    """The recipe and its data, as README.md has them."""
    shutil.copytree(EXAMPLES, folder / "examples")
    (folder / "data" / "tatoeba").mkdir(parents=True)
    (folder / "data" / "tatoeba" / "train.tsv").symlink_to(data.resolve() / "train.tsv")
    with (data / "dev.tsv").open(encoding="utf-8") as rows:
        some = "".join(row for _, row in zip(range(VALID_ROWS), rows, strict=False))
    (folder / "data" / "tatoeba" / "dev.tsv").write_text(some, encoding="utf-8")


def run(folder: Path, name: str, settings: list[str]) -> float:
    """Starts the recipe in a way, in the run folder of that name; the seconds until its end."""
    _, typed, times = WAYS[name]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program, *words = shlex.split(typed.replace("PORT", port))
    command = [sys.executable, *PROGRAMS[program], *words, *settings, "--run-dir", name]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = time.monotonic()
    with (folder / f"{name}.log").open("wb") as log:
        output: dict[str, Any] = {"stdout": log, "stderr": log}
        processes = [
            subprocess.Popen(command, cwd=folder, env=environment, **output) for _ in range(times)
        ]
        codes = [process.wait() for process in processes]
    while not any(codes) and not is_finished(folder / name):  # a job of Slurm was handed over
        time.sleep(0.5)
        if time.monotonic() - started > LONGEST_WAIT:
            codes = [1]
    if any(codes):
        sys.exit(f"{typed} failed:\n{(folder / f'{name}.log').read_text()}")
    return time.monotonic() - started


def is_finished(run: Path) -> bool:
    """Whether a run says so."""
    record = run / "run.json"
    return record.is_file() and bool(json.loads(record.read_text())["finished"])


def result(run: Path) -> dict[str, Any]:
    """What must be the same of two runs: hashes of what is bytes, and all values by their place."""
    last = max((run / "checkpoints").glob("step-*"))
    files = {
        "weights": [last / "model.safetensors"],
        "optimizer": [last / "optimizer.safetensors"],
        "predictions": sorted((run / "predictions").iterdir()),
    }
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    values = {
        (line["split"], line["step"], key): value
        for line in lines
        for key, value in line.items()
        if isinstance(value, float) and key != "time"
    }
    hashes = {
        name: hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
        for name, paths in files.items()
    }
    return {**hashes, "values": values}


def compared(wanted: dict[str, Any], found: dict[str, Any]) -> str:
    """How far a result is from another."""
    other = [name for name in wanted if wanted[name] != found[name]]
    if not other:
        return "the same bytes"
    one, two = wanted["values"], found["values"]
    if one.keys() != two.keys():
        return "OTHER VALUES"
    apart = {key: abs(one[key] - two[key]) / max(abs(one[key]), 1e-9) for key in one}
    loss = max(apart[key] for key in apart if key[-1] == "loss")
    worst = max(apart, key=apart.__getitem__)
    return (
        f"losses within {loss:.1e}, all values within {apart[worst]:.1e} ({worst[-1]}); "
        f"other {', '.join(name for name in other if name != 'values')}"
    )


def main() -> None:
    """Prints the table, and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder: train.tsv and dev.tsv")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("settings", nargs="*", help="other settings of the recipe")
    args = parser.parse_intermixed_args()
    settings = ["model.dropout=0", f"trainer.max_steps={args.steps}", *args.settings]
    print("| typed | on | against the first | seconds |\n|---|---|---|---|")
    results: dict[str, dict[str, Any]] = {}
    said: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="textmill-launchers-") as name:
        folder = Path(name)
        prepared(folder, args.data)
        for way in args.ways:
            seconds = run(folder, way, settings)
            results[way] = result(folder / way)
            first = next(iter(results.values()))
            said[way] = "-" if len(results) == 1 else compared(first, results[way])
            on, typed, _ = WAYS[way]
            print(f"| `{typed}` | {on} | {said[way]} | {seconds:.0f} |", flush=True)
    print(json.dumps({"bench": "launchers", "steps": args.steps, "agree": said}))


if __name__ == "__main__":
    main()

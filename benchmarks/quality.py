"""BLEU of the recipe that textmill ships, after its training: one line of JSON.

    python benchmarks/quality.py --data train.tsv --dev dev.tsv --minutes 15

The recipe is translation/tatoeba as it stands, but for the files; a run that is longer than
``--minutes`` ends there. Its evaluations on dev.tsv are printed with the minutes of training before
each: BLEU as the task measures it, over distinct sources with all their references.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a TSV file of pairs")
    parser.add_argument("--dev", type=Path, required=True, help="a TSV file of other pairs")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--recipe", default="translation/tatoeba")
    parser.add_argument("settings", nargs="*", help="further settings of the recipe")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        words = [sys.executable, "-m", "textmill", "train", args.recipe, "--run-dir", str(run)]
        words += [f"train_data.path={args.data}", f"valid_data.path={args.dev}"]
        words += [f"trainer.max_time={max(1, round(60 * args.minutes))}s", *args.settings]
        environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        subprocess.run(words, check=True, stdout=sys.stderr, env=environment)
        lines = [json.loads(row) for row in (run / "metrics.jsonl").read_text().splitlines()]
    values = [
        {"minutes": line["time"]["elapsed"] / 60, "step": line["step"], "bleu": line["bleu"]}
        for line in lines
        if "bleu" in line and line.get("split") == "valid"
    ]
    print(json.dumps({"bench": "quality", "peer": "textmill", "values": values}))


if __name__ == "__main__":
    main()

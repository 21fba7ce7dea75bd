"""The table of launchers compares what it says, here on few rows and steps."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "launchers.py"


@pytest.mark.slow
def test_it_prints_a_table_and_a_line_of_json(tmp_path, shared_data):
    source = shared_data / "tatoeba-en-fr"
    for name in ("train.tsv", "dev.tsv"):
        rows = (source / name).read_text().splitlines(keepends=True)[:300]
        (tmp_path / name).write_text("".join(rows))
    words = ["--data", str(tmp_path), "--steps", "4", "--ways", "nproc", "alone", "nodes"]
    small = ["model.dim=16", "tokenizer.vocab_size=150", "train_data.max_tokens=256"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *small, *words], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "| typed | on | against the first | seconds |"
    assert lines[2].startswith(
        "| `textmill train examples/tatoeba.py --nproc 2` | two processes | - |"
    )
    agree = json.loads(lines[-1])["agree"]
    assert agree["nodes"] == "the same bytes"
    found = re.match(r"losses within (\S+), all .*; other weights, optimizer", agree["alone"])
    assert 0 < float(found[1]) < 1e-5  # sums of other order: so two that agree are compared

"""The loop for language models takes the steps of a plain one: the same loss, step by step."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "language.py"


def test_the_losses_are_those_of_a_plain_loop(tmp_path):
    chance = random.Random(1)
    words = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "it", "nobler"]
    lines = [" ".join(chance.choices(words, k=chance.randint(0, 12))) for _ in range(300)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    sizes = ["--steps", "60", "--batch", "4", "--block", "7", "--lines", "1000"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--data", str(tmp_path / "text.txt"), *sizes],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["steps"] == 60
    assert found["last_loss_weft"] < found["first_loss"]
    assert found["largest_relative_difference"] < 1e-3

"""The loop for language models takes the steps of a plain one: the same loss, step by step."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.warm_textmill import warm_programs

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "language.py"


@pytest.fixture
def text(tmp_path):
    chance = random.Random(1)
    words = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "it", "nobler"]
    lines = [" ".join(chance.choices(words, k=chance.randint(0, 12))) for _ in range(300)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    return tmp_path / "text.txt"


def measured(text, *words):
    """What the benchmark prints of a text."""
    done = subprocess.run(
        [
            warm_programs() / "warm-python",
            str(SCRIPT),
            "--data",
            str(text),
            "--batch",
            "4",
            "--block",
            "7",
            *words,
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_losses_are_those_of_a_plain_loop(text):
    found = measured(text, "--steps", "60", "--lines", "1000")
    assert found["steps"] == 60
    assert found["last_loss_textmill"] < found["first_loss"]
    assert found["largest_relative_difference"] < 1e-3


@pytest.mark.parametrize("side", [pytest.param("textmill", marks=pytest.mark.slow), "plain"])
def test_a_side_trains_for_its_time_and_is_evaluated(text, side):
    found = measured(text, "--minutes", "0.02", "--side", side, "--valid", str(text))
    assert found["side"] == side
    assert 0.01 < found["cpu_minutes"] < 0.1  # textmill's steps are what a short trial says
    assert found["steps"] > 10
    assert found["valid_perplexity"] < found["vocabulary"]

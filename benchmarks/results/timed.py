"""A language model for some minutes: in textmill's loop, or in a plain one."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.results.files import Files
from benchmarks.results.found import FailedError, Found

SCRIPT = Path(__file__).parents[1] / "language.py"


@dataclass(frozen=True)
class Timed:
    """One side of ``benchmarks/language.py``: the model of ``language/lstm``, on one thread."""

    side: Literal["textmill", "plain"]
    minutes: float = 20.0
    """Of the process's CPU, so that what else runs costs neither side a step."""

    @property
    def name(self) -> str:
        return f"{self.side} loop, {self.minutes:g} minutes"

    def found(self, files: Files, reading: Mapping[str, Any]) -> Found:
        """The perplexity of the dev file.

        Raises:
            FailedError: The script ended with an error.
        """
        words = ["--data", str(files.train), "--valid", str(files.dev), "--side", self.side]
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *words, "--minutes", str(self.minutes)],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise FailedError(f"{SCRIPT.name} --side {self.side}: it ended with an error: {last}")
        line = json.loads(done.stdout.splitlines()[-1])
        value = line["valid_perplexity"]
        return Found({"perplexity": value}, {"perplexity": 0.0}, {"steps": line["steps"]})

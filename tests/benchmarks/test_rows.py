"""The benchmark of many rows measures what it says, here on few."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "rows.py"


@pytest.mark.slow
def test_it_prints_a_table_and_a_line_of_json(tmp_path):
    words = ["--rows", "3e4", "--cache", str(tmp_path), "--repetitions", "1", "--encode"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "| rows | held, MB | epoch to epoch | from nothing, at 0 % | at 90 % |"
    assert lines[2].startswith("| 30,000 | ")
    found = json.loads(lines[3])
    assert (found["bench"], found["rows"]) == ("rows", 30_000)
    assert len(list((tmp_path / "rows-30000" / "rows").glob("*.tsv"))) == 8
    text = "".join(p.read_text() for p in (tmp_path / "rows-30000" / "rows").glob("*.tsv"))
    assert text.count("\n") == text.count("\t") == 30_000
    assert found["epoch_s"] < found["resume_90_s"]
    assert lines[4].startswith("Token store of 30,000 rows: ")
    assert {"one", "two"} <= {*json.loads(lines[5])}

"""``make results RESULTS=comparison`` trains each tool that is there as a newcomer would."""

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.results import comparison
from benchmarks.results.comparison import BEGIN, END, HERE, TOOLS, WHAT, Task
from tests.warm_textmill import warm_programs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
TASK = Task(job="classify", data="sms-spam", seeds=1)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "sms-spam"
    folder.mkdir(parents=True)
    said = [("ham", "see you at home, {n}"), ("spam", "win a prize now, call {n}")]
    for part in ("train", "dev"):
        rows = (said[n % 2] for n in range(40))
        lines = [f"{label}\t{text.format(n=n)}\n" for n, (label, text) in enumerate(rows)]
        (folder / f"{part}.tsv").write_text("".join(lines))
    return folder.parent


def test_tools_that_are_here_are_measured_once_and_others_named(
    tmp_path, data, monkeypatch, capsys
):
    monkeypatch.setenv("WARM_PYTHON", str(warm_programs() / "python"))
    for name in ("SPACY_PYTHON", "LUDWIG_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    warm = {
        name: tool if tool.python else replace(tool, python="WARM_PYTHON")
        for name, tool in TOOLS.items()
        if name != "scikit_learn_searched"
    }
    monkeypatch.setattr(comparison, "TOOLS", warm)
    monkeypatch.setattr(comparison, "TASKS", (TASK,))
    out, page = tmp_path / "out", tmp_path / "page.md"
    for _ in range(2):
        page.write_text(f"{BEGIN}\nold\n{END}\n")
        assert comparison.main(data, out, page, seeds=1) == []
        lines = [json.loads(line) for line in (out / "comparison.jsonl").read_text().splitlines()]
        assert [line["part"] for line in lines] == ["textmill-1", "scikit_learn-1"]
    assert all(line["score"] == 100 and line["rows"] == 40 for line in lines)
    assert all(line["train"]["cpu_s"] > 0 < line["asks"]["rows_s"] for line in lines)
    assert lines[0]["installed"]["mb"] > lines[1]["installed"]["mb"] > 10
    assert re.search(r"\| textmill \| .* \| 3 \| 100.00 ± 0.00 \| 1 \|", page.read_text())
    told = capsys.readouterr().err
    assert "spaCy: left out, SPACY_PYTHON names no Python" in told
    assert "Ludwig: left out" in told


def test_the_memory_of_the_parent_counts_for_no_command(tmp_path):
    held = bytearray(300 << 20)
    held[:: 1 << 12] = b"1" * len(held[:: 1 << 12])
    tool = replace(TOOLS["scikit_learn"], name="python")
    printed, used = comparison.timed([sys.executable, "-c", "print(7)"], tmp_path, tool)
    assert (printed, used["peak_mb"] < 100) == ("7", True)
    with pytest.raises(comparison.FailedError, match="ended with 3: gone"):
        comparison.timed(["sh", "-c", "echo gone >&2; exit 3"], tmp_path, tool)
    del held


def test_every_tool_has_a_model_its_files_and_its_place_on_the_page():
    for job, tool in WHAT:
        names = {file.name for file in (HERE / job / tool).iterdir()}
        assert {"train.sh", "answer.sh"} <= names
        assert os.access(HERE / job / tool / "train.sh", os.R_OK)
    assert {(task.job, tool) for task in comparison.TASKS for tool in task.tools()} == set(WHAT)
    assert 0 < PAGE.index(BEGIN) < PAGE.index(END)

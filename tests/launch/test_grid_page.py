"""The page and the table of a grid: the best first, and nothing of a run but text."""

import json
import math

import pytest

from textmill.launch.cells import Cell, GridWords
from textmill.launch.grid_table import GridTable, grid_html


def grid_of(folder, words, values, *, seeds=None, better="higher"):
    """A grid whose cells are finished with these values; None is one that failed."""
    asked = GridWords.read(words, seeds)
    cells = []
    for number, (chosen, value) in enumerate(zip(asked.cells(), values, strict=True)):
        run = folder / str(number)
        run.mkdir()
        info = {
            "format_version": 1, "recipe": "made", "key": "0", "finished": value is not None,
            "selected_by": {"metric": "f1", "better": better},
            "result": {"steps": 9, "best": {"step": 9, "f1": value}},
        }  # fmt: skip
        (run / "run.json").write_text(json.dumps(info))
        state, reason = ("finished", "") if value is not None else ("failed", "a <b>reason</b>")
        cells.append(Cell(chosen, chosen, run, state, reason))
    return GridTable(asked.axes, cells)


@pytest.mark.parametrize(("better", "best"), [("higher", "b"), ("lower", "c")])
def test_the_best_combination_is_first_in_the_table(tmp_path, better, best):
    grid = grid_of(tmp_path, ["kind=a,b,c"], [0.5, 0.9, 0.1], better=better)
    assert grid.tsv().splitlines()[1].startswith(f"{best}\tfinished\t")


def test_what_a_run_or_a_setting_says_is_only_text(tmp_path):
    grid = grid_of(tmp_path, ["kind='<script>alert(1)</script>',b"], [0.5, None])
    page = grid_html(grid, "<i>made</i>", "textmill grid '<script>'")
    assert "<script" not in page
    assert "<b>reason" not in page
    assert "a &lt;b&gt;reason" in page
    assert "finished" in page
    assert "failed" in page


def test_without_a_value_that_all_are_selected_by_no_best_run_is_named(tmp_path):
    grid = grid_of(tmp_path, ["kind=a,b"], [None, None])
    assert grid.best is None
    assert grid.best_lines() == ["best: none is named, as no cell is finished"]


def test_a_seed_that_failed_is_left_out_of_the_mean_and_said(tmp_path):
    grid = grid_of(tmp_path, ["kind=a,b"], [0.5, None, 0.2, 0.4], seeds=2)
    first, second = grid.lines
    assert first.values == ("a",)
    assert first.spread()[0] == 0.5
    assert math.isnan(first.spread()[1])
    assert second.spread() == pytest.approx((0.3, 0.1414), abs=1e-4)
    assert "1 of 2" in grid.text()
    assert grid.text().splitlines()[1].split()[1] == "failed"

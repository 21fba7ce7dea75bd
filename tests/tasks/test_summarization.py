"""Summaries: which reference counts, against rouge-score, and references that are none."""

import json

import pytest

from tests.tasks.rows import evaluated
from tests.tasks.test_conformance import Data
from textmill.errors import DataError
from textmill.inference import Predictor
from textmill.tasks import Translated
from textmill.tasks.generation import Summarization

ROWS = [
    {
        "source": "The cat sleeps.", "target": "A cat.",
        "references": ["A cat.", "The cat sleeps in a garden.", "Go."],
    },
    {
        "source": "She lives in the garden.", "target": "Where she lives.",
        "references": ["Where she lives.", "She lives."],
    },
]  # fmt: skip
KINDS = ["rouge1", "rouge2", "rougeL"]


class Copied(Summarization):
    """Answers with the source itself."""

    def generate(self, source, source_lengths):
        return [Translated(text, -1.0) for text in self.text.decode(source.tolist())]


def as_json(rows):
    return [{**row, "references": json.dumps(row["references"])} for row in rows]


@pytest.mark.parametrize("rows", [ROWS, as_json(ROWS)], ids=["lists", "json"])
def test_the_reference_that_is_best_by_rouge1_counts(make_task, rows):
    # What rouge-score 0.1.2 gave, with stems: of the first row its second reference, of the second
    # row again the second.
    first = {"rouge1": 2 / 3, "rouge2": 4 / 7, "rougeL": 2 / 3}
    second = {"rouge1": 4 / 7, "rouge2": 2 / 5, "rougeL": 4 / 7}
    expected = {kind: (first[kind] + second[kind]) / 2 for kind in KINDS}
    evaluation = evaluated(make_task(Copied), Data(rows))
    assert {kind: evaluation.values[kind] for kind in KINDS} == pytest.approx(expected)
    assert [row["references"] for row in evaluation.rows] == [row["references"] for row in ROWS]


def test_without_references_the_target_counts(make_task):
    rows = [{"source": row["source"], "target": row["source"]} for row in ROWS]
    assert evaluated(make_task(Copied), Data(rows)).values["rougeL"] == 1


@pytest.mark.parametrize(
    ("references", "problem"),
    [
        ("A cat.", "wanted a list of texts, or one as JSON, found 'A cat.'. For JSON lines, set "),
        ('{"a": 1}', "wanted a list of texts"),
        ("[" * 100_000, "wanted a list of texts"),
        ('["a", 7]', "wanted a list of texts"),
        (None, "wanted a list of texts, or one as JSON, found None."),
        ([], "wanted one text or more, found []."),
        (" [] ", "wanted one text or more, found ' [] '."),
        (["", " "], "wanted one text or more, found ['', ' ']."),
    ],
)
def test_references_that_are_no_list_of_texts_are_named_before_step_1(
    make_task, references, problem
):
    rows = [*ROWS, {**ROWS[0], "references": references}]
    with pytest.raises(DataError) as caught:
        make_task(Summarization).batches(Data(rows), train=False, seed=1)
    assert str(caught.value).startswith(f"Row 2, column 'references': {problem}")


def test_a_source_without_a_sentence_is_named(make_task):
    task = make_task(Summarization)
    wanted = "is an empty list; give at least one sentence."
    (row,) = Predictor(task).stream([{"source": []}])
    assert row["error"] == f"'source' {wanted}"
    with pytest.raises(DataError) as caught:
        task.batches(Data([*ROWS, {**ROWS[0], "source": []}]), train=True, seed=1)
    assert str(caught.value) == f"Row 2, column 'source': {wanted}"

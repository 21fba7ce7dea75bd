"""Parsing: what counts as right, and as a tree; and what a target that is none does."""

import pytest

from tests.tasks.test_conformance import Data
from weft.errors import DataError
from weft.tasks import Translated, evaluate
from weft.tasks.parsing import SemanticParsing

CALL = "[IN:CALL call [SL:PERSON mom ] ]"
ROWS = [
    {"source": "call mom", "target": CALL},
    {"source": "ring mom", "target": CALL},
    {"source": "phone", "target": CALL},
    {"source": "mom", "target": CALL},
]
ANSWERS = {
    "call mom": " [IN:CALL  call [SL:PERSON mom ] ]",  # right: spaces do not count
    "ring mom": "[IN:CALL ring [SL:PERSON dad ] ]",  # the frame of other words as long
    "phone": "[IN:CALL call mom ]",
    "mom": "[IN:CALL call [SL:PERSON mom",
}


class Canned(SemanticParsing):
    """Answers what ``ANSWERS`` says."""

    def generate(self, source, source_lengths):
        sources = iter(ROWS)  # the tokenizer knows none of these words: answers by place
        return [Translated(ANSWERS[next(sources)["source"]], -1.0) for _ in source]


def values(task):
    return evaluate(task, task.batches(Data(ROWS, batch_size=9), train=False, seed=1)).values


def test_a_parse_is_right_as_a_whole_or_in_its_parts(make_task):
    found = values(make_task(Canned, trees=True))
    assert found["exact_match"] == 0.25
    assert found["frame_accuracy"] == 0.5
    assert found["intent_accuracy"] == 0.75
    assert found["invalid_trees"] == 0.25
    assert found["bracket/overall_f1"] == pytest.approx(2 * 5 / (8 + 6))  # of 8 predicted are 6


def test_forms_that_are_no_trees_are_matched_only(make_task):
    found = values(make_task(Canned))
    assert found["exact_match"] == 0.25
    assert sorted(found) == ["accuracy", "exact_match", "loss", "perplexity"]


@pytest.mark.parametrize("train", [True, False])
def test_a_target_that_is_no_tree_is_named_before_step_1(make_task, train):
    rows = [*ROWS[:2], {"source": "mom", "target": "[SL:PERSON mom ]"}]
    with pytest.raises(DataError) as caught:
        make_task(trees=True, kind=SemanticParsing).batches(Data(rows), train=train, seed=1)
    assert str(caught.value) == (
        "Row 2, column 'target': A parse is written [IN:LABEL words [SL:LABEL words ] ], but "
        "'[SL:PERSON' stands outside of the one outermost intent: '[SL:PERSON mom ]'. Correct the "
        "row, or set task.trees=false."
    )
    make_task(kind=SemanticParsing).batches(Data(rows), train=train, seed=1)


def test_a_form_may_be_many_times_as_long_as_its_sentence(make_task):
    assert make_task(SemanticParsing).config.decoding.max_length_a == 8

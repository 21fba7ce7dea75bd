"""The table of intents beside slots: what is read of parses, and how a row is judged."""

from pathlib import Path

import pytest

from benchmarks.results import intents
from benchmarks.results.ledger import Ledger


def test_a_parse_is_its_outermost_intent_and_slots():
    tree = "[IN:GET how is [SL:PLACE [IN:HOME my [SL:X home ] ] ] now [SL:A a ] [SL:A b c ] ]"
    intent, words, tags = intents.outermost(tree)
    assert (intent, " ".join(words)) == ("GET", "how is my home now a b c")
    assert " ".join(tags) == "O O B-PLACE I-PLACE O B-A B-A I-A"


def test_parts_share_no_row_and_each_word_has_a_tag(shared_data):
    for name in intents.SETS:
        train, choose, dev = intents.Cell(name, 500, 1).rows(shared_data)
        assert (len(train), len(choose)) == (450, 50)
        assert len(dev) >= 700
        assert all(len(text.split()) == len(tags.split()) for _, text, tags in train + choose)


@pytest.mark.parametrize(("joint", "verdict"), [(89.0, ""), (85.0, "below")])
def test_a_row_is_below_by_more_than_a_standard_error(tmp_path: Path, joint, verdict):
    ledger = Ledger(tmp_path / "intents.jsonl")
    for part, value in zip(intents.PARTS, (88.0, 90.0, joint), strict=True):
        line = {"job": "snips-500-1", "part": part, "key": "", "cpu_s": 2.0, "dev": 400}
        ledger.add({**line, "intents": value, "slots": 50.0, "frames": 40.0})
    row = intents.table(ledger, 1).splitlines()[-1]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:7] == ["snips", "500", "1", "88.00", "90.00", f"{joint:.2f}", "1.50"]
    assert cells[-1] == verdict

"""The table of pretrained families has what the tests try, and no more."""

import re
from pathlib import Path

from tests.pretrained_checkpoints import ENCODERS, LANGUAGE_MODELS, SEQ2SEQ
from tests.runs import test_pretrained, test_pretrained_seq2seq, test_pretrained_transformer

PAGE = Path(__file__).parents[2] / "docs" / "pretrained.md"


def test_every_cell_of_the_table_is_tried():
    table = PAGE.read_text().partition("## What is tested with what")[2]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")][1:]
    found = [(re.findall("`(.+?)`", one), re.findall("[a-z]+", other)) for one, other in rows]
    own = [*test_pretrained_transformer.FAMILIES]
    assert found == [
        ([*ENCODERS], sorted(test_pretrained.ROWS)),
        ([*SEQ2SEQ], sorted(test_pretrained_seq2seq.TASKS)),
        ([*LANGUAGE_MODELS], ["language"]),
        (own[2:], ["translation"]),
        (own[:2], ["language"]),
    ]

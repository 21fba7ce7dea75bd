"""What every predictor does with rows: bad ones become error rows, and none is read twice."""

import pytest

from textmill.errors import DataError
from textmill.exported.row_predictor import RowPredictor


class Counted(RowPredictor):
    """Answers with the length of a text, below 5, and counts how often each is looked at."""

    def __init__(self, *, itself):
        super().__init__(["text"])
        self.checks_itself, self.looked = itself, []

    def length(self, row):
        self.looked.append(row["text"])
        if len(row["text"]) >= 5:
            raise DataError(f"Row 0, column 'text': {row['text']} is long.")
        return len(row["text"])

    def check(self, row):
        self.length(row)

    def answers(self, rows):
        return [self.length(row) for row in rows]

    def answer_row(self, answer):
        return {"prediction": answer}


@pytest.mark.parametrize(("itself", "times"), [(True, 1), (False, 2)])
def test_rows_that_answers_refuses_itself_are_read_once(itself, times):
    predictor = Counted(itself=itself)
    rows = [str(number) for number in range(40)]
    assert [row["prediction"] for row in predictor.stream(rows, size=7)] == [
        len(row) for row in rows
    ]
    assert len(predictor.looked) == times * len(rows)


@pytest.mark.parametrize("itself", [True, False])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_a_bad_row_has_its_own_reason_and_the_others_their_answers(itself, size):
    rows = ["ab", "endless", 7, {"text": "abc", "more": 1}, {"eggs": "a"}, "a\0", "longer", ""]
    found = [*Counted(itself=itself).stream(rows, size=size)]
    errors = [row.get("error", "") for row in found]
    assert [row.get("prediction") for row in found] == [2, None, None, 3, None, None, None, 0]
    assert errors[1] == "column 'text': endless is long."
    assert errors[2].startswith("A row is a string or a mapping")
    assert errors[4].startswith("A row needs the columns text")
    assert errors[5].startswith("Column 'text': NUL at character 1")
    assert errors[6] == "column 'text': longer is long."
    assert found[3] == {"text": "abc", "more": 1, "prediction": 3}

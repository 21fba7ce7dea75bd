"""Of a great many bad rows the first are kept, and all are counted."""

import pytest

from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError


@pytest.mark.parametrize("held", [1 << 20, 0])
def test_of_a_file_in_memory_and_of_one_that_stays_on_disk(tmp_path, monkeypatch, held, caplog):
    for module in ("bad_rows", "readers", "data_files"):
        monkeypatch.setattr(f"textmill.data.{module}.KEPT", 3)
    monkeypatch.setattr("textmill.data.text_pairs.HELD_BYTES", held)
    file = tmp_path / "pairs.tsv"
    file.write_text("a\tb\n" * 20 + "no tab\n" * 9)
    for _ in range(2):  # the second time an index is there
        pairs = TextPairs.Config(path=file, max_bad_rows=9).build().read()
        assert (pairs.count.good, pairs.count.bad, pairs.count.total) == (20, 9, 29)
        assert [row.line for row in pairs.bad_rows] == [21, 22, 23]
    assert "9 of the 29 rows of" in caplog.text
    assert "Of the 9 bad rows the first 3 are kept." in caplog.messages
    with pytest.raises(DataError, match=r"^9 of 29 rows are bad, and 8 are allowed:") as caught:
        TextPairs.Config(path=file, max_bad_rows=8).build().read()
    assert str(caught.value).splitlines()[-2:] == [
        "  ... and 6 more",
        "Correct the file, or leave such rows out with train_data.max_bad_rows=9.",
    ]

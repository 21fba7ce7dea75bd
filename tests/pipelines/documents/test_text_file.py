"""Text files are read as they are written, or refused with what is wrong."""

from pathlib import Path

import pytest

from textmill.errors import DataError
from textmill.pipelines.documents import DocumentError, find_references, read_text


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "refs.txt").write_bytes("\ufeffKnuth, D. 1984.\r\n\nÉtienne, A. 1999.".encode())
    document = read_text(tmp_path / "refs.txt")
    assert document.text == "Knuth, D. 1984.\n\nÉtienne, A. 1999."
    assert document.pages == 1


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found a PDF"):
        read_text(b"%PDF-1.7\n")
    with pytest.raises(DocumentError, match=r"refs\.txt: line 2 is not UTF-8"):
        read_text("fine\nCafé".encode("latin-1"), name="refs.txt")
    with pytest.raises(DocumentError, match="missing"):
        read_text(tmp_path / "none.txt")


def test_references_of_a_text_are_split_by_its_blank_lines() -> None:
    text = "\n".join(
        [
            "1 Introduction", "Words.", "", "References", "",
            "Dijkstra, E. W. 1968. Go to statement", "considered harmful. CACM 11.", "",
            "Hoare, C. A. R. 1962. Quick-", "sort. Computer Journal 5.", "",
            "Knuth, D. 1984. Literate programming. Computer Journal 27.", "",
        ]
    )  # fmt: skip
    found = [passage.text for passage in find_references(read_text(text.encode()))]
    assert [each[:8] for each in found] == ["Dijkstra", "Hoare, C", "Knuth, D"]
    assert "Quicksort" in found[1]

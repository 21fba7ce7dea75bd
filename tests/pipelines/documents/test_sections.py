"""Sections by what headings say and how they are set, references by what their lines say."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from textmill.pipelines.documents import (
    Document,
    Line,
    Passage,
    find_abstract,
    find_body,
    find_references,
)
from textmill.pipelines.documents.line_ends import join_lines, vocabulary_of
from textmill.pipelines.documents.page_layout import without_running_heads
from textmill.pipelines.documents.references import column_edges


def document(*texts: str | Line) -> Document:
    """Lines of a column of 300 points; a text that begins with spaces is indented by them."""
    lines = list[Line]()
    for number, text in enumerate(texts):
        if isinstance(text, Line):
            lines.append(text)
            continue
        x0 = 5.0 * (len(text) - len(text.lstrip()))
        x1 = x0 + 5 * len(text.strip())
        lines.append(Line(text.strip(), x0=x0, x1=x1, y=12.0 * number, size=10, right=300))
    return Document("paper.pdf", 1, lines)


def texts(found: Sequence[Passage]) -> list[str]:
    return [passage.text for passage in found]


KNUTH, GRIES, HOARE = (
    "Knuth, D. 1984. Literate programming. Computer Journal 27.",
    "Gries, D. 1981. The science of programming. Springer.",
    "Hoare, C. A. R. 1962. Quicksort. Computer Journal 5.",
)


@pytest.mark.parametrize(
    "heading",
    [
        "References", "REFERENCES", "References:", "7. References", "VII. REFERENCES",
        "R EFERENCES", "R E F E R E N C E S", "Bibliography", "Literature Cited",
        "References and Notes", "Main References",
        "Literaturverzeichnis", "Références bibliographiques", "Referencias", "参考文献",
        "Литература",
    ],
)  # fmt: skip
def test_a_heading_says_what_is_below(heading: str) -> None:
    paper = document("We cite much.", heading, GRIES, HOARE, KNUTH)
    assert texts(find_references(paper)) == [GRIES, HOARE, KNUTH]


@pytest.mark.parametrize(
    "after",
    ["Appendix", "A. Appendix", "Appendix B: Proofs", "Acknowledgments", "Author Biographies",
     "Supplementary Material", "NeurIPS Paper Checklist"],
)  # fmt: skip
def test_another_section_ends_it(after: str) -> None:
    paper = document("References", GRIES, HOARE, KNUTH, after, "More is said in 1999, and in 2001.")
    assert texts(find_references(paper)) == [GRIES, HOARE, KNUTH]


def test_a_heading_set_like_that_of_the_references_ends_it() -> None:
    large = Line("References", y=-24, size=12, bold=True)
    other = Line("B Proofs of 1984", y=60, size=12, bold=True)
    paper = document(large, GRIES, HOARE, KNUTH, other, "It holds.")
    assert texts(find_references(paper)) == [GRIES, HOARE, KNUTH]


def test_a_table_of_contents_is_no_list_of_references() -> None:
    paper = document(
        "Contents", "1 Introduction", "2 Method", "References", "Appendix", "1 Introduction",
        "We begin.", "References", GRIES, HOARE, "Appendix", "It ends.",
    )  # fmt: skip
    assert texts(find_references(paper)) == [GRIES, HOARE]


def test_the_last_word_of_a_paragraph_is_no_heading() -> None:
    paper = document("We cite what [1] and [2] and others say in the", "literature.", GRIES)
    assert find_references(paper) == []
    assert "literature." in find_body(paper).text


def test_each_part_may_have_its_references() -> None:
    paper = document("References", "[1] A. 1999.", "[2] B. 2000.", "Appendix", "More.",
                     "References", "[1] C. 2001.", "[2] D. 2002.")  # fmt: skip
    assert texts(find_references(paper)) == ["A. 1999.", "B. 2000.", "C. 2001.", "D. 2002."]


def test_labels_without_a_heading_are_found() -> None:
    paper = document("We cite [1].", "[1] A. 1999.", "[2] B, in", "[12] of", "[3] C. 2001.")
    assert texts(find_references(paper)) == ["A. 1999.", "B, in [12] of", "C. 2001."]


def test_labels_without_a_heading_are_found_beside_another_text() -> None:
    beside = [Line(f"It says much, line {n}.", y=12.0 * n, size=10, column=1) for n in range(45)]
    first = [Line(f"[{n}] A. {1990 + n}.", y=300 + 12.0 * n, size=9) for n in (1, 2, 3)]
    others = [Line(f"[{n}] B. {1990 + n}.", 2, y=12.0 * n, size=9) for n in range(4, 15)]
    paper = document("We end.", *first, *beside, *others)
    assert texts(find_references(paper))[:4] == ["A. 1991.", "A. 1992.", "A. 1993.", "B. 1994."]


def test_a_line_of_another_size_goes_on_in_its_reference() -> None:
    paper = document("References", "[1] Knuth, D. 1984. At", *smaller("http://a.org/b.", 24),
                     "[2] Lee, K. 1999.", *smaller("A footnote of 1999.", 80))  # fmt: skip
    assert texts(find_references(paper)) == ["Knuth, D. 1984. At http://a.org/b.", "Lee, K. 1999."]


def smaller(text: str, y: float) -> list[Line]:
    return [Line(text, x1=100, y=y, size=7, right=300)]


def test_what_white_divides_from_the_list_is_no_reference() -> None:
    lines = [Line(f"[{n}] A. {1990 + n}.", y=12.0 * n, size=10) for n in range(1, 9)]
    names = [Line(f"A. Author{n}, B. Author{n}", 2, y=12.0 * n, size=10) for n in range(40)]
    paper = document(Line("References", size=10), *lines, *names)
    assert texts(find_references(paper))[-1] == "A. 1998."


def test_labels_of_letters_are_labels() -> None:
    paper = document(
        "References", "[Gri81] D. Gries. The", "science. 1981.", "[Knu84] D. Knuth. 84."
    )
    found = find_references(paper)
    assert [passage.label for passage in found] == ["[Gri81]", "[Knu84]"]
    assert texts(found) == ["D. Gries. The science. 1981.", "D. Knuth. 84."]


def test_a_missing_label_does_not_end_the_list() -> None:
    lines = [f"[{n}] Author {n}. {1990 + n}." for n in range(1, 9)]
    lines[4] = "   which is long"
    found = find_references(document("References", *lines))
    assert [passage.label for passage in found] == ["[1]", "[2]", "[3]", "[4]", "[6]", "[7]", "[8]"]


def test_labels_that_a_scan_misread_are_found_by_where_they_stand() -> None:
    labels = ["[1]", "[2]", "[3]", "[4]", "[S]", "(6J", "[7]", "[8]"]
    lines = list[Line]()
    for n, label in enumerate(labels, 1):
        lines.append(Line(f"{label} Author {n}, in", x1=90, y=24.0 * n, size=10, second=15))
        lines.append(Line("J. of 1999.", 1, x0=15, x1=60, y=24.0 * n + 12, size=10, second=25))
    found = find_references(document(Line("References", size=10), *lines))
    assert texts(found) == [f"Author {n}, in J. of 1999." for n in range(1, 9)]
    assert [passage.label for passage in found] == [f"[{n}]" for n in range(1, 9)]


def test_years_and_pages_that_begin_a_line_are_no_labels() -> None:
    paper = document("References", "1. Gries, D.: Science.", "2. of it. Springer (1981)",
                     "2. Hoare, A.: Quicksort. Vol.", "3. Oxford (1962)",
                     "3. Knuth, D. (1984)")  # fmt: skip
    assert [passage.label for passage in find_references(paper)] == ["1.", "2.", "3."]


def test_a_dash_stands_for_the_authors_before() -> None:
    paper = document("References", "Knuth, D. 1968. The art of computer programming,",
                     "   volume 1. Addison.", "———. 1984. The TeXbook.", "   Addison.",
                     "Lamport, L. 1986. LaTeX.")  # fmt: skip
    assert [text[:5] for text in texts(find_references(paper))] == ["Knuth", "———. ", "Lampo"]


def test_a_caption_that_floats_in_the_list_is_left_out() -> None:
    far = Line("[2] B. 2000.", y=200, size=10, right=300)
    paper = document("References", "[1] A. 1999.", "Figure 3: What it says", "in 1999.", far)
    assert texts(find_references(paper)) == ["A. 1999.", "B. 2000."]


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("of represen-", "tations", "of representations"),
        ("a self-", "supervised one", "a self-supervised one"),
        ("the Springer-", "Verlag", "the Springer-Verlag"),
        ("pp. 123-", "130", "pp. 123-130"),
        ("pp. 123–", "130", "pp. 123–130"),
        ("an end-", "to-end one", "an end-to-end one"),
        ("a finite-", "state one", "a finite-state one"),
        ("to ex-", "tract it", "to extract it"),
        ("state-of-", "the-art", "state-of-the-art"),
        ("short-", "and long-term", "short- and long-term"),
        ("without in-", "terventions", "without interventions"),
        ("IN-", "TRODUCTION", "INTRODUCTION"),
        ("soft\u00ad", "ware", "software"),
        ("https://doi.org/10.1145/", "3292500", "https://doi.org/10.1145/3292500"),
        ("http://a.org/some-", "thing.pdf", "http://a.org/some-thing.pdf"),
        ("doi:10.1000/123.", "1999.", "doi:10.1000/123. 1999."),
        ("In 1999. doi:10.1000/123.", "456.", "In 1999. doi:10.1000/123.456."),
        ("at http://a.org.", "Accessed in May", "at http://a.org. Accessed in May"),
        ("中文", "参考", "中文参考"),
    ],
)
def test_line_ends_are_mended(first: str, second: str, whole: str) -> None:
    lines = [Line(first), Line(second)]
    assert join_lines(lines, vocabulary_of(lines)).text == whole


def test_a_hyphen_stays_where_the_compound_is_seen_elsewhere() -> None:
    seen = "We see co-training and cooperation."
    assert find_body(document(seen, "and co-", "training")).text.endswith("and co-training")
    assert find_body(document(seen, "and co-", "operation")).text.endswith("and cooperation")


def test_an_abstract_is_found_with_and_without_a_heading() -> None:
    text = "We show that it is so, and how. " * 8
    run_in = document("A Title", f"Abstract—{text}", "Keywords: it", "1 Introduction", "It is.")
    assert find_abstract(run_in).text == text.strip()
    without = document(
        Line("A Title", size=14), Line(text, y=50, size=10, x1=300, right=300), "1 Introduction"
    )
    assert find_abstract(without).text == text
    assert find_abstract(document("No heading", "1 Introduction", "It is.")) is None


def test_the_body_has_no_headings_captions_and_references() -> None:
    bold = Line("2 Method", y=40, size=12, bold=True)
    paper = document("A Title", "Abstract", "In short.", "1 Introduction", "We begin.", bold,
                     Line("Figure 1: A plot", y=80, size=10), Line("We do.", y=110, size=10),
                     "References", GRIES)  # fmt: skip
    assert find_body(paper).text == "We begin.\n\nWe do."


def test_an_empty_document_has_nothing() -> None:
    empty = document()
    assert (find_references(empty), find_abstract(empty), find_body(empty).text) == ([], None, "")


@pytest.mark.parametrize("base", range(200, 280, 10))
def test_of_numbers_at_both_ends_of_a_line_the_first_counts_first(base: int) -> None:
    """Not that which a set of them gives first, which is another one in each process."""
    pages = []
    for page, word in enumerate(("one", "two", "three", "four", "five", "six"), 1):
        own, other, third = page + 100, page + base, page + base + 500
        top, bottom = f"{own} {word} {other}", f"{third} end of {word}"
        if page == 1:
            top, bottom = f"{own} {word}", f"{other} end of {word} {third}"
        texts = [top, *(f"{word} line {word * n}" for n in range(1, 9)), bottom]
        pages.append([Line(text, page, y=12.0 * n) for n, text in enumerate(texts)])
    kept = [line.text for line in without_running_heads(pages) if line.text[0].isdigit()]
    assert kept == [lines[-1].text for lines in pages[1:]]


def test_what_stands_beside_any_number_of_a_page_is_a_head() -> None:
    words = ("one", "two", "three")
    pages = [
        [
            *(Line(str(page), page, y=y) for y in (0, 200)),
            *(Line(f"{side} {word}", page, y=y + 0.5) for side, y in (("a", 0), ("b", 200))),
            *(Line(f"Said {word * n}", page, y=12.0 * n) for n in range(3, 12)),
        ]
        for page, word in enumerate(words, 1)
    ]
    assert {line.text[:5] for line in without_running_heads(pages)} == {"Said "}


LONG = 5_000
"""Characters. A search that is quadratic in them takes seconds."""


@pytest.mark.parametrize(
    "unit",
    ["x", "1", "-", ".", "x-", "x'", "x. ", "X. ", "Mc", "Mc ", "de ", "D'", "/", "/ ", "//x ", "#",
     "http://", "http:// ", "www.x ", "10.1000/", "10.1000 ", "[1] ", "(", "'", "1.", "1-", "a.b",
     "page ", "19 ", "Smith, J. ", "Smith-", "é", "中"],
)  # fmt: skip
def test_a_long_line_takes_no_more_than_its_length(unit: str) -> None:
    line = (unit * (LONG // len(unit))).strip()
    start = time.process_time()
    for end in (" x", "-", " ("):
        paper = document("Abstract", line + end, "It is. " + line, "References", line + end, line)
        assert find_body(paper) is not None
        found = document("References", "[1] Knuth, D. 1984.", line + end, line, "[2] Lee. 1999.")
        assert len(find_references(found)) == 2
        found = document("References", "Knuth, D. 1984.", line + end, line, "Lee, K. 1999.")
        assert find_references(found)
        without_running_heads([paper.lines, [replace(each, page=2) for each in paper.lines]])
    assert time.process_time() - start < 0.8


def test_many_lines_take_no_more_than_their_number() -> None:
    start = time.process_time()
    lines = [Line("[1] Knuth 1984", n // 4 + 1, y=7.0 * (n // 4), size=9) for n in range(8_000)]
    assert find_references(Document("a", 2_000, lines)) == []
    without_running_heads([lines[n : n + 4] for n in range(0, len(lines), 4)])
    column_edges(lines)
    column_edges([replace(line, page=n // 8, x0=n // 8) for n, line in enumerate(lines)])
    assert time.process_time() - start < 3

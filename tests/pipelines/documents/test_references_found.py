"""Papers made at random give back their references."""

import re

import pytest

from tests.pipelines.documents.layouts import HELD_BACK, NEVER_MENDED, WRITTEN_AGAINST
from tests.pipelines.documents.paper_pdf import paper
from tests.pipelines.documents.references_found import letters, measure
from textmill.pipelines.documents import find_abstract, find_body, find_references, read_pdf

UNSEEN = {**HELD_BACK, **NEVER_MENDED}
QUICK = [
    "conference, by author, 2 col.",
    "journal, numbered, 2 col.",
    "preprint, by author, 1 col.",
]


@pytest.mark.parametrize("name", QUICK)
def test_references_are_found_and_split_exactly(name) -> None:
    score = measure(WRITTEN_AGAINST[name], range(1))
    assert score.share >= 90  # of 30; over many seeds below
    assert score.split_share == 100


@pytest.mark.slow
@pytest.mark.parametrize("layout", WRITTEN_AGAINST.values(), ids=WRITTEN_AGAINST)
def test_references_are_found_over_many_seeds(layout) -> None:
    assert measure(layout, range(100, 120)).share >= 95


@pytest.mark.slow
@pytest.mark.parametrize("layout", UNSEEN.values(), ids=UNSEEN)
def test_references_are_found_in_layouts_that_no_rule_was_written_against(layout) -> None:
    assert measure(layout, range(100, 110)).share >= 95


def test_labels_and_pages_are_told() -> None:
    made = paper(WRITTEN_AGAINST["conference, numbered, 2 col."], seed=5)
    found = find_references(read_pdf(made.content))
    assert [each.label for each in found] == [f"[{n}]" for n in range(1, 31)]
    pages = [each.page_of(0) for each in found]
    assert pages == sorted(pages)
    assert pages[-1] == found[-1].page_of(len(found[-1].text)) == made.pages


def test_running_heads_and_page_numbers_are_no_lines() -> None:
    made = paper(WRITTEN_AGAINST["journal, by author, 2 col."], seed=5)
    document = read_pdf(made.content)
    assert document.pages == made.pages
    assert "A. Author et al." not in document.text
    assert not re.search(r"^\d+$", document.text, re.MULTILINE)


@pytest.mark.parametrize("name", ["conference, numbered, 2 col.", "preprint, by author, 1 col."])
def test_abstract_and_body_are_found(name) -> None:
    made = paper(WRITTEN_AGAINST[name], seed=6)
    document = read_pdf(made.content)
    abstract, body = find_abstract(document), find_body(document)
    assert abstract is not None
    assert abstract.text == made.abstract
    assert abstract.page_of(0) == 1
    assert letters(body.text) == letters("".join(made.body))
    paragraphs = set(body.text.split("\n\n"))
    assert len(paragraphs & set(made.body)) >= 0.6 * len(made.body)

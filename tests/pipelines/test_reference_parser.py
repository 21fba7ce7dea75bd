"""Reference strings to fields: tags as ParsCit writes them, fields without what divides them."""

from dataclasses import replace

import pytest

from tests.pipelines.small_models import REFERENCES, reference_run, tags_in
from tests.pipelines.small_paper import paper
from textmill.pipelines import ReferenceParser
from textmill.pipelines.given_text import PlacedSpan
from textmill.pipelines.reference_parser import ParsedReference, field_text


@pytest.fixture(scope="module")
def parser():
    return ReferenceParser(reference_run(), device="cpu")


@pytest.mark.parametrize(
    "label", ["[12]", "(3)", "7.", "7)", "[Lee99]", "[Lee et al., 1999]", None]
)
def test_a_label_that_a_reference_begins_with_is_no_field(parser, label, tmp_path):
    plain = parser(REFERENCES[0][0])
    text = f"{label or ''}  {plain.text}"
    (tmp_path / "list.txt").write_text(f"{text}\n")
    for found in (parser(text), *parser.predict(tmp_path / "list.txt")):
        assert (found.label, found.text) == (label, text)
        assert (found.tokens, found.tags, found.fields) == (plain.tokens, plain.tags, plain.fields)
        assert [text[span.start : span.end] for span in found.spans] == [
            str(span) for span in plain.spans
        ]


@pytest.mark.parametrize("begins", ["1984.", "[1984]", "(1984)", "12", "2001:", "3.5", "[Anon.]"])
def test_a_year_or_a_number_of_a_title_is_no_label(parser, begins):
    found = parser(f"{begins} A. Lee.")
    assert (found.label, found.tokens[0]) == (None, begins)


def test_what_was_learnt_is_found(parser):
    for text, tags in REFERENCES:
        found = parser(text)
        assert [*found.tokens] == text.split()
        assert [*found.tags] == tags_in(tags)
        assert found.score == min(found.scores)


def test_fields_are_marked_and_named(parser):
    found = parser("A. Lee.  Deep\tnets. Journal of Learning, 1999.")
    assert (
        found.tagged_text
        == str(found)
        == (
            "<author>A. Lee.</author> <title>Deep nets.</title> "
            "<journal>Journal of Learning,</journal> <date>1999.</date>"
        )
    )
    fields = {"author": "A. Lee.", "title": "Deep nets", "journal": "Journal of Learning"}
    assert found.fields == {**fields, "date": "1999"}
    assert [(span.kind, span.start, span.end) for span in found.spans] == [
        ("author", 0, 7), ("title", 9, 19), ("journal", 20, 40), ("date", 41, 46),
    ]  # fmt: skip
    volume = PlacedSpan(kind="volume", text="32(6):67\u201371,", start=0, end=12, score=1.0)
    glued = ParsedReference(text="32(6):67\u201371,", spans=(volume,))
    assert glued.fields == {"volume": "32(6)", "pages": "67\u201371"}
    with_year = replace(glued, spans=(replace(volume, text="2012;32(6):67\u201371."),))
    assert with_year.fields == {**glued.fields, "date": "2012"}
    assert ParsedReference(text="...", spans=(replace(found.spans[0], text="..."),)).fields == {}


def test_the_references_of_a_paper_have_labels_and_pages(parser):
    found = parser.predict_bytes("paper.pdf", paper())
    assert [(one.label, one.page, one.text) for one in found] == [
        (f"[{number}]", 2, text) for number, (text, _) in enumerate(REFERENCES, 1)
    ]
    assert found[0].row()["label"] == "[1]"
    assert {span.page for one in found for span in one.spans} == {2}


def test_a_longer_reference_than_the_model_takes_has_an_error(parser):
    (found,) = parser.predict("word " * 600)
    assert "more tokens than the model takes" in found.error
    assert found.row().keys() == {"text", "error"}


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("date", "(1994).", "1994"),
        ("date", "[May 1993],", "May 1993"),
        ("title", "\u201cOf mice.\u201d", "Of mice"),
        ("title", "Nets (and trees).", "Nets (and trees)"),
        ("title", "(a) and (b)", "(a) and (b)"),
        ("author", "Lee, A. B.,", "Lee, A. B."),
        ("booktitle", "In: Proc. of Trees,", "Proc. of Trees"),
        ("booktitle", "Insects,", "Insects"),
        ("container-title", "In Proc. of Trees,", "Proc. of Trees"),
        ("journal", "Phys. Rev.,", "Phys. Rev."),
        ("title", "Trees. Nets.", "Trees. Nets"),
        ("url", "<https://example.org/a>.", "https://example.org/a"),
        ("doi", "doi: 10.1/x.", "10.1/x"),
        ("pages", "pages 393-397,", "393-397"),
        ("pages", "p.3", "3"),
        ("volume", "vol. 5 (1),", "5 (1)"),
        ("note", ".,;", ""),
        ("note", "(", "("),
    ],
)
def test_a_field_has_no_punctuation_of_its_neighbours(kind, text, found):
    assert field_text(kind, text) == found

"""Summaries: sentences with their places, what is read of a PDF, and of what is too long."""

import pytest

from tests.pipelines.small_models import extracts_run, written_summaries_run
from tests.pipelines.small_paper import paper
from textmill.errors import UserError
from textmill.pipelines import Summarizer

TEXT = "It rains. It pours and pours. The sun is far away. Nobody knows why it is so."


@pytest.fixture(scope="module")
def extracts():
    return Summarizer(extracts_run(), device="cpu")


@pytest.fixture(scope="module")
def writes():
    return Summarizer(written_summaries_run(), device="cpu")


def test_a_summary_by_sentences_says_where_they_stand():
    found = Summarizer(extracts_run(), sentences=2, device="cpu")(TEXT)
    assert len(found.spans) == 2
    assert found.summary == str(found) == " ".join(span.text for span in found.spans)
    assert found.row()["spans"][0]["kind"] == "sentence"
    assert found.score == pytest.approx(sum(span.score for span in found.spans))


def test_the_abstract_is_summarized_or_the_body_or_both():
    texts = {
        part: Summarizer(extracts_run(), part=part, device="cpu").predict_bytes("p", paper())
        for part in ("abstract", "body", "all")
    }
    (abstract,), (body,), (both,) = texts.values()
    assert abstract.text == "It is new. We train on CIFAR-10."
    assert body.text.startswith("The DBLP data is old.")
    assert body.text.endswith("Nothing else is to be said of what is there. We train on CIFAR-10.")
    assert both.text == f"{abstract.text}\n\n{body.text}"


def test_a_text_that_is_too_long_is_summarized_by_its_first_sentences(extracts, writes):
    long = extracts(" ".join(f"Sentence {number} is here." for number in range(11)))
    assert long.left_out == long.row()["left_out"] == 3
    limit = writes.processor.limits["source"]
    sentence = "Word " * (limit // 20) + "end. "
    found = writes(sentence * 30)
    assert 10 <= found.left_out < 30
    assert "left_out" not in writes(TEXT).row()
    (alone,) = writes.predict("word" * limit)
    assert "longer than" in alone.error or "more than" in alone.error


def test_nothing_is_the_summary_of_nothing(extracts, writes):
    assert extracts("  \n ").summary == writes("  \n ").summary == ""


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match="part is 'title'; wanted one of abstract, body, all"):
        Summarizer(extracts_run(), part="title")
    with pytest.raises(UserError, match="sentences is 0; wanted 1 to 20"):
        Summarizer(extracts_run(), sentences=0)
    with pytest.raises(UserError, match="writes its summaries itself"):
        Summarizer(written_summaries_run(), sentences=2)

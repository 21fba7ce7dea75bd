"""Mentions of data sets: words as the training data has them, sentence by sentence, with pages."""

import io
import time

import pytest

from tests.pipelines.small_models import MENTIONS, REFERENCES, mentions_run, reference_run
from tests.pipelines.small_paper import paper
from textmill.errors import DataError, UserError
from textmill.pipelines import DatasetMentions, ReferenceParser
from textmill.pipelines.dataset_mentions import word_places

TEXT = "We train on CIFAR-10. It is new.\nThe DBLP\ndata is old. We train on CIFAR-10."


@pytest.fixture(scope="module")
def find():
    return DatasetMentions(mentions_run(), device="cpu")


def test_mentions_are_found_where_they_stand(find):
    found = find(TEXT)
    assert [(span.kind, span.text, span.start) for span in found.spans] == [
        ("dataset", "CIFAR-10", 12), ("dataset", "DBLP\ndata", 37), ("dataset", "CIFAR-10", 67),
    ]  # fmt: skip
    assert found.names == {"CIFAR-10": 2, "DBLP data": 1}
    assert str(found) == "CIFAR-10\nDBLP data"
    assert found.lines() == ["CIFAR-10", "DBLP data", "CIFAR-10"]


def test_a_sentence_is_asked_at_a_time_and_a_long_one_in_parts(find):
    rows = find.rows(find.predict(TEXT)[0])
    assert [row["words"] for row in rows[:2]] == [MENTIONS[0][0], MENTIONS[2][0]]
    (found,) = find.predict("word " * 450 + "CIFAR-10")
    assert found.error is None


def test_a_file_of_one_text_is_given_up_within_its_time(find):
    start = time.monotonic()
    with pytest.raises(DataError, match="The time for the file is over"):
        list(find.read(io.BytesIO(b"We use it. " * 50_000), "a file", seconds=0.5))
    assert time.monotonic() - start < 10


def test_mentions_of_a_paper_have_pages(find):
    (found,) = find.predict_bytes("paper.pdf", paper())
    assert [(span.text, span.page) for span in found.spans] == [
        ("CIFAR-10", 1), ("DBLP data", 1), ("CIFAR-10", 2),
    ]  # fmt: skip
    assert found.lines()[2] == "p. 2: CIFAR-10"


def test_a_model_whose_labels_mark_no_spans_is_refused():
    with pytest.raises(UserError, match="needs a model whose labels mark spans"):
        DatasetMentions(reference_run(), device="cpu")


def test_a_model_that_marks_more_than_data_sets_is_refused():
    fields = reference_run("task.scheme=io")
    with pytest.raises(UserError, match=r"alone; that of .* marks 5 kinds: author, booktitle,"):
        DatasetMentions(fields, device="cpu")
    assert ReferenceParser(fields, device="cpu")(REFERENCES[2][0]).fields["date"] == "1984"


def test_a_model_of_mentions_parses_no_references():
    with pytest.raises(UserError, match=r"labels are fields, .* are .*B.*model="):
        ReferenceParser(mentions_run(), device="cpu")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PASCAL-S, HKU-IS", "PASCAL - S , HKU - IS"),
        ("real-time 10-fold ImageNet-1k", "real - time 10-fold ImageNet-1k"),
        ("pages 393-397", "pages 393 - 397"),
        ("it's don't we\u2019re Adam's", "it 's do n't we \u2019re Adam 's"),
        ("(e.g. 1,000.5 of 60,000)...", "( e.g. 1,000.5 of 60,000 ) ..."),
        ("a/b x=3", "a / b x = 3"),
        ("", ""),
    ],
)
def test_words_are_those_of_the_training_data(text, words):
    assert [text[start:end] for start, end in word_places(text, 0, len(text))] == words.split()

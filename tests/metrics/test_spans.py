"""Spans are read and counted as seqeval did, whose words are recorded: it is maintained no more."""

import json
import math
from pathlib import Path

import pytest

from textmill.metrics.classification import Spans
from textmill.metrics.metric import MetricError
from textmill.text.features.tag_spans import tag_spans

RECORDED = json.loads((Path(__file__).parent / "recorded" / "seqeval.json").read_text("utf-8"))
CORPORA = [
    pytest.param(corpus, id=f"{corpus['scheme']}-{place}")
    for place, corpus in enumerate(RECORDED["corpora"])
]


def tags_of(sentences):
    return [sentence["tags"].split() for sentence in sentences]


@pytest.mark.parametrize("corpus", CORPORA)
def test_any_tags_are_read_as_seqeval_reads_them(corpus):
    for sentence in [*corpus["gold"], *corpus["predicted"]]:
        found = tag_spans(sentence["tags"].split(), corpus["scheme"])
        assert [list(span) for span in found] == sentence["spans"]


@pytest.mark.parametrize("corpus", CORPORA)
def test_scores_are_those_of_seqeval(corpus):
    metric = Spans(corpus["scheme"], kinds=["LOC", "PER", "_"])
    metric.update(tags_of(corpus["gold"]), tags_of(corpus["predicted"]))
    values = metric.compute()
    assert {name: values[name] for name in corpus["values"]} == pytest.approx(corpus["values"])


def test_sentences_never_run_together():
    metric = Spans()
    metric.update([["O", "B-PER"], ["I-PER", "O"]], [["O", "B-PER"], ["I-PER", "O"]])
    assert metric.tallies()["PER"].expected == 2
    assert metric.compute()["span_f1"] == metric.compute()["whole_sentence"] == 1.0


def test_kinds_that_were_not_declared_count_all_the_same():
    metric = Spans(kinds=["PER", "ORG"])
    metric.update([["B-PER", "B-LOC"]], [["B-PER", "B-PER"]])
    values = metric.compute()
    assert values["span_f1"] == 0.5
    assert values["span_macro_f1"] == pytest.approx((2 / 3 + 0) / 2)  # PER and LOC; no ORG
    assert math.isnan(values["label/ORG/f1"])
    assert (values["label/LOC/f1"], values["label/LOC/support"]) == (0, 1)
    assert [name for name in Spans().compute() if name.startswith("label/")] == []
    assert [*metric.tallies()] == ["PER", "ORG", "LOC"]


@pytest.mark.parametrize("tag", ["PER", "", "B-", "L-PER"])
def test_a_tag_of_no_scheme_adds_nothing(tag):
    metric = Spans()
    with pytest.raises(MetricError, match="scheme bio"):
        metric.update([["O"], ["O"]], [["B-PER"], [tag]])
    assert math.isnan(metric.compute()["whole_sentence"])


def test_of_bare_kinds_neighbours_of_one_kind_are_one_span():
    tags = ["author", "author", "O", "title", "author", "I-author"]
    assert tag_spans(tags, "io") == [("author", 0, 2), ("title", 3, 4), ("author", 4, 6)]


def test_iobes_is_bilou_by_other_letters():
    tags = ["B-x", "I-x", "E-x", "S-y", "S-y", "O"]
    bilou = [tag.replace("E-", "L-").replace("S-", "U-") for tag in tags]
    assert tag_spans(tags, "bilou") == tag_spans(bilou, "bilou")
    assert tag_spans(tags, "bilou") == [("x", 0, 3), ("y", 3, 4), ("y", 4, 5)]


def test_as_many_tags_as_tokens():
    with pytest.raises(MetricError, match="Sentence 2 of 2"):
        Spans().update([["O"], ["O", "O"]], [["O"], ["O"]])

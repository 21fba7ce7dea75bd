"""Spans are read and counted as seqeval did, whose words are recorded: it is maintained no more."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from textmill.metrics.metric import MetricError
from textmill.metrics.spans import Spans, read_spans

RECORDED = json.loads((Path(__file__).parent / "recorded" / "seqeval.json").read_text("utf-8"))
CORPORA = [
    pytest.param(corpus, id=f"{corpus['scheme']}-{place}")
    for place, corpus in enumerate(RECORDED["corpora"])
]


def tags_of(sentences: list[dict[str, Any]]) -> list[list[str]]:
    return [sentence["tags"].split() for sentence in sentences]


@pytest.mark.parametrize("corpus", CORPORA)
def test_any_tags_are_read_as_seqeval_reads_them(corpus: dict[str, Any]) -> None:
    for sentence in [*corpus["gold"], *corpus["predicted"]]:
        found = read_spans(sentence["tags"].split(), corpus["scheme"])
        assert [list(span) for span in found] == sentence["spans"]


@pytest.mark.parametrize("corpus", CORPORA)
def test_scores_are_those_of_seqeval(corpus: dict[str, Any]) -> None:
    metric = Spans(corpus["scheme"], kinds=["LOC", "PER", "_"])
    metric.update(tags_of(corpus["gold"]), tags_of(corpus["predicted"]))
    values = metric.compute()
    assert {name: values[name] for name in corpus["values"]} == pytest.approx(corpus["values"])


def test_sentences_never_run_together() -> None:
    metric = Spans()
    metric.update([["O", "B-PER"], ["I-PER", "O"]], [["O", "B-PER"], ["I-PER", "O"]])
    assert metric.tallies()["PER"].expected == 2
    assert metric.compute()["span_f1"] == metric.compute()["whole_sentence"] == 1.0


def test_kinds_that_were_not_declared_count_all_the_same() -> None:
    metric = Spans(kinds=["PER", "ORG"])
    metric.update([["B-PER", "B-LOC"]], [["B-PER", "B-PER"]])
    values = metric.compute()
    assert values["span_f1"] == 0.5
    assert values["span_macro_f1"] == pytest.approx((2 / 3 + 0) / 2)  # PER and LOC; no ORG
    assert math.isnan(values["label/ORG/f1"])
    assert (values["label/LOC/f1"], values["label/LOC/support"]) == (0, 1)
    assert [name for name in Spans().compute() if name.startswith("label/")] == []
    assert [line.split()[0] for line in metric.table().splitlines()[1:]] == ["PER", "ORG", "LOC"]


def test_sentences_without_spans_or_tokens() -> None:
    metric = Spans()
    metric.update([[]], [[]])
    values = metric.compute()
    assert values["whole_sentence"] == 1.0
    assert math.isnan(values["token_accuracy"])
    metric.update([["O", "O"]], [["O", "O"]])
    assert metric.compute()["token_accuracy"] == 1.0
    assert math.isnan(metric.compute()["span_f1"])


@pytest.mark.parametrize("tag", ["PER", "", "X-PER", "-", "B-", "b-PER", "L-PER", "BI-PER"])
def test_a_tag_of_no_scheme_adds_nothing(tag: str) -> None:
    metric = Spans()
    with pytest.raises(MetricError) as error:
        metric.update([["O"], ["O"]], [["B-PER"], [tag]])
    assert str(error.value) == (
        f"A tag of the scheme bio is O or B-KIND, I-KIND, but there is {tag!r}."
    )
    assert math.isnan(metric.compute()["whole_sentence"])


def test_of_bare_kinds_neighbours_of_one_kind_are_one_span() -> None:
    tags = ["author", "author", "O", "title", "author", "I-author"]
    assert read_spans(tags, "io") == [("author", 0, 2), ("title", 3, 4), ("author", 4, 6)]
    with pytest.raises(MetricError, match="scheme io is O or I-KIND, but there is ''"):
        read_spans([""], "io")


def test_iobes_is_bilou_by_other_letters() -> None:
    tags = ["B-x", "I-x", "E-x", "S-y", "S-y", "O"]
    bilou = [tag.replace("E-", "L-").replace("S-", "U-") for tag in tags]
    assert read_spans(tags, "bilou") == read_spans(bilou, "bilou")
    assert read_spans(tags, "bilou") == [("x", 0, 3), ("y", 3, 4), ("y", 4, 5)]


def test_a_kind_may_hold_a_dash() -> None:
    assert read_spans(["B-creative-work", "I-creative-work"])[0].kind == "creative-work"


def test_as_many_tags_as_tokens() -> None:
    with pytest.raises(MetricError) as error:
        Spans().update([["O"], ["O", "O"]], [["O"], ["O"]])
    assert str(error.value) == "Sentence 2 of 2 has 2 right tags, but 1 predicted ones."


def test_an_unknown_scheme() -> None:
    with pytest.raises(MetricError, match="one of bio, bilou, io, but is 'iob1'"):
        Spans("iob1")  # type: ignore[arg-type]

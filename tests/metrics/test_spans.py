import math
import random
import warnings

import pytest
from seqeval import metrics as oracle
from seqeval.metrics.sequence_labeling import get_entities

from weft.metrics.metric import MetricError
from weft.metrics.spans import Scheme, Spans, read_spans

TAGS: dict[Scheme, list[str]] = {
    "bio": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B", "I"],
    "bilou": [f"{mark}-{kind}" for mark in "BILU" for kind in ("PER", "LOC")] + ["O"],
    "io": ["O", "I-PER", "I-LOC", "I"],
}
AS_SEQEVAL = str.maketrans("LU", "ES")  # seqeval calls them E(nd) and S(ingle)


def renamed(tags: list[str]) -> list[str]:
    return [tag[0].translate(AS_SEQEVAL) + tag[1:] for tag in tags]


def sentences(scheme: Scheme, seed: int) -> list[list[str]]:
    chance = random.Random(seed)
    sizes = random.Random(seed // 2)  # seeds 2k and 2k + 1: the same sentence lengths
    return [chance.choices(TAGS[scheme], k=sizes.randint(1, 12)) for _ in range(15)]


@pytest.mark.parametrize("scheme", TAGS)
@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_any_tags_are_read_as_seqeval_reads_them(scheme: Scheme, seed: int) -> None:
    for tags in sentences(scheme, seed):
        found = [(kind, start, end - 1) for kind, start, end in read_spans(tags, scheme)]
        assert found == get_entities(renamed(tags))


@pytest.mark.parametrize("scheme", TAGS)
@pytest.mark.parametrize("seed", range(0, 10, 2))
def test_scores_are_those_of_seqeval(scheme: Scheme, seed: int) -> None:
    gold, predicted = sentences(scheme, seed), sentences(scheme, seed + 1)
    metric = Spans(scheme, kinds=["LOC", "PER", "_"])
    metric.update(gold, predicted)
    values = metric.compute()
    theirs = [renamed(tags) for tags in gold], [renamed(tags) for tags in predicted]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval warns of what it divides by zero
        assert values["span_precision"] == pytest.approx(oracle.precision_score(*theirs))
        assert values["span_recall"] == pytest.approx(oracle.recall_score(*theirs))
        assert values["span_f1"] == pytest.approx(oracle.f1_score(*theirs))
        macro = oracle.f1_score(*theirs, average="macro")
        report = oracle.classification_report(*theirs, output_dict=True)
    assert values["span_macro_f1"] == pytest.approx(macro)
    assert values["token_accuracy"] == pytest.approx(oracle.accuracy_score(*theirs))
    for kind in ("LOC", "PER"):
        of_kind = report[kind]
        assert values[f"label/{kind}/f1"] == pytest.approx(of_kind["f1-score"])
        assert values[f"label/{kind}/precision"] == pytest.approx(of_kind["precision"])
        assert values[f"label/{kind}/recall"] == pytest.approx(of_kind["recall"])
        assert values[f"label/{kind}/support"] == of_kind["support"]


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
    assert "label/LOC/f1" not in values
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


def test_a_kind_may_hold_a_dash() -> None:
    assert read_spans(["B-creative-work", "I-creative-work"])[0].kind == "creative-work"


def test_as_many_tags_as_tokens() -> None:
    with pytest.raises(MetricError) as error:
        Spans().update([["O"], ["O", "O"]], [["O"], ["O"]])
    assert str(error.value) == "Sentence 2 of 2 has 2 right tags, but 1 predicted ones."


def test_an_unknown_scheme() -> None:
    with pytest.raises(MetricError, match="one of bio, bilou, io, but is 'iob1'"):
        Spans("iob1")  # type: ignore[arg-type]

import math
import re

import pytest

from textmill.errors import DataError
from textmill.metrics.classification import micro
from textmill.metrics.frames import Frames, Node, Trees, read_tree
from textmill.metrics.metric import MetricError
from textmill.metrics.tables import labels_table


def intent(label, *slots, start=0, end=20):
    return Node(label, start, end, tuple(sorted(slots)))


def slot(label, start, end, *intents):
    return Node(label, start, end, intents)


def inner(*slots, end=5):
    return intent("intent2", *slots, start=1, end=end)


ONE, NESTED = (
    slot("slot1", 1, 2),
    intent("intent1", slot("slot1", 1, 5, inner(slot("slot2", 1, 2)))),
)

# Predicted, gold, and (TP, FP, FN) of bracket intents and slots, then of tree intents and slots:
# TEST_EXAMPLES of pytext/metrics/tests/intent_slot_metrics_test.py.
# fmt: off
PYTEXT = [
    (intent("intent1", ONE), intent("intent1", ONE), *[(1, 0, 0)] * 4),
    (intent("intent1"), intent("intent1", ONE), (1, 0, 0), (0, 0, 1), (0, 1, 1), (0, 0, 1)),
    (intent("intent1", ONE), intent("intent2", slot("slot2", 1, 2)), *[(0, 1, 1)] * 4),
    (intent("intent1", slot("slot1", 1, 3)), intent("intent1", slot("slot1", 2, 4)),
     (1, 0, 0), (0, 1, 1), (0, 1, 1), (0, 1, 1)),
    (intent("intent1", slot("slot1", 1, 3)), intent("intent1", slot("slot1", 6, 7)),
     (1, 0, 0), (0, 1, 1), (0, 1, 1), (0, 1, 1)),
    (intent("intent1", slot("slot2", 10, 12)),
     intent("intent1", slot("slot1", 6, 7), slot("slot2", 10, 12)),
     (1, 0, 0), (1, 0, 1), (0, 1, 1), (1, 0, 1)),
    (intent("intent1", slot("slot1", 2, 5), slot("slot2", 6, 10), slot("slot3", 11, 20)),
     intent("intent1", slot("slot1", 1, 11), slot("slot3", 11, 20)),
     (1, 0, 0), (1, 2, 1), (0, 1, 1), (1, 2, 1)),
    (intent("intent1", slot("slot1", 1, 10), slot("slot2", 11, 20)),
     intent("intent1", slot("slot1", 1, 10)), (1, 0, 0), (1, 1, 0), (0, 1, 1), (1, 1, 0)),
    (NESTED, NESTED, *[(2, 0, 0)] * 4),
    (intent("intent1", slot("slot1", 1, 5, inner(slot("slot2", 1, 2), slot("slot3", 4, 5)))),
     intent("intent1", slot("slot1", 1, 5)), (1, 1, 0), (1, 2, 0), (0, 2, 1), (0, 3, 1)),
    (intent("intent1", slot("slot2", 7, 10),
            slot("slot1", 1, 6, inner(slot("slot4", 4, 6), slot("slot3", 1, 2), end=6))),
     intent("intent1", slot("slot2", 7, 10),
            slot("slot1", 1, 5, inner(slot("slot3", 1, 2), slot("slot4", 4, 5)))),
     (1, 1, 1), (2, 2, 2), (0, 2, 2), (2, 2, 2)),
]
# fmt: on


def counted(pairs):
    metric = Trees()
    metric.add_trees([(gold, predicted) for predicted, gold in pairs])
    return metric


@pytest.mark.parametrize("example", range(len(PYTEXT)))
def test_the_confusions_of_pytext(example):
    predicted, gold, *expected = PYTEXT[example]
    metric = counted([(predicted, gold)])
    found = []
    for way in ("bracket", "tree"):
        for part in ("intent", "slot"):
            tally = micro(metric.tallies(way, part).values())
            false = (tally.predicted - tally.right, tally.expected - tally.right)
            found.append((tally.right, *false))
    assert found == expected


def test_the_scores_of_pytext():
    values = counted([(p, g) for p, g, *_ in PYTEXT]).compute()
    assert values["intent_accuracy"] == pytest.approx(10 / 11)
    assert values["frame_accuracy"] == pytest.approx(2 / 11)
    values = counted([(p, g) for p, g, *_ in PYTEXT[7:11]]).compute()
    expected = {
        "bracket/intent": (5 / 7, 5 / 6, 10 / 13),
        "bracket/slot": (6 / 11, 6 / 8, 12 / 19),
        "bracket/overall": (11 / 18, 11 / 14, 22 / 32),
        "tree/intent": (2 / 7, 2 / 6, 4 / 13),
        "tree/slot": (5 / 11, 5 / 8, 10 / 19),
        "tree/overall": (7 / 18, 7 / 14, 14 / 32),
        "slot": (6 / 11, 6 / 8, 12 / 19),
    }
    for name, scores in expected.items():
        found = [values[f"{name}_{of}"] for of in ("precision", "recall", "f1")]
        assert found == pytest.approx(scores)


def test_flat_frames():
    metric = Frames()
    metric.update(
        [("a", [("s", 0, 1), ("t", 2, 3)]), ("b", []), ("b", [])],
        [("a", {("t", 2, 3), ("s", 0, 1)}), ("b", [("s", 0, 1)]), ("a", [])],
    )
    values = metric.compute()
    assert values["intent_accuracy"] == pytest.approx(2 / 3)
    assert values["frame_accuracy"] == pytest.approx(1 / 3)
    assert (values["slot_precision"], values["slot_recall"]) == (2 / 3, 1.0)
    assert values["tree/slot_f1"] == values["bracket/slot_f1"] == values["slot_f1"] == 0.8


def test_any_text_may_be_predicted():
    metric = Trees()
    gold = ["[IN:A x [SL:B y ] ]"] * 4
    metric.update(gold, ["[IN:A x [SL:B y ] ]", "", "]]]][[[", "[IN:A x [SL:B y ]"])
    values = metric.compute()
    assert values["invalid_trees"] == 0.75
    assert values["intent_accuracy"] == values["frame_accuracy"] == 0.25
    assert (values["slot_precision"], values["slot_recall"]) == (1.0, 0.25)
    assert metric.tallies("bracket", "intent")["IN:INVALID_TREE"].predicted == 3


def test_trees_are_counted_by_the_depth_of_the_right_one():
    flat, slotted = "[IN:A x ]", "[IN:A x [SL:B y ] ]"
    deep = "[IN:A [SL:B [IN:A [SL:B [IN:A [SL:B x ] ] ] ] ] ]"
    metric = Trees()
    metric.update([flat, slotted, slotted, deep], [flat, slotted, "[IN:A x y ]", slotted])
    values = metric.compute()
    found = {
        depth: [
            values[f"depth/{depth}/{name}"]
            for name in ("num_examples", "frame_accuracy", "bracket_f1", "tree_f1")
        ]
        for depth in ("1", "2", "3", "5+")
    }
    assert found["1"] == [1, 1, 1, 1]
    # Of four intents and slots three are found: of brackets all are right, of trees two.
    assert found["2"] == [2, 0.5, pytest.approx(6 / 7), pytest.approx(4 / 7)]
    assert found["3"][0] == 0
    assert math.isnan(found["3"][2])
    assert found["5+"] == [1, 0, 0, 0]  # the spans of both are others
    assert "depth 2  50.0 %" in re.sub(" +", lambda m: m[0][:2], labels_table(values))


def test_a_right_parse_must_be_one():
    metric = Trees()
    with pytest.raises(
        MetricError, match=r"^Row 2 of 2: A tree is written .* 1 brackets stay open"
    ):
        metric.update(["[IN:A x ]", "[IN:A x"], ["[IN:A x ]", "[IN:A x ]"])
    assert repr(metric.compute()) == repr(Trees().compute())


def test_the_trees_of_pytext():
    # pytext/metric_reporters/tests/compositional_metric_reporter_test.py
    assert read_tree(
        "[IN:alarm/set_alarm  repeat the [SL:datetime 3 : 00 pm ] "
        "[SL:alarm/name alarm ]  [SL:datetime for Sunday august 12th ]  ] "
    ) == Node(
        "IN:alarm/set_alarm",
        0,
        49,
        (Node("SL:alarm/name", 21, 26), Node("SL:datetime", 11, 20), Node("SL:datetime", 27, 49)),
    )
    assert read_tree(
        "[IN:GET_DIRECTIONS I need [SL:ANCHOR directions] to [SL:DESTINATION "
        "[IN:GET_EVENT the jazz festival]]]"
    ) == Node(
        "IN:GET_DIRECTIONS",
        0,
        38,
        (Node("SL:ANCHOR", 7, 17), Node("SL:DESTINATION", 21, 38, (Node("IN:GET_EVENT", 21, 38),))),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("call mom", "'call' stands outside of the one outermost intent"),
        ("[SL:A x ]", "'[SL:A' stands outside of the one outermost intent"),
        ("[IN:A x ] [IN:B y ]", "'[IN:B' stands outside of the one outermost intent"),
        ("[IN:A [SL:B x ]", "1 brackets stay open"),
        ("[IN:A [IN:B x ] ]", "'[IN:B' stands where only [SL: or a word may"),
        ("[IN:A [SL:B [SL:C x ] ] ]", "'[SL:C' stands where only [IN: or a word may"),
        ("]", "']' stands outside of the one outermost intent"),
        ("[IN: x ]", "'[IN:' has no label"),
    ],
)
def test_what_is_no_tree_says_why(text, why):
    with pytest.raises(DataError, match=re.escape(why)):
        read_tree(text)


def test_a_hostile_text_costs_neither_stack_nor_patience():
    with pytest.raises(DataError, match=r"over 100 levels: .{180,230}$"):
        read_tree("[IN:A [SL:B " * 50_000)
    with pytest.raises(DataError):
        read_tree("[IN:A " + "[SL:B ] " * 20_000)


def test_every_parse_of_top_is_a_tree_over_its_words(shared_data):
    for line in (shared_data / "top-en" / "dev.tsv").read_text(encoding="utf-8").splitlines():
        _, text, parse = line.split("\t")
        assert read_tree(parse).end == len(" ".join(text.split()))

"""Labels that only evaluated rows have: wrong in every value, left out of the loss, said once.

The models know their rows by heart, so that the values can be counted by hand.
"""

import math

import pytest
import torch

from tests.tasks import test_classification as documents
from tests.tasks import test_intent_slots as joint
from tests.tasks import test_tagging as tagging
from tests.tasks.rows import evaluated, learn
from textmill.errors import DataError
from textmill.models.label_losses import BinaryCrossEntropy, CrossEntropyLoss

DOCUMENTS = documents.ROWS[:4]
LOSSES = {
    "auto": None,
    "weights": CrossEntropyLoss.Config(weights={"ham": 2.0}),
    "binary": BinaryCrossEntropy.Config(),
}


def by_heart(task, data, *, epochs=60):
    learn(task, task.batches(data, train=True, seed=1), epochs=epochs, lr=0.05)
    return task


def values_of(found, *names):
    return [pytest.approx(found.values[name]) for name in names]


@pytest.mark.parametrize("loss", LOSSES)
def test_one_label_a_text(loss):
    task = by_heart(
        documents.make(DOCUMENTS, loss=LOSSES[loss], rank_metrics=True),
        documents.Data(DOCUMENTS, batch_size=4),
    )
    unseen = [
        {"label": "eggs", "text": "win cash now"},
        {"label": "eggs", "text": "see you at home"},
        {"label": "toast", "text": "win cash now"},
    ]
    known = evaluated(task, documents.Data(DOCUMENTS))
    assert known.values["accuracy"] == 1
    found = evaluated(task, documents.Data([*DOCUMENTS, *unseen], batch_size=1))
    assert found.values["loss"] == pytest.approx(known.values["loss"], rel=1e-5)
    # By hand: ham is 2 of 3 given, 2 of 2 to find; spam 2 of 4, 2 of 2; eggs and toast 0 of 0.
    assert found.values["accuracy"] == found.values["micro_f1"] == 4 / 7
    names = [f"label/{label}/{of}" for label in ("ham", "spam") for of in ("precision", "recall")]
    assert values_of(found, *names) == [2 / 3, 1, 2 / 4, 1]
    assert values_of(found, "label/eggs/support", "label/toast/support") == [2, 1]
    assert found.remarks == known.remarks  # no advice to weigh what no answer can be
    assert values_of(found, "macro_precision", "macro_recall", "macro_f1") == [
        (2 / 3 + 2 / 4) / 4, (1 + 1) / 4, (4 / 5 + 4 / 6) / 4,
    ]  # fmt: skip
    # Gorodkin: 4 right of 7; given 3, 4; to find 2, 2, 2, 1.
    mcc = (4 * 7 - (3 * 2 + 4 * 2)) / math.sqrt((49 - 9 - 16) * (49 - 4 - 4 - 4 - 1))
    assert found.values["mcc"] == pytest.approx(mcc)
    # Of spam: 2 texts have it; of the 5 that have not, 2 are just as likely: half of a pair each.
    assert found.values["label/spam/roc_auc"] == pytest.approx((3 + 2 / 2) / 5)
    assert (
        task.notes[-1:]
        == [found.details["unseen_labels"]]
        == [
            "3 of 7 rows have a label in column 'label' that training has not seen "
            "('eggs' 2, 'toast' 1): "
            "they count as wrong, and are left out of the loss."
        ]
    )
    assert [row["prediction"] for row in found.rows[4:]] == ["spam", "ham", "spam"]


def test_several_labels_a_text():
    task = by_heart(
        documents.make(DOCUMENTS, multiple=True), documents.Data(DOCUMENTS, batch_size=4)
    )
    rows = [
        {"topics": "home, garden, roof", "text": "see you at home"},
        {"topics": "garden", "text": "win cash now"},
        {"topics": "money", "text": "cash cash cash for you"},
    ]
    found = evaluated(task, documents.Data(rows))
    # Given: home; money, time; money. To find: home, garden, roof; garden; money.
    assert values_of(found, "accuracy", "micro_precision", "micro_recall") == [1 / 3, 2 / 4, 2 / 5]
    # home 1, 1; money 1/2, 1; time 0, 0; garden 0, 0; roof 0, 0.
    assert values_of(found, "macro_precision", "macro_recall") == [(1 + 1 / 2) / 5, 2 / 5]
    assert found.details["unseen_labels"].startswith("2 of 3 rows have a label in column 'topics'")
    known = [
        {**row, "topics": topics} for row, topics in zip(rows, ("home", "", "money"), strict=True)
    ]
    alone = evaluated(task, documents.Data(known))
    assert found.values["loss"] == pytest.approx(alone.values["loss"])


TAGS = [
    {"words": "Ann met Bob Ray", "tags": "B-per O B-per I-per"},
    {"words": "Ann in Rome", "tags": "B-per O B-org"},
    {"words": "nobody", "tags": "B-org"},
]


@pytest.mark.parametrize("crf", [False, True])
def test_labels_of_words(crf):
    task = by_heart(tagging.make(model={"crf": crf}), tagging.Data(batch_size=9))
    found = evaluated(task, tagging.Data(TAGS, batch_size=1))
    # Given: per, per; per, loc; none. To find: per, per; per, org; org.
    assert values_of(
        found, "token_accuracy", "whole_sentence", "span_precision", "span_recall"
    ) == [6 / 8, 1 / 3, 3 / 4, 3 / 5]
    assert found.values["span_f1"] == pytest.approx(6 / 9)
    assert found.values["span_macro_f1"] == pytest.approx((1 + 0 + 0) / 3)  # of per, loc and org
    assert values_of(found, "label/per/f1", "label/loc/precision") == [1, 0]
    assert found.details["unseen_labels"].startswith("2 of 3 rows have a label in column 'tags'")
    batches = task.batches(tagging.Data(TAGS, batch_size=9), train=False, seed=1)
    (batch,) = batches
    task.module.eval()
    with torch.inference_mode():
        loss = task.validation_step(batch, batches.examples(batch)).loss
    assert loss.count == (4 if crf else 6)  # sentences without one; words that have none
    alone = evaluated(task, tagging.Data(TAGS[:1])).values["loss"]
    if crf:
        assert found.values["loss"] == pytest.approx(alone)
    assert math.isfinite(found.values["loss"])


def test_a_label_of_no_scheme_is_a_span_that_is_never_found():
    task = by_heart(tagging.make(), tagging.Data(batch_size=9))
    found = evaluated(task, tagging.Data([TAGS[0], {"words": "Rome fell", "tags": "loc O"}]))
    assert values_of(found, "token_accuracy", "span_precision", "span_recall") == [
        5 / 6, 2 / 3, 2 / 3,
    ]  # fmt: skip
    assert found.values["label/loc/support"] == 0


@pytest.mark.parametrize("crf", [False, True])
@pytest.mark.parametrize("form", ["tags", "spans"])
def test_intents_and_slots(form, crf):
    known = {"tags": joint.TAGS, "spans": joint.SPANS}[form]
    slots = {"tags": ["B-time I-time", "B-mood I-mood"], "spans": ["0:4:time", "0:4:mood"]}[form]
    task = by_heart(joint.make(known, crf=crf), joint.Data(known, batch_size=9))
    rows = [
        known[4],
        {"label": "weather", "text": "at 9", "slots": slots[0]},
        {"label": "alarm", "text": "at 9", "slots": slots[1]},
        {"label": "weather", "text": "at 9", "slots": slots[1]},
    ]
    found = evaluated(task, joint.Data(rows, batch_size=1))
    assert values_of(
        found, "intent_accuracy", "frame_accuracy", "slot_precision", "slot_recall"
    ) == [2 / 4, 1 / 4, 2 / 4, 2 / 4]
    assert found.values["bracket/overall_f1"] == pytest.approx(4 / 8)
    assert found.details["unseen_labels"].count("of 4 rows have a label in column") == 2
    assert "'label' that training has not seen ('weather' 2)" in found.details["unseen_labels"]
    assert "'slots' that training has not seen ('mood' 2)" in found.details["unseen_labels"]
    alone = evaluated(task, joint.Data(rows[:1])).values["loss"]
    assert found.values["loss"] == pytest.approx(alone), "of frames that training has"


# --- what stays an error ---------------------------------------------------------------------

NO_LABEL = r"^Row 1, column 'label': 'eggs' is no label. The 2 labels are 'ham', 'spam'\.$"
EGGS = [DOCUMENTS[0], {"label": "eggs", "text": "a"}]


def test_in_evaluated_rows_it_is_one_where_that_is_set():
    task = documents.make(unseen_labels="error")
    with pytest.raises(DataError, match=NO_LABEL):
        task.batches(documents.Data(EGGS), train=False, seed=1)
    words = tagging.make(unseen_labels="error")
    error = r"^Row 1, column 'tags': 'B-org' at 2 is no label. The 4 labels are 'B-per"
    with pytest.raises(DataError, match=error):
        words.batches(tagging.Data(TAGS), train=False, seed=1)

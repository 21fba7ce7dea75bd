"""Intents and slots: loss, frames, slots off words, answers with offsets, and what is refused."""

import itertools

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import UserError
from textmill.inference import Predictor
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import CharacterCnn, WordEmbedding
from textmill.models.tagger import IntentSlotModel
from textmill.tasks import evaluate
from textmill.tasks.intent_slots import IntentSlots
from textmill.text.features.labels import FittedLabels
from textmill.text.features.slots import FittedSlots
from textmill.text.features.spelling import FittedAffixes, FittedCharacters
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords

SPANS = [
    {"label": "alarm", "text": "Wake me at 8 on  Tuesday", "slots": "8:12:time,17:24:day"},
    {"label": "show", "text": "show Tuesday's notes", "slots": "5:12:day,15:20:noun"},
    {"label": "alarm", "text": "stop it", "slots": ""},
    {"label": "show", "text": "", "slots": ""},
    {"label": "alarm", "text": "at 9", "slots": "0:4:time"},
]
TAGS = [
    {"label": "alarm", "text": "Wake me at 8 on  Tuesday", "slots": "O O B-time I-time O B-day"},
    {"label": "show", "text": ["show", "Tuesday's", "notes"], "slots": ["O", "B-day", "B-noun"]},
    {"label": "alarm", "text": "stop it", "slots": "O O"},
    {"label": "show", "text": "", "slots": ""},
    {"label": "alarm", "text": "at 9", "slots": "B-time I-time"},
]

Data = data_of(TAGS, batch_size=3)


def make(rows=TAGS, *, crf=False, beside=False, ngrams=False, encoder=None, **settings):
    torch.manual_seed(0)
    form = "spans" if rows is SPANS else "tags"
    made = FittedCharacters.Config(column="text", min_count=1).build(train_data=rows)
    affixes = FittedAffixes.Config(column="text", min_count=1).build(train_data=rows)
    given = {
        "tokenizer": FittedWords.Config().build(train_data=rows),
        "labels": FittedLabels.Config().build(train_data=rows),
        "slots": FittedSlots.Config(format=form).build(train_data=rows),
        **({"characters": made, "affixes": affixes} if beside else {}),
        **({"ngrams": FittedNgrams.Config().build(train_data=rows)} if ngrams else {}),
    }
    module = IntentSlotModel.Config(
        embedding=WordEmbedding.Config(dim=12), character_cnn=CharacterCnn.Config(dim=4, filters=4),
        encoder=encoder or LstmEncoder.Config(hidden_dim=8), crf=crf, dropout=0.0,
    ).build(**given)  # fmt: skip
    return IntentSlots.Config(**settings).build(module=module, **given)


VARIANTS = {
    "softmax": {},
    "crf": {"crf": True},
    "characters and affixes": {"beside": True, "crf": True},
    "n-grams": {"ngrams": True},
    "spans": {"rows": SPANS},
    "transformer": {"encoder": SelfAttentionEncoder.Config(num_heads=2, ffn_dim=16, dropout=0.0)},
}


@pytest.fixture(params=VARIANTS)
def variant(request):
    rows = VARIANTS[request.param].get("rows", TAGS)
    return make(**VARIANTS[request.param]), rows


def test_it_learns_the_rows_by_heart(variant):
    task, rows = variant
    batches = task.batches(Data(rows, batch_size=9), train=True, seed=1)
    learn(task, batches, epochs=60, lr=0.03)
    found = evaluate(task, task.batches(Data(rows), train=False, seed=1))
    assert found.values["intent_accuracy"] == 1
    # Of five slots, that of "Tuesday" in "Tuesday's" is none that words can have.
    assert found.values["slot_f1"] == pytest.approx(0.8 if rows is SPANS else 1)
    assert found.values["frame_accuracy"] == pytest.approx(0.8 if rows is SPANS else 1)
    answers = Predictor(task)([{"text": row["text"]} for row in rows])
    assert [str(answer) for answer in answers] == [row["prediction"] for row in found.rows]
    first = answers[0]
    assert str(first) == "[alarm Wake me [time at 8 ] on [day Tuesday ] ]"
    assert [(s.label, s.text, s.start, s.end) for s in first.slots] == [
        ("time", "at 8", 8, 12),
        ("day", "Tuesday", 17, 24),
    ]
    assert all(0.5 < slot.score <= 1 for slot in first.slots)
    assert set(first.scores) == {"alarm", "show"}
    assert answers[3].slots == ()
    assert str(answers[3]) == "[show ]"


def test_a_linear_classifier_of_ngrams_knows_the_intents_before_the_first_step():
    task = make(ngrams=True)
    batches = task.batches(Data(), train=True, seed=1)
    before = batches.state_dict()
    assert not task.module.wide.table.any()
    assert "A linear classifier of intents is fitted to the n-grams of 5 rows." in task.initialize()
    assert batches.state_dict() == before, "training begins with the first row, too"
    answers = task.predict([{"text": row["text"]} for row in TAGS])
    right = [a.intent == row["label"] for a, row in zip(answers, TAGS, strict=True) if row["text"]]
    assert all(right)
    kept = {"wide.table", "wide.bias"}
    assert kept <= set(task.module.state_dict()), "it is saved"
    assert not kept & set(dict(task.module.named_parameters())), "and no step changes it"


def test_a_linear_classifier_of_ngrams_reads_a_bounded_part_of_batches_without_an_end(monkeypatch):
    monkeypatch.setattr("textmill.tasks.intent_slots.MOST_FITTED", 20)
    ready = list(make(ngrams=True).batches(Data(), train=True, seed=1))
    task = make(ngrams=True)

    class Endless:
        def __iter__(self):
            return itertools.cycle(ready)

    batches = task.batches(Endless(), train=True, seed=1)
    (line,) = [line for line in task.initialize() if "linear" in line]
    assert line == "A linear classifier of intents is fitted to the n-grams of 20 rows."
    assert len(next(iter(batches))["label"])


def test_the_loss_is_that_of_the_frame():
    task = make()
    (batch,) = task.batches(Data(batch_size=9), train=True, seed=1)
    intents, tags = task.scores(batch)
    expected = 0.0
    for row, (label, length) in enumerate(
        zip(batch["label"].tolist(), batch.lengths["words"].tolist(), strict=True)
    ):
        expected -= intents[row].log_softmax(0)[label].item()
        for place in range(length):
            expected -= tags[row, place].log_softmax(0)[batch["slots"][row, place]].item()
    assert task.training_step(batch).total.item() == pytest.approx(expected, rel=1e-5)


def test_slots_off_words_are_counted(caplog):
    note = (
        "1 of 5 slots in 'slots' do not begin and end with a word of their own, the first in row 1."
    )
    task = make(SPANS)
    batches = task.batches(Data(SPANS), train=True, seed=1)
    assert batches.details["off_words"].startswith(note)
    assert task.notes == [batches.details["off_words"]]
    assert note in caplog.text
    assert "off_words" not in make().batches(Data(), train=True, seed=1).details


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"model.dropout must be from 0 to below 1"):
        IntentSlotModel.Config(dropout=1.0)
    task = make()
    given = {k: task.text.ingredients[k] for k in ("tokenizer", "slots")}
    many = FittedLabels.Config(multiple=True).build(train_data=TAGS)
    with pytest.raises(UserError, match=r"A text has one intent: labels.multiple must be false"):
        IntentSlots.Config().build(module=task.module, labels=many, **given)
    other = FittedCharacters.Config(column="label").build(train_data=TAGS)
    given["labels"] = task.text.labels
    with pytest.raises(UserError, match=r"set characters.column=text"):
        IntentSlots.Config().build(module=task.module, characters=other, **given)

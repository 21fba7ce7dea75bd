"""Word tagging: padding is no word, exact loss and answers, spans with places, bad rows refused."""

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import UserError
from textmill.inference import Predictor
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.label_losses import BinaryCrossEntropy
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.tagger import Tagger
from textmill.tasks import evaluate
from textmill.tasks.tagging import WordTagging
from textmill.text.features.labels import FittedLabels
from textmill.text.features.spelling import FittedAffixes, FittedCharacters
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords, WordTokenizer
from textmill.training import Selection, Trainer
from textmill.training.run_setup import selection_for

ROWS = [
    {"words": "Ann met Bob Ray", "tags": "B-per O B-per I-per"},
    {"words": "nobody", "tags": "O"},
    {"words": ["Rome", "fell"], "tags": ["B-loc", "O"]},
    {"words": "Ann in Rome", "tags": "B-per O B-loc"},
    {"words": "", "tags": ""},
]
LSTM = LstmEncoder.Config(hidden_dim=6)

Data = data_of(ROWS, batch_size=3)


def make(rows=ROWS, *, model=None, characters=False, affixes=False, separator=None, **settings):
    torch.manual_seed(0)
    given = {
        "tokenizer": FittedWords.Config(columns=("words",)).build(train_data=rows),
        "labels": FittedLabels.Config(column="tags", multiple=True, separator=separator).build(
            train_data=rows
        ),
    }
    if characters:
        given["characters"] = FittedCharacters.Config(min_count=1).build(train_data=rows)
    if affixes:
        given["affixes"] = FittedAffixes.Config(min_count=1).build(train_data=rows)
    model = {"dropout": 0.0, "encoder": LSTM, **(model or {})}
    module = Tagger.Config(embedding=WordEmbedding.Config(dim=8), **model).build(**given)
    return WordTagging.Config(**settings).build(module=module, **given)


VARIANTS = {
    "softmax": {},
    "crf": {"model": {"crf": True}},
    "characters": {"characters": True, "model": {"crf": True}},
    "affixes": {"affixes": True},
    "self_attention": {
        "model": {"encoder": SelfAttentionEncoder.Config(num_heads=2, ffn_dim=16, dropout=0.0)}
    },
    "no encoder": {"model": {"encoder": AveragingEncoder.Config(word_dropout=0.0)}},
}


@pytest.fixture(params=VARIANTS)
def task(request):
    return make(**VARIANTS[request.param])


def test_it_learns_the_rows_by_heart(task):
    torch.manual_seed(0)
    batches = task.batches(Data(batch_size=9), train=True, seed=1)
    learn(task, batches, epochs=60, lr=0.05)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    assert found.values["loss"] < 0.05
    for name in ("span_f1", "token_accuracy", "whole_sentence", "label/loc/f1"):
        assert found.values[name] == 1, name
    answer = Predictor(task)("  Ann met\tBob  Ray")
    spans = [(span.kind, span.text, span.start, span.end) for span in answer.spans]
    assert spans == [("per", "Ann", 2, 5), ("per", "Bob  Ray", 10, 18)]
    assert answer.words == ("Ann", "met", "Bob", "Ray")
    assert answer.spans[1].score == min(answer.scores[2:])
    assert task.predict([{"words": ["Rome", "fell"]}])[0].words == ("Rome", "fell")
    row = task.answer_row(answer)
    assert row["prediction"] == "B-per O B-per I-per"
    assert row["spans"][0] == {
        "kind": "per", "text": "Ann", "start": 2, "end": 5, "score": round(answer.scores[0], 6)
    }  # fmt: skip


def test_labels_of_ready_batches_are_read_back_whatever_divides_them():
    rows = [{"words": "a b c", "tags": "first name|last name|O"}, {"words": "d", "tags": "O"}]
    task = make(rows, separator="|")
    ready = list(task.batches(Data(rows), train=True, seed=1))
    again = evaluate(task, task.batches(ready, train=False, seed=1))
    assert sorted(row["tags"] for row in again.rows) == [["O"], ["first name", "last name", "O"]]
    assert again.values == pytest.approx(
        evaluate(task, task.batches(Data(rows), train=False, seed=1)).values, nan_ok=True
    )


IOB1 = [
    *ROWS[:2],
    {"words": "", "tags": ""},
    {"words": "Ann met Bob Ray", "tags": "I-per O I-per B-per"},
    {"words": "met Rome", "tags": "O B-loc"},
]


def test_labels_that_no_answer_can_have_are_counted_and_named(caplog):
    task = make(IOB1, model={"crf": True})
    batches = task.batches(Data(IOB1), train=True, seed=1)
    note = (
        "2 steps from a label of 'tags' to the next break the labels' scheme, the first from the "
        "beginning to I-per in row 3. They are trained on, but no answer can have one. If they are "
        "right, as in IOB1, set model.constrained=false."
    )
    assert task.notes == caplog.messages == [note]
    assert batches.details == {"forbidden": note}
    bilou = [{"words": "a b", "tags": "O U-x"}, {"words": "a b", "tags": "O B-x"}]
    task = make(bilou, model={"crf": True})
    task.batches(Data(bilou), train=True, seed=1)
    assert "1 steps" in task.notes[0]
    assert "from B-x to the end in row 1" in task.notes[0]


def test_the_scheme_of_the_task_is_that_of_the_answers():
    free = make(IOB1, model={"crf": True}, scheme="none")
    assert free.head.crf.allowed.all()
    free.batches(Data(IOB1), train=True, seed=1)
    assert not free.notes
    assert make(IOB1, model={"crf": True}, scheme="io").head.crf.allowed.all()
    assert not make(model={"crf": True}, scheme="bio").head.crf.allowed.all()
    bilou = make(model={"crf": True}, scheme="bilou")
    answers = bilou.predict([{"words": row["words"]} for row in ROWS])
    assert {tag for answer in answers for tag in answer.tags} == {"O"}  # no label ends a span


@pytest.mark.parametrize(
    ("rows", "model", "train"),
    [
        (ROWS, {"crf": True}, True),
        (IOB1, {"crf": True}, False),
        (IOB1, {"crf": True, "constrained": False}, True),
        (IOB1, {}, True),
        ([{"words": "a b", "tags": "X Y"}], {"crf": True}, True),
    ],
    ids=["of the scheme", "evaluation", "free", "no field", "plain labels"],
)
def test_labels_that_an_answer_can_have_are_not_noted(rows, model, train, caplog):
    task = make(rows, model=model)
    task.batches(Data(rows), train=train, seed=1)
    assert [*task.notes] == caplog.messages == []


def test_no_word_has_no_label():
    for variant in VARIANTS.values():
        task = make(**variant)
        (answer,) = task.predict([{"words": "  "}])
        assert (answer.tags, answer.words, answer.spans, answer.score) == ((), (), (), 1.0)
        assert Predictor(task)([{"words": ""}, {"words": "Ann"}])[1].words == ("Ann",)
        (batch,) = task.batches(Data([ROWS[4]]), train=True, seed=1)
        loss = task.training_step(batch)
        assert (loss.total.item(), loss.count.item()) == (0, 0)


def test_a_batch_holds_the_characters_of_its_words():
    task = make(characters=True)
    (batch,) = task.batches(Data(batch_size=9), train=True, seed=1)
    assert batch["characters"].shape == (5, 4, len("nobody") + 2)
    assert batch.lengths["characters"].tolist() == batch.lengths["words"].tolist()
    place = batch.rows.tolist().index(0)
    known = task.text.inputs["characters"].feature.known
    spelled = batch["characters"][place, 3].tolist()
    assert [known[i - 4] for i in spelled if i >= 4] == ["R", "a", "y"]
    assert spelled[:1] + spelled[4:] == [2, 3, 0, 0, 0]


def test_plain_labels_are_counted_by_word_and_sentence():
    rows = [{"words": "a b c", "tags": "X X Y"}, {"words": "d", "tags": "Y"}]
    task = make(rows)
    found = evaluate(task, task.batches(Data(rows), train=False, seed=1))
    assert {"token_accuracy", "whole_sentence", "macro_f1", "label/X/f1"} <= set(found.values)
    assert "span_f1" not in found.values
    assert "spans" not in found.rows[0]
    gold = " ".join(row["tags"] for row in rows).split()
    given = " ".join(row["prediction"] for row in found.rows).split()
    right = sum(a == b for a, b in zip(gold, given, strict=True))
    assert found.values["token_accuracy"] == right / 4
    fields = make(rows, scheme="io")
    found = evaluate(fields, fields.batches(Data(rows), train=False, seed=1))
    assert {"span_f1", "token_accuracy", "whole_sentence", "macro_f1"} <= set(found.values)
    assert make(scheme="none").scheme is None


def test_spans_in_the_labels_are_what_the_best_weights_are_chosen_by():
    plain = [{"words": "a b c", "tags": "X X Y"}]
    iobes = [{"words": "a b c", "tags": "B-x E-x S-y"}]
    config = Trainer.Config(max_steps=1, selection=Selection.Config(metric="auto"))
    for rows, metric in ((ROWS, "span_f1"), (plain, "token_accuracy"), (iobes, "span_f1")):
        chosen = selection_for(config, make(rows))
        assert (chosen.config.metric, chosen.sign) == (metric, 1.0)
    assert selection_for(config, make(plain, scheme="io")).config.metric == "span_f1"
    assert selection_for(config, make(scheme="none")).config.metric == "token_accuracy"


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"task.loss is the loss of each word .* model.crf=true"):
        make(loss=BinaryCrossEntropy.Config(), model={"crf": True})
    plain = [{"words": "a", "tags": "X"}]
    with pytest.raises(UserError, match=r"task.scheme=bio needs labels .* The 1 labels are 'X'"):
        make(plain, scheme="bio")
    with pytest.raises(UserError, match=r"model.dropout must be from 0 to below 1"):
        Tagger.Config(dropout=1.0)
    given = {
        "tokenizer": FittedWords.Config(columns=("words",)).build(train_data=ROWS),
        "labels": FittedLabels.Config(column="tags", multiple=True).build(train_data=ROWS),
    }
    module = make().module
    one = FittedLabels.Config(names=("O", "B")).build(train_data=())
    with pytest.raises(UserError, match=r"labels of 'label' are one a row: set labels.multiple"):
        WordTagging.Config().build(module=module, **given | {"labels": one})
    letters = ByteTokenizer.Config().build()
    with pytest.raises(UserError, match=r"one id for each word and no other.*a ByteTokenizer\."):
        WordTagging.Config().build(module=module, **given | {"tokenizer": letters})
    marked = WordTokenizer.Config(words=("a",), marks=True).build()
    with pytest.raises(UserError, match="Found a WordTokenizer with marks"):
        WordTagging.Config().build(module=module, **given | {"tokenizer": marked})
    elsewhere = FittedCharacters.Config(column="tags").build(train_data=ROWS)
    with pytest.raises(UserError, match=r"set characters.column=words"):
        WordTagging.Config().build(module=module, **given, characters=elsewhere)
    elsewhere = FittedAffixes.Config(column="tags").build(train_data=ROWS)
    with pytest.raises(UserError, match=r"The affixes must be those .* set affixes.column=words"):
        WordTagging.Config().build(module=module, **given, affixes=elsewhere)


def test_a_list_is_several_texts_and_a_list_in_it_the_words_of_one():
    tagger = Predictor(make(characters=True))
    several = tagger(["Ann", "met Bob"])
    assert [answer.words for answer in several] == [("Ann",), ("met", "Bob")]
    given = tagger([["Ann"], ("met", "Bob"), "Ray", {"words": ["Ann", "met"]}])
    assert [answer.words for answer in given] == [
        ("Ann",), ("met", "Bob"), ("Ray",), ("Ann", "met"),
    ]  # fmt: skip
    assert given[:2] == several
    assert tagger({"words": ["met", "Bob"]}) == several[1] == tagger([["met", "Bob"]])[0]
    found = list(tagger.stream([["met", "Bob"], ["a b"]]))
    assert (found[0]["words"], found[0]["prediction"]) == (["met", "Bob"], str(several[1]))
    assert found[1]["error"] == (
        "column 'words': wanted a list of words without white space, found 'a b' at 0."
    )


def test_the_words_may_be_those_of_the_last_text_of_a_list():
    rows = [{"turns": ["hi", row["words"]], "tags": row["tags"]} for row in ROWS[:2]]
    given = {
        "tokenizer": FittedWords.Config(columns=("turns",)).build(train_data=rows),
        "labels": FittedLabels.Config(column="tags", multiple=True).build(train_data=rows),
    }
    task = WordTagging.Config(column="turns.-1").build(
        module=Tagger.Config().build(**given), **given
    )
    (answer,) = Predictor(task)([{"turns": ["hi", "Ann is here"]}])
    assert answer.words == ("Ann", "is", "here")

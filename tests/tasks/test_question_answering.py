"""Question answering: exact loss, windows, answers in the text as it is, bad rows refused."""

import math
from dataclasses import replace

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.readers.answer_spans import SpanScores
from textmill.models.readers.reader import DrqaReader, JoinedReader
from textmill.tasks import evaluate
from textmill.tasks.question_answering import QuestionAnswering
from textmill.text.features.spelling import FittedCharacters
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords

VIKING = "Rollo, a Viking, led the Normans (in 911)."
PARIS = "Paris is a city.  It is on the Seine."


def row(question, context, *answers):
    starts = [context.index(text) for text in answers]
    return {
        "question": question, "context": context, "answers": [*answers], "answer_starts": starts,
    }  # fmt: skip


ROWS = [
    row("Who led the Normans?", VIKING, "Rollo", "Rollo, a Viking"),
    row("When did Rollo lead them?", VIKING, "911"),
    row("What is Paris?", PARIS, "a city", "city"),
    row("Where is it?", PARIS, "on the Seine"),
]
NONE = row("How old is Paris?", PARIS)
EMPTY = row("Who?", "")
ALL = [*ROWS, NONE, EMPTY]
LSTM = LstmEncoder.Config(hidden_dim=6)
DRQA = DrqaReader.Config(
    embedding=WordEmbedding.Config(dim=8), encoder=LSTM, question_encoder=LSTM, dropout=0.0
)
JOINED = JoinedReader.Config(
    embedding=WordEmbedding.Config(dim=16),
    encoder=SelfAttentionEncoder.Config(num_heads=2, num_layers=1, ffn_dim=32, dropout=0.0),
    dropout=0.0,
)

Data = data_of(ALL, batch_size=3)


def make(model=DRQA, *, rows=ALL, characters=False, no_answer=True, words=None, **settings):
    torch.manual_seed(0)
    fitted = FittedWords.Config(columns=("question", "context"), split="punctuation")
    given = {"tokenizer": words or fitted.build(train_data=rows)}
    if characters:
        fitted = FittedCharacters.Config(column="context", min_count=1)
        given["characters"] = fitted.build(train_data=rows)
    module = replace(model, no_answer=no_answer).build(**given)
    return QuestionAnswering.Config(**settings).build(module=module, **given)


VARIANTS = {
    "drqa": {"model": DRQA},
    "characters": {"model": DRQA, "characters": True, "max_question_length": 4},
    "joined": {"model": JOINED},
    "windows": {"model": DRQA, "characters": True, "max_length": 6, "stride": 2},
    "pieces": {"model": DRQA, "words": ByteTokenizer.Config().build(), "characters": True},
    "joined windows": {"model": JOINED, "max_length": 6, "stride": 4},
}


QUICK = {"joined windows", "windows"}


@pytest.fixture(
    params=[pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in VARIANTS]
)
def task(request):
    return make(**VARIANTS[request.param])


def test_it_learns_the_rows_by_heart(task):
    torch.manual_seed(0)
    batches = task.batches(Data(batch_size=9), train=True, seed=1)
    learn(task, batches, epochs=90, lr=0.03)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    assert found.values["loss"] < 0.05
    for group in ("", "has_answer/", "no_answer/"):
        assert found.values[f"{group}exact_match"] == found.values[f"{group}f1"] == 1
    answer = Predictor(task)({"question": "Where is it?", "context": PARIS})
    assert (str(answer), answer.start, answer.end) == ("on the Seine", 24, 36)
    assert answer.score > 0.9
    none = Predictor(task)({"question": "How old is Paris?", "context": PARIS})
    assert (none.text, none.start, none.end) == ("", None, None)
    assert none.score == none.no_answer > 0.9


class Given(torch.nn.Module):
    """Scores that a test says, of contexts of up to 4 words."""

    def __init__(self, start, end, none=None):
        super().__init__()
        self.said = [torch.tensor(part) for part in (start, end)], none

    def forward(self, question, lengths, context, context_lengths, matches):
        (start, end), none = self.said
        rows, width = context.shape
        scores = [part[:width].log().expand(rows, -1) for part in (start, end)]
        return SpanScores(*scores, None if none is None else torch.full((rows,), none))


def answers_of(module, *asked, **settings):
    task = make(rows=[row("a b", "a b c d")], **settings)
    task.module = module
    return Predictor(task)([{"question": "a", "context": context} for context in asked])


def test_answers_are_not_longer_than_said_and_end_where_they_begin_or_later():
    module = Given([0.1, 0.2, 0.1, 0.6], [0.6, 0.1, 0.1, 0.2])
    (answer,) = answers_of(module, "a b c d")
    assert (str(answer), answer.score) == ("d", pytest.approx(0.12))
    module = Given([0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7])
    assert [str(answers_of(module, "a b c d", max_answer_length=n)[0]) for n in (4, 3, 1)] == [
        "a b c d", "a", "a"
    ]  # fmt: skip


def test_none_is_the_answer_where_it_is_more_probable_by_the_threshold():
    spans = [[0.7, 0.1, 0.1, 0.1], [0.6, 0.2, 0.1, 0.1]]
    module = Given(*spans, none=math.log(1 / 3))  # a quarter; the best span has 0.75 * 0.42
    (answer,) = answers_of(module, "a b c d")
    assert (str(answer), answer.score) == ("a", pytest.approx(0.315))
    assert answer.no_answer == pytest.approx(0.25)
    (answer,) = answers_of(module, "a b c d", no_answer_threshold=math.log(0.25 / 0.316))
    assert (str(answer), answer.score) == ("", pytest.approx(0.25))
    (answer,) = answers_of(Given(*spans, none=9.0), "a b c d", no_answer_threshold=99.0)
    assert str(answer) == "a"
    (answer,) = answers_of(Given(*spans), "", no_answer_threshold=99.0)
    assert (str(answer), answer.start, answer.score) == ("", None, 0.0)


def test_a_long_context_is_read_in_windows_whatever_their_number():
    class Finds(torch.nn.Module):
        most = 0

        def forward(self, question, lengths, context, context_lengths, matches):
            self.most = max(self.most, len(context))
            assert context.shape[1] <= 8
            assert len(question) == len(context)
            return SpanScores(matches.float(), matches.float(), None)

    task = make(rows=[row("Where?", "x y z")], max_length=8, stride=3)
    task.module = Finds()
    context = "x, " * 500 + "where it is" + " y." * 700
    answer = Predictor(task)({"question": "Where?", "context": context})
    assert (answer.text, answer.start) == ("where", 1500)
    assert task.module.most == 64


def test_a_context_of_one_window_and_one_of_many_are_answered_in_one_batch():
    task = make(JOINED, max_length=6, stride=3)
    together = Predictor(task)([{"question": "Who led?", "context": c} for c in (VIKING, "Bob.")])
    for answer, context in zip(together, (VIKING, "Bob."), strict=True):
        alone = Predictor(task)({"question": "Who led?", "context": context})
        assert alone.text == answer.text
        assert alone.score == pytest.approx(answer.score, rel=1e-4)


def test_answers_within_words_are_widened_and_counted():
    rows = [ROWS[0], row("Who?", VIKING, "iking", "Rollo")]
    task = make(rows=rows)
    batches = task.batches(Data(rows), train=True, seed=1)
    note = (
        "1 of 4 answers in 'answers' do not begin and end with a token, the first in row 1. "
        "Training takes the whole tokens; no prediction is exactly such an answer."
    )
    assert task.notes == [note]
    assert batches.details["off_tokens"] == note
    assert next(iter(batches))["answers"][1].tolist() == [[0, 0], [3, 3]]


def test_a_model_that_always_answers_takes_no_question_without_an_answer():
    task = make(no_answer=False)
    with pytest.raises(DataError) as error:
        task.batches(Data(), train=False, seed=1)
    assert str(error.value).startswith("2 of 6 questions have no answer in 'answers', the first in")
    found = evaluate(task, task.batches(Data(ROWS), train=False, seed=1))
    assert "no_answer" not in found.rows[0]
    assert math.isnan(found.values["no_answer/f1"])


def test_texts_that_an_encoder_does_not_take_are_refused_before_the_first():
    short = SelfAttentionEncoder.Config(num_heads=2, num_layers=1, ffn_dim=8, max_length=100)
    task = make(replace(JOINED, encoder=short))
    with pytest.raises(UserError, match=r"^A question with a window of its context may have 464"):
        task.batches(Data(), train=True, seed=1)
    make(replace(JOINED, encoder=short), max_length=36, stride=9).batches(
        Data(), train=True, seed=1
    )
    short = replace(short, dim=8)
    task = make(replace(DRQA, encoder=short))
    with pytest.raises(UserError, match=r"A window .* 400 tokens, .* Lower task.max_length, or"):
        task.batches(Data(), train=True, seed=1)
    task = make(replace(DRQA, question_encoder=short), max_question_length=101)
    with pytest.raises(UserError, match=r"A question may have 101 .* model.question_encoder"):
        task.batches(Data(), train=True, seed=1)
    task = make(max_question_length=3, over_length="error")
    with pytest.raises(DataError, match=r"5 of 6 rows .* Raise task.max_question_length, or let"):
        task.batches(Data(), train=True, seed=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stride": 0}, "task.stride must be at least 1, but is 0."),
        ({"max_answer_length": 0}, "task.max_answer_length must be at least 1, but is 0."),
        ({"max_question_length": 0}, "task.max_question_length must be at least 1, but is 0."),
        ({"max_length": 100, "stride": 101}, "task.stride must be at most task.max_length (100),"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(UserError) as error:
        QuestionAnswering.Config(**settings)
    assert str(error.value).startswith(message)

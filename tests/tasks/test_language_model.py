"""Language modeling: every token counts once, the state goes on, answers go on with texts."""

import json
import math
from dataclasses import replace

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import CheckpointError, DataError, UserError
from textmill.inference import Predictor
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoding import Decoding
from textmill.models.language_model import LstmLanguageModel
from textmill.tasks import evaluate
from textmill.tasks.language_model import LanguageModeling
from textmill.text.columns.inputs import text_columns
from textmill.text.columns.labels import LabelColumn
from textmill.text.features.labels import Labels
from textmill.text.processors.texts import LabelText
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {"text": "set an alarm for me"},
    {"text": ""},
    {"text": "show all my alarms now"},
    {"text": "snooze my alarm"},
    {"text": "an alarm an alarm an alarm for my alarm"},
]
TOKENS = sum(len(row["text"].split()) + 1 for row in ROWS)
BYTES = sum(len(row["text"]) + 1 for row in ROWS)
LSTM = LstmLanguageModel.Config(dim=12, num_layers=1, dropout=0.0)
TRANSFORMER = CausalTransformer.Config(
    dim=12, num_heads=2, ffn_dim=24, num_layers=1, dropout=0.0, max_length=30
)
APART = replace(TRANSFORMER, rows_apart=True)

Data = data_of(ROWS, batch_size=2)


def make(model=LSTM, **settings):
    torch.manual_seed(0)
    tokenizer = FittedWords.Config(marks=True).build(train_data=ROWS)
    module = model.build(tokenizer=tokenizer)
    config = LanguageModeling.Config(**{"block": 3, **settings})
    return config.build(module=module, tokenizer=tokenizer)


def evaluated(task, **batching):
    return evaluate(task, task.batches(Data(**batching), train=False, seed=1))


@pytest.fixture(params=["lstm", "transformer", "stateless lstm"])
def task(request):
    stateless = {"stateful": False} if request.param == "stateless lstm" else {}
    return make(TRANSFORMER if request.param == "transformer" else LSTM, **stateless)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 99])
def test_every_token_and_byte_counts_once(task, batch_size):
    found = evaluated(task, batch_size=batch_size)
    nats = [math.log(row["perplexity"]) * row["tokens"] for row in found.rows]
    assert [row["tokens"] for row in found.rows] == [len(r["text"].split()) + 1 for r in ROWS]
    assert [row["text"] for row in found.rows] == [r["text"] for r in ROWS]
    assert found.values["loss"] == pytest.approx(sum(nats) / TOKENS, rel=1e-4)
    assert found.values["perplexity"] == pytest.approx(math.exp(found.values["loss"]))
    bits = sum(nats) / math.log(2) / BYTES
    assert found.values["bits_per_byte"] == pytest.approx(bits, rel=1e-4)
    assert found.directions == dict.fromkeys(found.values, "lower")


def test_one_stream_is_the_whole_text_read_at_once():
    task = make()
    whole = make(block=99)
    assert evaluated(task, batch_size=1).values == pytest.approx(
        evaluated(whole, batch_size=1).values
    )
    ids = task.text.encode(ROWS, with_targets=False)["text"].values
    read = torch.tensor([[task.text.eos_idx, *ids]])
    nats = torch.nn.functional.cross_entropy(task.module(read)[0, :-1], read[0, 1:])
    assert evaluated(task, batch_size=1).values["loss"] == pytest.approx(nats.item(), rel=1e-5)


def test_a_stride_is_every_token_with_its_past():
    task = make(TRANSFORMER, block=6, stride=1)
    ids = task.text.encode(ROWS, with_targets=False)["text"].values
    read = torch.tensor([task.text.eos_idx, *ids])
    nats = [
        -task.module(read[None, max(0, at - 6) : at])[0, -1].log_softmax(-1)[read[at]]
        for at in range(1, len(read))
    ]
    found = evaluated(task, batch_size=4).values["loss"]
    assert found == pytest.approx((sum(nats) / len(nats)).item(), rel=1e-5)


def test_training_carries_the_state_and_an_epoch_begins_without():
    task, other = make(), make()
    batches = list(task.batches(Data(), train=True, seed=1))
    losses = [task.training_step(batch).total.item() for batch in batches]
    alone = [other.training_step(batches[0]).total.item()]
    assert losses[0] == alone[0]
    fresh = make()
    fresh.carried.keep(None)
    assert fresh.training_step(batches[1]).total.item() != losses[1]
    assert task.training_step(batches[0]).total.item() == losses[0]


def test_the_state_is_a_part_that_is_saved():
    task = make()
    first, second, *_ = task.batches(Data(), train=True, seed=1)
    task.training_step(first)
    saved = {name: part.state_dict() for name, part in task.parts.items()}
    wanted = task.training_step(second).total
    again = make()
    for name, part in again.parts.items():
        part.load_state_dict(saved[name])
    assert torch.equal(again.training_step(second).total, wanted)
    assert make(TRANSFORMER).parts == make(stateful=False).parts == {}


def test_no_gradient_goes_back_to_the_batch_before_and_no_infinity_forward():
    task = make()
    first, second, *_ = task.batches(Data(), train=True, seed=1)
    task.training_step(first)
    (state,) = (part.state_dict()["state"] for part in task.parts.values())
    assert not state.requires_grad
    task.carried.keep(torch.full_like(state, math.inf))
    assert task.training_step(second).total.isfinite()


def test_two_halves_are_the_whole(task):
    if task.stateful:
        return
    whole = list(task.batches(Data(batch_size=99), train=True, seed=1))
    parts = list(task.batches(Data(batch_size=1), train=True, seed=1))
    assert len(whole) == 1 < len(parts)
    total = sum(task.training_step(batch).total for batch in parts)
    loss = task.training_step(whole[0])
    assert torch.allclose(loss.total, total, rtol=1e-5)
    assert loss.count == TOKENS


def test_it_learns_the_rows_by_heart_and_says_them(task):
    task.config = LanguageModeling.Config(decoding=Decoding(max_length_a=0.0, max_length_b=20))
    torch.manual_seed(0)
    batches = task.batches(Data(batch_size=1), train=True, seed=1)
    learn(task, batches, epochs=60, lr=0.02)
    assert evaluated(task, batch_size=1).values["perplexity"] < 2
    predictor = Predictor(task)
    answers = predictor(["snooze", "Show ALL"])
    assert str(answers[0]).endswith("alarm")
    assert [str(answer) for answer in predictor(["Show ALL", "snooze"])] == [
        str(answer) for answer in answers[::-1]
    ]
    rows = list(predictor.stream(["snooze", ""]))
    assert all(set(row) == {"text", "prediction", "score"} for row in rows)
    json.dumps(rows)


def test_length_alone_can_end_an_answer():
    decoding = Decoding(max_length_a=0.0, max_length_b=12, sample=True, n_best=3, seed=4)
    task = make(until="length", decoding=decoding)
    task.module.output_bias.data[task.text.eos_idx] = 3.0
    (answer, again) = Predictor(task)(["set my\nalarm", "set my\nalarm"])
    assert answer == again
    assert len(answer.others) == 2
    for one in (answer, *answer.others):
        assert "\n" in one.text
        assert len(one.text.replace("\n", " \n ").split(" ")) >= 12
    row = task.answer_row(answer)
    assert [set(other) for other in row["others"]] == [{"prediction", "score"}] * 2
    assert "\n" not in str(Predictor(make(decoding=decoding))(["set"])[0])


def test_the_unknown_token_is_never_in_an_answer_and_can_be_in_what_is_given():
    for sample in (True, False):
        task = make(decoding=Decoding(max_length_a=0.0, max_length_b=12, sample=sample))
        task.module.output_bias.data[task.text.unk_idx] = 9.0
        for answer in Predictor(task)(["snooze", "eggs with eggs"]):
            assert "\u2047" not in answer.text  # what a decoded text has for it


def test_unknown_tokens_are_told():
    task = make()
    data = Data([{"text": "set what"}])
    found = evaluate(task, task.batches(data, train=False, seed=1))
    assert found.details == {
        "bits_per_byte": "1 of 3 tokens are unknown: their bytes are not scored. The tokenizer "
        "changes the text of 1 of the first 1 rows (case, spaces, unknown words): the bytes are "
        "those of the text as given."
    }
    assert evaluated(task).details == {}


def test_a_measured_text_is_never_shuffled(task):
    wanted = evaluated(task).values
    for seed in (1, 2, 3):
        batches = task.batches(Data(shuffle=True), train=False, seed=seed)
        assert evaluate(task, batches).values == wanted
    data = Data(shuffle=True)
    first = [next(iter(task.batches(data, train=True, seed=seed))) for seed in (1, 2, 3)]
    assert len({str(batch.targets.tolist()) for batch in first}) > 1


def test_rows_that_cannot_be_read_are_refused():
    task = make(TRANSFORMER)
    with pytest.raises(DataError, match=r"wants rows with the text 'text', found Tensor"):
        task.batches([torch.zeros(2)], train=True, seed=1)
    long = "an " * 30
    (row,) = Predictor(task).stream([long])
    assert row["error"].startswith("column 'text': has 30 tokens, but the model goes on with at")
    assert "error" not in next(Predictor(task).stream([long[:-3]]))


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (LSTM, {"block": 0}, "task.block must be at least 1, but is 0"),
        (LSTM, {"stride": 9}, r"task.stride must be at most task.block \(3\), but is 9"),
        (LSTM, {"stride": 2}, "task.stride is for blocks that stand alone"),
        (TRANSFORMER, {"stateful": True}, "a CausalTransformer carries no state"),
        (TRANSFORMER, {"block": 31}, "the model has positions for 30 tokens"),
        (LSTM, {"until": "length", "decoding": Decoding(min_length=2)}, "min_length bans the end"),
        (APART, {"until": "length"}, r"know of itself alone\. Set task\.until=row, or leave model"),
    ],
)
def test_settings_that_cannot_be_are_refused(model, settings, message):
    with pytest.raises(UserError, match=message):
        make(model, **settings)


def test_another_module_or_text_is_refused():
    tokenizer = FittedWords.Config(marks=True).build(train_data=ROWS)
    with pytest.raises(UserError, match=r"needs a textmill\.models\.language_model\.LanguageModel"):
        LanguageModeling.Config().build(module=torch.nn.Linear(1, 1), tokenizer=tokenizer)
    label = LabelColumn(Labels(["a", "b"]))
    with pytest.raises(CheckpointError, match="LabelText"):
        make().use_text(LabelText(text_columns(tokenizer), {"label": label}))


def test_rows_that_are_apart_are_expected_as_if_each_were_alone():
    """Whatever the rows before them in their block say."""

    def perplexities(task, rows):
        batches = task.batches(data_of(rows, batch_size=2)(), train=False, seed=1)
        return [row["perplexity"] for row in evaluate(task, batches).rows]

    for model, same in ((APART, True), (TRANSFORMER, False)):
        task = make(model, block=30)  # of all rows
        alone = [perplexities(task, [row])[0] for row in ROWS]
        assert (perplexities(task, ROWS) == pytest.approx(alone, rel=1e-5)) == same

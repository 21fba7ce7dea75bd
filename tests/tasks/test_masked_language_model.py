"""Masked language modeling: only masked tokens are scored, answers fill masks in."""

import dataclasses
import json
import math

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.data.masking import Masking
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.tasks import evaluate
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.text.tokenizers.word_tokenizer import FittedWords, WordTokenizer

ROWS = [
    {"text": "set an alarm for me"},
    {"text": ""},
    {"text": "show all my alarms now"},
    {"text": "snooze my alarm"},
    {"text": "an alarm an alarm an alarm for my alarm"},
]
MODEL = MaskedLanguageModel.Config(
    embedding=WordEmbedding.Config(dim=12),
    encoder=SelfAttentionEncoder.Config(
        num_layers=1, num_heads=2, ffn_dim=24, dropout=0.0, max_length=30
    ),
)

Data = data_of(ROWS, batch_size=2)


def make(model=MODEL, tokenizer=None, **settings):
    torch.manual_seed(0)
    tokenizer = tokenizer or FittedWords.Config().build(train_data=ROWS)
    module = model.build(tokenizer=tokenizer)
    settings = {"block": 8, "masking": Masking(share=0.4), **settings}
    return MaskedLanguageModeling.Config(**settings).build(module=module, tokenizer=tokenizer)


def evaluated(task, **batching):
    task.module.eval()
    return evaluate(task, task.batches(Data(**batching), train=False, seed=1))


@pytest.mark.parametrize("batch_size", [1, 2, 99])
def test_an_evaluation_is_of_the_masked_tokens_alone(batch_size):
    task = make()
    found = evaluated(task, batch_size=batch_size)
    nats = right = count = 0
    for batch in task.batches(Data(batch_size=1), train=False, seed=7):
        log_probs = task.module(batch.inputs).log_softmax(-1)
        for place in batch.counted.nonzero().tolist():
            target = batch.targets[tuple(place)]
            nats -= log_probs[tuple(place)][target].item()
            right += (log_probs[tuple(place)].argmax() == target).item()
            count += 1
    assert count == sum(row["masked"] for row in found.rows) > 5
    assert found.values == pytest.approx(
        {
            "loss": nats / count,
            "perplexity": math.exp(nats / count),
            "masked_accuracy": right / count,
        },
        rel=1e-5,
    )
    assert found.directions == {"loss": "lower", "perplexity": "lower", "masked_accuracy": "higher"}
    sums = [row["masked"] * math.log(row["perplexity"]) for row in found.rows]
    assert sum(sums) == pytest.approx(nats, rel=1e-3)
    assert sum(row["found"] for row in found.rows) == right
    assert "always the same" in found.details["masked_accuracy"]


def test_rows_that_are_kept_apart_are_trained_on_and_measured_as_if_alone():
    """What is found of a row that a block holds whole depends on that row alone."""
    long = dataclasses.replace(MODEL, encoder=dataclasses.replace(MODEL.encoder, max_length=64))
    task = make(dataclasses.replace(long, rows_apart=True), block=64)
    task.module.eval()
    (batch,) = task.batches(Data(batch_size=9), train=False, seed=1)
    states, targets, _ = task._read(batch)
    assert len(batch) == 1
    parts, inputs, counted = batch.parts[0], batch.inputs[0], batch.counted[0]
    found = []
    for number in range(int(parts[-1]) + 1):
        mine = parts == number
        found.append(task.module.hidden(inputs[mine][None])[0][counted[mine]])
    assert len(found) == len(ROWS)
    assert torch.allclose(torch.cat(found), states, atol=1e-6)
    assert len(targets) == batch.count
    together = make(long, block=64)
    together.module.eval()
    (batch,) = together.batches(Data(batch_size=9), train=False, seed=1)
    assert not torch.allclose(together._read(batch)[0], states, atol=1e-3)


def test_two_halves_are_the_whole_and_only_masked_states_have_a_gradient():
    task = make()
    whole = list(task.batches(Data(batch_size=99), train=True, seed=1))
    loss = task.training_step(whole[0])
    assert loss.count == whole[0].counted.sum()
    parts = [task.training_step(b) for b in task.batches(Data(batch_size=1), train=True, seed=1)]
    # A batch alone may have no word to be found and then gets one.
    if sum(part.count for part in parts) == loss.count:
        assert torch.allclose(sum(part.total for part in parts), loss.total, rtol=1e-5)
    states = task.module.hidden(whole[0].inputs).detach().requires_grad_()
    task.module.hidden = lambda ids, parts: states
    task.training_step(whole[0]).total.backward()
    assert torch.equal(states.grad.abs().sum(-1) > 0, whole[0].counted)


@pytest.mark.parametrize(
    "encoder",
    [
        SelfAttentionEncoder.Config(num_layers=1, num_heads=2, ffn_dim=64, dropout=0.0),
        LstmEncoder.Config(hidden_dim=16),
    ],
)
def test_it_learns_the_rows_by_heart_and_fills_masks(encoder):
    model = MaskedLanguageModel.Config(embedding=WordEmbedding.Config(dim=32), encoder=encoder)
    rows = [{"text": "set an alarm"}, {"text": "snooze my alarm"}, {"text": "show all alarms"}] * 4
    tokenizer = FittedWords.Config(marks=True).build(train_data=rows)
    masking = Masking(share=0.4, masked=1, random=0)
    task = make(model, tokenizer, block=4, top_k=2, masking=masking)  # a row each
    batches = task.batches(Data(rows, batch_size=12), train=True, seed=1)
    learn(task, batches, epochs=80, lr=0.005)
    fill = Predictor(task)
    answers = fill(["snooze [MASK] alarm", "show [MASK] alarms", "[MASK] [MASK] alarm"])
    assert [str(answer) for answer in answers][:2] == ["snooze my alarm", "show all alarms"]
    assert [[len(fills) for fills in answer.masks] for answer in answers] == [[2], [2], [2, 2]]
    assert answers[0].masks[0][0].score > 0.7
    (row,) = fill.stream(["Snooze [MASK] alarm"])
    assert row["prediction"] == "Snooze my alarm"
    assert row["masks"][0][0] == {"text": "my", "score": row["score"]}
    json.dumps(row)


def test_settings_and_data_that_cannot_be_are_refused():
    def refused(kind, make):
        with pytest.raises(kind) as caught:
            make()
        return str(caught.value)

    assert refused(UserError, lambda: make(block=0)) == "task.block must be at least 1, but is 0."
    assert refused(UserError, lambda: make(top_k=0)) == "task.top_k must be at least 1, but is 0."
    assert refused(UserError, lambda: make(block=31)).startswith("task.block is 31, but the model")
    causal = CausalTransformer.Config(dim=8, num_heads=2, ffn_dim=8, num_layers=1)
    assert refused(UserError, lambda: make(causal)).startswith("Masked language modeling needs a")
    unknown = make(tokenizer=WordTokenizer.Config(words=("x",)).build())
    assert refused(DataError, lambda: unknown.batches(Data(), train=True, seed=1)).startswith(
        "The text has no token that can be masked"
    )
    assert "wants rows with the text 'text', found list" in refused(
        DataError, lambda: make().batches([[1, 2]], train=True, seed=1)
    )

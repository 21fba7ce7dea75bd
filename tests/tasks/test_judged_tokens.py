"""Next sentences and replaced tokens: losses against plain formulas, and what is learnt."""

import dataclasses
import math

import pytest
import torch
from torch import nn
from transformers import ElectraConfig, ElectraForPreTraining
from transformers.modeling_outputs import BaseModelOutput

import textmill
from tests.tasks.rows import evaluated, learn
from tests.tasks.test_masked_language_model import MODEL, Data, make
from textmill.data.masking import Masking
from textmill.errors import UserError
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.runs.train import train
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training.initial_weights import Initial

GENERATOR = SelfAttentionEncoder.Config(
    dim=6, num_layers=1, num_heads=2, ffn_dim=8, dropout=0.0, max_length=20
)
BOTH = dataclasses.replace(MODEL, next_sentence=True, generator=GENERATOR)
TOPICS = ["cat dog cow horse", "saw file drill plane", "red blue green white", "up left down right"]
SENTENCES = [{"text": f"{TOPICS[n // 8 % 4]} {TOPICS[n // 8 % 4]}"} for n in range(64)]


class Scored(nn.Module):
    """In the place of a part of a model of transformers: gives what it was made with."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def forward(self, *given, **named):
        return self.out


def bernoulli_nats(logits, truth):
    return [math.log1p(math.exp(-x if true else x)) for x, true in zip(logits, truth, strict=True)]


def test_losses_are_those_of_plain_formulas_and_of_transformers():
    task = make(BOTH, masking=Masking(share=0.4, masked=1.0, random=0.0), replaced_weight=50.0)
    task.module.eval()
    module = task.module
    (batch,) = task.batches(Data(batch_size=99), train=True, seed=3)
    masked = module(batch.inputs, parts=batch.parts)
    read, nats, draws = batch.targets.clone(), 0.0, iter(batch.draws.tolist())
    for row, place in batch.counted.nonzero().tolist():
        chances = masked[row, place].softmax(-1).tolist()
        nats -= math.log(chances[batch.targets[row, place]])
        draw, token = next(draws), 0
        while draw >= chances[token]:
            draw, token = draw - chances[token], token + 1
        read[row, place] = token
    replaced = read != batch.targets
    vectors = module.embedding(read) + batch.parts[..., None] * module.segment
    states = module.encoder(vectors, torch.full((len(read),), read.shape[1]))
    logits = module.replaced(states)[..., 0]
    of_tokens = bernoulli_nats(logits.flatten().tolist(), replaced.flatten().tolist())
    half = read.shape[1] // 2
    a, b = states[:, :half].mean(1), states[:, half:].mean(1)
    of_pairs = module.next_sentence(torch.cat([a, b, (a - b).abs(), a * b], 1))[:, 0].tolist()
    of_pairs = bernoulli_nats(of_pairs, batch.follows.tolist())
    loss = task.training_step(batch)
    assert 0 < replaced.sum() <= batch.count == loss.count
    assert loss.sums["masked"].item() == pytest.approx(nats, rel=1e-5)
    # The means count as much as if just the share of the tokens were masked.
    expected = 0.4 * read.numel()
    mean = sum(of_tokens) / len(of_tokens)
    total = nats + 50 * expected * mean + expected * sum(of_pairs) / len(of_pairs)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)

    oracle = ElectraForPreTraining(
        ElectraConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    )
    oracle.electra = Scored(BaseModelOutput(last_hidden_state=states))
    oracle.discriminator_predictions = Scored(logits)
    theirs = oracle(input_ids=read, labels=replaced.long()).loss.item()
    assert loss.sums["replaced"].item() == pytest.approx(50 * expected * theirs, rel=1e-5)

    values = evaluated(task, Data()).values
    names = ["accuracy", "precision", "recall", "f1"]
    assert {*values} == {
        *("loss", "perplexity", "masked_accuracy", "next_sentence_accuracy"),
        *(f"replaced_{name}" for name in names),
    }
    # Rows of other batches, and each alone, are measured alike.
    for size in (1, 99):
        assert evaluated(task, Data(batch_size=size)).values == pytest.approx(
            values, rel=1e-5, nan_ok=True
        )


def test_tokens_are_drawn_by_their_probabilities():
    module = make(BOTH).module
    states, count = torch.randn(1, 6), 4000
    draws = (torch.arange(count) + 0.5) / count
    found = module.drawn(states.expand(count, -1), draws)
    chances = module.project(states).softmax(-1)[0]
    assert torch.allclose(found.bincount(minlength=len(chances)) / count, chances, atol=1e-3)
    assert module.drawn(states, torch.tensor([1.0])).item() == len(chances) - 1


def test_only_masks_teach_the_generator_and_both_teach_the_vectors():
    task = make(BOTH, replaced_weight=1e4)
    (batch,) = task.batches(Data(batch_size=99), train=True, seed=3)
    task.training_step(batch).total.backward()
    whole = {name: p.grad.clone() for name, p in task.module.named_parameters()}
    assert all(grad.any() for grad in whole.values())
    task.module.zero_grad()
    states, targets, _ = task._read(batch)
    masks = nn.functional.cross_entropy(task.module.project(states), targets, reduction="sum")
    masks.backward()
    for name, parameter in task.module.generator.named_parameters():
        assert torch.allclose(parameter.grad, whole[f"generator.{name}"], atol=1e-4), name
    table = task.module.embedding.tokens.weight
    (of_both,) = [grad for name, grad in whole.items() if grad.shape == table.shape]
    assert not torch.allclose(table.grad, of_both, atol=1e-2)


def test_both_are_learnt():
    """Of tokens that a generator without context draws."""
    encoder = dataclasses.replace(MODEL.encoder, positions="rotary")
    model = MaskedLanguageModel.Config(
        embedding=WordEmbedding.Config(dim=16), encoder=encoder, next_sentence=True,
        generator=AveragingEncoder.Config(word_dropout=0.0),
    )  # fmt: skip
    task = make(model, FittedWords.Config().build(train_data=SENTENCES), masking=Masking(share=0.2))
    batches = task.batches(Data(SENTENCES, batch_size=16), train=True, seed=1)
    learn(task, batches, epochs=40, lr=0.01)
    values = evaluated(task, Data(SENTENCES)).values
    assert values["replaced_f1"] > 0.6
    assert values["next_sentence_accuracy"] > 0.65
    assert values["perplexity"] == pytest.approx(16, rel=0.15)


def test_what_cannot_be_is_refused():
    def refused(**settings):
        with pytest.raises(UserError) as caught:
            make(dataclasses.replace(MODEL, **settings), block=20)
        return str(caught.value)

    assert "model.next_sentence" in refused(next_sentence=True, rows_apart=True)
    lstm = LstmEncoder.Config(hidden_dim=4)
    assert "is a LstmEncoder" in refused(generator=lstm, rows_apart=True)
    short = dataclasses.replace(GENERATOR, max_length=19)
    assert "positions for 19 tokens" in refused(generator=short)


def test_a_run_goes_on_bitwise_answers_and_is_a_beginning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{row['text']}\n" for row in SENTENCES)
    (tmp_path / "text.txt").write_text(text)
    words = ["train_data.path=text.txt", "valid_data.path=text.txt", "train_data.batch_size=4"]
    words += ["task.block=8", "lr_scheduler.type=constant", "trainer.save_every=2 steps"]
    words += ["model.next_sentence=true", "trainer.fast.linear=torch"]
    whole, begun = (tmp_path / name for name in ("whole", "begun"))
    train("bert/electra/local", [*words, "trainer.max_steps=21"], run_dir=whole)
    train("bert/electra/local", [*words, "trainer.max_steps=18"], run_dir=begun)
    train(begun, ["trainer.max_steps=21"])
    last = "checkpoints/step-00000021/model.safetensors"
    assert (begun / last).read_bytes() == (whole / last).read_bytes()
    filled = textmill.load("whole")("cat dog [MASK] horse")
    assert filled.text.startswith("cat dog ")
    labelled = "".join(f"{n}\t{words}\n" for n, words in enumerate(TOPICS))
    (tmp_path / "labels.tsv").write_text(labelled)
    words = [f"{part}_data.path=labels.tsv" for part in ("train", "valid")]
    words += ["model.embedding.dim=16", "model.encoder.num_layers=1", "model.encoder.ffn_dim=32"]
    words += ["model.encoder.num_heads=2", "model.encoder.positions=rotary"]
    words += ["tokenizer.type=of_run", "tokenizer.path=whole"]
    task = textmill.create_task("classification/transformer/local", words)
    lines = Initial("whole", {}, task=task).load()
    assert "text.encoder (encoder there)" in lines[1]
    theirs = textmill.load("whole").task.module.encoder.state_dict()
    for name, tensor in task.module.text.encoder.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name

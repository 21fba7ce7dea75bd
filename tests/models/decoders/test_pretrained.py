"""Pretrained decoders: scores, losses and continuations of transformers; what is refused."""

import functools
import math

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.pretrained_checkpoints import (
    GPT2_SIZES,
    LANGUAGE_MODELS,
    SMALL,
    TEXTS,
    changed,
    save_language_model,
)
from textmill.errors import UserError
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoding import Decoding, decode, search_state
from textmill.tasks import evaluate
from textmill.tasks.language_model import LanguageModeling
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

ROWS = [{"text": text} for text in TEXTS]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    hub = tmp_path_factory.mktemp("hub")
    return functools.cache(lambda family: save_language_model(hub / family, family))


def task_of(folder, **settings):
    tokenizer = PretrainedTokenizer.Config(path=folder / "tokenizer.json").build()
    module = PretrainedLanguageModel.Config(path=str(folder)).build(tokenizer=tokenizer)
    task = LanguageModeling.Config(**{"block": 24, **settings}).build(
        module=module, tokenizer=tokenizer
    )
    task.initialize()
    module.eval()
    return task


def oracle_of(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


def read(task, text, folder):
    """What is read of a text, as the family's own tokenizer has it; with its end."""
    own = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    ids, begin = own(text)["input_ids"], task.text.begin_idx
    has_begin = LANGUAGE_MODELS[folder.name][1] != ""
    return torch.tensor([[*([] if has_begin else [begin]), *ids, task.text.eos_idx]])


@pytest.mark.parametrize("family", LANGUAGE_MODELS)
def test_scores_and_losses_are_those_of_transformers(saved, family):
    folder = saved(family)
    task, oracle = task_of(folder, block=40), oracle_of(folder)
    for text in TEXTS:
        ids = read(task, text, folder)
        with torch.no_grad():
            wanted = oracle(input_ids=ids, labels=ids)
            torch.testing.assert_close(task.module(ids), wanted.logits, atol=1e-5, rtol=1e-5)
            (batch,) = task.batches([{"text": text}], train=False, seed=1)
            loss = task.training_step(batch)
        assert loss.count == ids.shape[1] - 1
        torch.testing.assert_close(loss.total / loss.count, wanted.loss)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_perplexity_is_one_computed_by_hand(saved, family):
    folder = saved(family)
    task, oracle = task_of(folder, block=24), oracle_of(folder)
    rows = [read(task, text, folder)[0] for text in TEXTS]
    inputs = torch.cat([row[:-1] for row in rows])  # each begins as a text does
    targets = torch.cat([row[1:] for row in rows])
    nats = 0.0
    with torch.no_grad():
        for ids, wanted in zip(inputs.split(24), targets.split(24), strict=True):
            logits = oracle(input_ids=ids[None]).logits[0]
            nats += float(torch.nn.functional.cross_entropy(logits, wanted, reduction="sum"))
    found = evaluate(task, task.batches(ROWS, train=False, seed=1)).values["perplexity"]
    assert found == pytest.approx(math.exp(nats / len(targets)), rel=1e-5)


@pytest.mark.parametrize(("family", "beams"), [("gpt2", 1), ("llama", 4), ("opt", 4)])
def test_texts_go_on_as_generate_goes_on(saved, family, beams):
    folder = saved(family)
    task, oracle = task_of(folder), oracle_of(folder)
    begun = task.text.begun([text[:12] for text in TEXTS])
    decoding = Decoding(
        beam_size=beams, max_length_a=0.0, max_length_b=9, length_penalty=0.0, n_best=beams
    )
    begin, end = task.text.begin_idx, task.text.eos_idx
    source = torch.zeros(len(begun), 1, dtype=torch.int64)
    given = {"prefix": [begin], "eos_idx": end, "forced": begun}
    found = decode(task.module, source, None, decoding, **given)
    for ids, hypotheses in zip(begun, found, strict=True):
        prompt = torch.tensor([[begin, *ids]])
        for hypothesis, wanted in zip(
            hypotheses,
            oracle.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=False,
                num_beams=beams,
                num_return_sequences=beams,
                length_penalty=0.0,
                max_new_tokens=9,
                eos_token_id=end,
                pad_token_id=end,
            ).tolist(),
            strict=True,
        ):
            added = wanted[1:]
            if end in added[len(ids) :]:
                added = added[: added.index(end, len(ids))]
            assert hypothesis.ids == added


@pytest.mark.parametrize("search", [{}, {"beam_size": 3, "n_best": 2}, {"sample": True}])
def test_what_is_read_at_once_is_what_is_read_one_by_one(saved, monkeypatch, search):
    task = task_of(saved("llama"), decoding=Decoding(max_length_a=0.0, max_length_b=6, **search))
    texts = ("dogs bark", "dogs bark at the moon", "films are", "films are rare")
    rows = [{"text": text} for text in texts]
    monkeypatch.setattr(search_state, "READ_AT_ONCE", 12)
    reads = []
    read = PretrainedLanguageModel.read

    def counted(self, tokens, state):
        reads.append(tokens.shape[1])
        return read(self, tokens, state)

    monkeypatch.setattr(PretrainedLanguageModel, "read", counted)
    found = task.predict(rows)
    assert max(reads) == 3
    monkeypatch.setattr(search_state, "BlockReader", int)  # which no model is
    reads.clear()
    wanted = task.predict(rows)
    assert max(reads) == 1
    for one, two in zip(found, wanted, strict=True):
        assert one.text == two.text
        assert one.score == pytest.approx(two.score, abs=1e-5)
        assert [o.text for o in one.others] == [o.text for o in two.others]


ONE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BENT = {
    "gemma2": {**ONE, "head_dim": 8, "num_key_value_heads": 1, "final_logit_softcapping": 2.0},
    "cohere": {**ONE, "num_key_value_heads": 1, "logit_scale": 0.25},
    "granite": {**ONE, "num_key_value_heads": 1, "logits_scaling": 4.0},
}


@pytest.mark.parametrize("family", BENT)
def test_scores_that_are_scaled_or_limited_are_those_of_transformers(saved, family):
    tokenizer = PretrainedTokenizer.Config(path=saved("gpt2") / "tokenizer.json").build()
    told = {"model_type": family, **BENT[family], "vocab_size": 263}
    module = PretrainedLanguageModel.Config(architecture=told).build(tokenizer=tokenizer).eval()
    with torch.no_grad():
        module.output_weight.mul_(30)
        ids = torch.tensor([[0, 5, 9, 40]])
        wanted = module.model(input_ids=ids).logits
        torch.testing.assert_close(module(ids), wanted, atol=1e-5, rtol=1e-5)
    task = LanguageModeling.Config(block=24).build(module=module, tokenizer=tokenizer)
    (batch,) = task.batches([{"text": "the cat sat"}], train=False, seed=1)
    loss = task.training_step(batch)
    logits = module(batch.inputs)[0]
    assert not module.affine
    torch.testing.assert_close(
        loss.total, torch.nn.functional.cross_entropy(logits, batch.targets[0], reduction="sum")
    )


def test_experts_are_taken_from_files_that_have_them_one_by_one(tmp_path, monkeypatch):
    settings = {**SMALL, "num_key_value_heads": 1, "num_local_experts": 2}
    monkeypatch.setitem(LANGUAGE_MODELS, "mixtral", (["<|endoftext|>"], "", settings))
    folder = save_language_model(tmp_path / "mixtral", "mixtral")
    found = load_file(folder / "model.safetensors")
    assert any("experts.1.w2" in name for name in found)
    ids = torch.tensor([[0, 5, 9, 40]])
    with torch.no_grad():
        wanted = oracle_of(folder)(input_ids=ids).logits
        torch.testing.assert_close(task_of(folder).module(ids), wanted, atol=1e-5, rtol=1e-5)
    del found["model.layers.1.block_sparse_moe.experts.1.w2.weight"]
    save_file(found, folder / "model.safetensors")
    with pytest.raises(UserError, match=r"do not fit its architecture mixtral: model\.layers"):
        task_of(folder)


OTHERS = {
    "bert": {},
    "t5": {},
    "mamba": {"hidden_size": 8, "num_hidden_layers": 1},
    "codegen": {**GPT2_SIZES, "rotary_dim": 4},
    "xlnet": {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16},
}


@pytest.mark.parametrize("family", OTHERS)
def test_what_is_no_such_decoder_is_refused(saved, family):
    tokenizer = PretrainedTokenizer.Config(path=saved("gpt2") / "tokenizer.json").build()
    told = {"model_type": family, **OTHERS[family], "vocab_size": 300}
    with pytest.raises(
        UserError, match=f"The run is a '{family}', which is not a decoder that textmill"
    ):
        PretrainedLanguageModel.Config(architecture=told).build(tokenizer=tokenizer)


def test_settings_that_cannot_be_are_refused(saved, tmp_path):
    folder = saved("llama")
    tokenizer = PretrainedTokenizer.Config(path=folder / "tokenizer.json").build()
    with pytest.raises(UserError, match=r"model\.dropout is 0\.1, but a llama drops no features"):
        PretrainedLanguageModel.Config(path=str(folder), dropout=0.1).build(tokenizer=tokenizer)
    with pytest.raises(UserError, match=r"model\.path, which is not set"):
        PretrainedTokenizer.Config().build(model=PretrainedLanguageModel.Config())
    with pytest.raises(UserError, match=r"model\.path is not set: name a folder"):
        PretrainedLanguageModel.Config().build(tokenizer=tokenizer)
    with pytest.raises(UserError, match=r"task\.until=length is for rows that begin with the end"):
        task_of(folder, until="length")
    with pytest.raises(UserError, match=r"positions for 40 tokens\. Lower task\.block"):
        task_of(folder, block=41)
    task = task_of(folder)
    with pytest.raises(UserError, match="41 tokens is longer than the model's max_length of 40"):
        task.module(torch.zeros(1, 41, dtype=torch.int64))
    with pytest.raises(UserError, match="carries no state"):
        task.module.hidden(torch.zeros(1, 4, dtype=torch.int64), torch.zeros(1))
    other = save_language_model(tmp_path / "gpt2", "gpt2")
    changed(other, "config.json", n_embd=8)
    with pytest.raises(UserError, match="do not fit its architecture gpt2"):
        task_of(other)

"""Pretrained encoder-decoders beside transformers: scores, losses and answers of every family."""

import json
from types import SimpleNamespace

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import nn

from tests.pretrained_checkpoints import (
    LANGS,
    SEQ2SEQ,
    TEXTS,
    changed,
    save_encoder,
    save_language_model,
    save_seq2seq,
)
from textmill.data.batching import BatchedRows
from textmill.errors import UserError
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.decoding import Decoding, decode
from textmill.tasks.generation import Translation
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

PAIRS = [
    {"source": source, "target": target}
    for source, target in zip(TEXTS, [*TEXTS[1:], "the cat"], strict=True)
]
MORE = [*TEXTS, "the", "the cat", "a moon at the unbelievable bark"]


def task_of(folder, family, **settings):
    """The task with the checkpoint's weights, in evaluation mode."""
    source, target = LANGS.get(family, ("source", "target"))
    config = PretrainedSeq2Seq.Config(path=str(folder), **settings.pop("model", {}))
    langs = {"source_langs": (source,), "target_langs": (target,)}
    tokenizer = PretrainedTokenizer.Config(**langs).build(model=config)
    module = config.build(tokenizer=tokenizer)
    assert "parameters" in module.begin()
    made = Translation.Config(**settings).build(module=module, tokenizer=tokenizer)
    module.eval()
    return made


@pytest.fixture(scope="module", params=SEQ2SEQ)
def family(request):
    return str(request.param)


@pytest.fixture(scope="module")
def folder(family, tmp_path_factory):
    return save_seq2seq(tmp_path_factory.mktemp("saved") / family, family)


@pytest.fixture(scope="module")
def task(folder, family):
    return task_of(folder, family, label_smoothing=0.0)


@pytest.fixture(scope="module")
def theirs(folder):
    return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def ids_of(task, texts):
    rows = [{"source": text} for text in texts]
    return [ids.tolist() for ids in task.text.encode(rows, with_targets=False)["source"]]


def test_the_first_loss_is_that_of_transformers(task, theirs):
    data = BatchedRows(PAIRS, max_tokens=None, batch_size=len(PAIRS))
    [batch] = task.batches(data, train=True, seed=0)
    loss = task.training_step(batch)
    real = torch.arange(batch.labels.shape[1]) < batch.target_lengths[:, None]
    labels = batch.labels.masked_fill(~real, -100)
    mask = (torch.arange(batch.source.shape[1]) < batch.source_lengths[:, None]).long()
    with torch.no_grad():
        wanted = theirs(input_ids=batch.source, attention_mask=mask, labels=labels).loss
    assert float(loss.total.detach() / loss.count) == pytest.approx(float(wanted), abs=1e-5)
    loss.total.backward()
    learns = [n for n, p in task.module.named_parameters() if p.requires_grad and p.grad is None]
    task.module.zero_grad()
    assert not learns


@pytest.mark.parametrize("beam_size", [1, 4])
def test_answers_are_those_of_generate(task, theirs, beam_size):
    decoding = Decoding(beam_size=beam_size, max_length_a=0.0, max_length_b=12)
    prefix, sources = task.text.target_prefix, ids_of(task, MORE)
    lengths = torch.tensor([len(ids) for ids in sources])
    source = nn.utils.rnn.pad_sequence(
        [torch.tensor(ids) for ids in sources], batch_first=True, padding_value=task.pad_idx
    )
    found = decode(task.module, source, lengths, decoding, prefix=prefix, eos_idx=task.eos_idx)
    mask = (torch.arange(source.shape[1]) < lengths[:, None]).long()
    settings = transformers.GenerationConfig(
        num_beams=beam_size, max_new_tokens=12, length_penalty=1.0, pad_token_id=task.pad_idx,
        eos_token_id=task.eos_idx, decoder_start_token_id=prefix[0],
    )  # fmt: skip
    begun = torch.tensor(prefix).repeat(len(source), 1)
    out = theirs.generate(
        input_ids=source, attention_mask=mask, decoder_input_ids=begun, generation_config=settings
    )
    for row, [hypothesis] in zip(out[:, len(prefix) :].tolist(), found, strict=True):
        ends = task.eos_idx in row
        assert hypothesis.ids == (row[: row.index(task.eos_idx)] if ends else row[:12])


def test_scores_that_have_a_matrix_of_their_own(tmp_path):
    for family in ("t5", "mt5"):
        folder = save_seq2seq(tmp_path / family, family, tie_word_embeddings=False)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
        model.lm_head.weight = nn.Parameter(torch.randn_like(model.lm_head.weight))
        model.save_pretrained(folder)
        ours, theirs = task_of(folder, family).module, model.eval()
        ids = torch.tensor([[5, 6, 1]])
        with torch.no_grad():
            wanted = theirs(input_ids=ids, decoder_input_ids=ids).logits
            torch.testing.assert_close(ours(ids, None, ids), wanted, rtol=1e-5, atol=1e-5)
        assert not torch.equal(ours.output_weight, ours.model.get_input_embeddings().weight)


def test_what_a_checkpoint_bans_is_never_answered(tmp_path):
    folder = save_seq2seq(tmp_path / "marian", "marian")
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    changed(folder, "generation_config.json", bad_words_ids=[[pad]])
    module = task_of(folder, "marian").module
    with torch.no_grad():
        module.model.final_logits_bias[0, pad] = 1e3
    source = torch.tensor([[5, 6, 0]])
    with torch.inference_mode():
        state = module.start(module.encode(source, None))
        scores = module.step(torch.tensor([pad]), state)
    assert scores[0, pad] == -torch.inf
    assert scores[0, :pad].isfinite().all()


def test_what_is_no_encoder_decoder_is_refused(tmp_path):
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=300, pad_idx=1))
    save_encoder(tmp_path / "bert", "bert")
    save_language_model(tmp_path / "gpt2", "gpt2")
    settings = {"hidden_size": 16, "num_encoder_layers": 1, "num_decoder_layers": 1}
    settings |= {"num_encoder_attention_heads": 2, "num_decoder_attention_heads": 2}
    kind = transformers.AutoConfig.for_model("prophetnet", **settings, vocab_size=300)
    kind.save_pretrained(tmp_path / "prophetnet")  # which predicts several tokens at once
    save_file({}, tmp_path / "prophetnet/model.safetensors")
    for family in ("bert", "gpt2", "prophetnet"):
        config = PretrainedSeq2Seq.Config(path=str(tmp_path / family))
        with pytest.raises(UserError, match="which is not an encoder-decoder of"):
            config.build(tokenizer=tokenizer)
    with pytest.raises(UserError, match=r"model\.path is not set"):
        PretrainedSeq2Seq.Config().build(tokenizer=tokenizer)

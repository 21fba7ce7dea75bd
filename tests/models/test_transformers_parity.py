"""Beam search and changed scores are those of ``transformers``, step for step."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers import M2M100Config, M2M100ForConditionalGeneration

from textmill.models.decoders.pretrained_transformer import PretrainedTransformer, take_weights
from textmill.models.decoding import Decoding, decode

SIZE, PAD, BOS, EOS, LANGUAGE = 24, 1, 2, 3, 0
PREFIX = [EOS, LANGUAGE]
SIZES = {
    "vocab_size": SIZE, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "max_position_embeddings": 64, "scale_embedding": True,
    "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS,
    "forced_eos_token_id": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def theirs():
    """A model of ``transformers``, trained a little so that its outputs vary and end."""
    torch.manual_seed(0)
    model = M2M100ForConditionalGeneration(M2M100Config(**SIZES))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:  # biases and norms too, else swapped ones would not show
            nn.init.normal_(parameter, mean=float("norm.weight" in name), std=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        source, _, mask = sources(64)
        prefix = torch.tensor(PREFIX).repeat(len(source), 1)
        target = torch.cat([prefix, source], dim=1)  # copying
        labels = target[:, 1:].masked_fill(target[:, 1:] == PAD, -100)
        inputs = target[:, :-1].masked_fill(target[:, :-1] == PAD, EOS)
        loss = model(
            input_ids=source, attention_mask=mask, decoder_input_ids=inputs, labels=labels
        ).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.generation_config = type(model.generation_config)()
    return model.eval()


@pytest.fixture
def pair(theirs, tmp_path):
    """Theirs and ours, with the same weights."""
    theirs.save_pretrained(tmp_path)
    info = SimpleNamespace(size=SIZE, pad_idx=PAD, eos_idx=EOS)
    config = PretrainedTransformer.Config(path=str(tmp_path))
    ours = config.build(tokenizer=SimpleNamespace(vocab_info=info))
    take_weights(ours)
    return theirs, ours.eval()


def sources(rows=12, longest=9):
    """Random sources with padding at their ends."""
    lengths = torch.randint(2, longest + 1, (rows,))
    lengths[0] = longest
    source = torch.randint(4, SIZE, (rows, longest))
    source[torch.arange(rows), lengths - 1] = EOS
    mask = torch.arange(longest) < lengths[:, None]
    return source.masked_fill(~mask, PAD), lengths, mask.long()


def generated(theirs, source, mask, **settings):
    """Their sequences without prefix, end mark and padding, and their scores."""
    prefix = settings.pop("prefix")
    found = theirs.generate(
        source, attention_mask=mask, decoder_input_ids=torch.tensor(prefix).repeat(len(source), 1),
        decoder_start_token_id=prefix[0], eos_token_id=EOS, pad_token_id=PAD, do_sample=False,
        return_dict_in_generate=True, output_scores=True, **settings,
    )  # fmt: skip
    ids = found.sequences[:, len(prefix) :].tolist()
    ids = [row[: row.index(EOS)] if EOS in row else row for row in ids]
    scores = found.sequences_scores.tolist() if "sequences_scores" in found else None
    return ids, scores


@pytest.mark.parametrize(
    ("theirs_stop", "ours_stop"), [(False, "heuristic"), (True, "first"), ("never", "never")]
)
@pytest.mark.parametrize("length_penalty", [0.0, 2.0, -0.5])
def test_beam(pair, theirs_stop, ours_stop, length_penalty):
    theirs, ours = pair
    source, lengths, mask = sources(24)
    wanted, scores = generated(
        theirs, source, mask, prefix=PREFIX, num_beams=4, num_return_sequences=3, max_new_tokens=12,
        length_penalty=length_penalty, early_stopping=theirs_stop,
    )  # fmt: skip
    decoding = Decoding(
        beam_size=4, n_best=3, length_penalty=length_penalty, early_stopping=ours_stop,
        max_length_a=0, max_length_b=12,
    )  # fmt: skip
    found = decode(ours, source, lengths, decoding, prefix=PREFIX, eos_idx=EOS)
    assert [h.ids for row in found for h in row] == wanted
    found_scores = torch.tensor([h.score for row in found for h in row])
    torch.testing.assert_close(found_scores, torch.tensor(scores), rtol=1e-4, atol=1e-5)
    if length_penalty < 2:  # which makes all as long as they may be
        assert len({len(ids) for ids in wanted}) > 1


@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize(
    ("theirs_settings", "ours_settings"),
    [
        ({"suppress_tokens": "commonest"}, {"unknown_penalty": float("inf")}),
        (
            {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 4},
            {"repetition_penalty": 1.3, "no_repeat_ngram": 2, "min_length": 4},
        ),
    ],
)
def test_changed_scores(pair, num_beams, theirs_settings, ours_settings):
    theirs, ours = pair
    source, lengths, mask = sources(24)
    settings = {"prefix": PREFIX, "num_beams": num_beams, "max_new_tokens": 12}
    plain, _ = generated(theirs, source, mask, **settings)
    commonest = int(torch.tensor([token for row in plain for token in row]).mode().values)
    if "suppress_tokens" in theirs_settings:
        theirs_settings = {"suppress_tokens": [commonest]}
    wanted, scores = generated(theirs, source, mask, **settings, **theirs_settings)
    decoding = Decoding(beam_size=num_beams, max_length_a=0, max_length_b=12, **ours_settings)
    found = decode(ours, source, lengths, decoding, prefix=PREFIX, eos_idx=EOS, unk_idx=commonest)
    assert [row[0].ids for row in found] == wanted
    assert wanted != plain  # the setting matters
    if num_beams > 1:
        assert [row[0].score for row in found] == pytest.approx(scores, abs=1e-4)

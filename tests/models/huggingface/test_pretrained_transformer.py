"""Textmill's own Transformers compute what transformers does with the weights of a checkpoint."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from textmill.errors import UserError
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoders.pretrained_transformer import (
    PretrainedTransformer,
    named_tensors,
    own_config,
    take_weights,
)
from textmill.models.decoding import Decoding, decode
from textmill.models.transformer import NLLB_600M, Transformer

SIZE, EOS = 30, 2
SEQ2SEQ = {
    "vocab_size": SIZE, "d_model": 16, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24, "max_position_embeddings": 40, "pad_token_id": 1, "eos_token_id": EOS,
    "decoder_start_token_id": EOS, "forced_eos_token_id": None,
}  # fmt: skip
CAUSAL = {
    "vocab_size": SIZE, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 40, "bos_token_id": EOS, "eos_token_id": EOS,
}  # fmt: skip
FAMILIES = {
    "blenderbot": {**SEQ2SEQ, "encoder_no_repeat_ngram_size": 0},
    "gpt2": {**CAUSAL, "layer_norm_epsilon": 1e-3},
    "llama": {
        **CAUSAL,
        "intermediate_size": 24,
        "num_key_value_heads": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "m2m_100": {**SEQ2SEQ, "scale_embedding": True},
    "marian": {
        **SEQ2SEQ, "activation_function": "swish", "scale_embedding": True,
        "pad_token_id": SIZE - 1, "decoder_start_token_id": SIZE - 1, "max_position_embeddings": 40,
    },
    "pegasus": {**SEQ2SEQ, "scale_embedding": True, "activation_function": "relu"},
}  # fmt: skip
DECODERS = ("gpt2", "llama")
PUBLISHED = json.loads((Path(__file__).parent / "published_configs.json").read_text())
"""What config.json says of facebook/nllb-200-distilled-600M, Helsinki-NLP/opus-mt-en-de, gpt2."""


def save(folder, family, **more):
    """A random checkpoint, as transformers saves it, and its model."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **{**FAMILIES[family], **more})
    kind = transformers.AutoModelForSeq2SeqLM
    if family in DECODERS:
        kind = transformers.AutoModelForCausalLM
    model = kind.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # zeros and ones would say nothing
            if "embed_positions" not in name or family == "blenderbot":
                parameter.normal_(mean=float("norm.weight" in name), std=0.3)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    return model


def tokenizer_of(model, *, size=SIZE):
    """What our model asks of a tokenizer; a mark that a model lacks is behind its ids."""
    pad = model.config.pad_token_id
    marks = {"pad_idx": size if pad is None else pad, "eos_idx": EOS, "bos_idx": EOS}
    return SimpleNamespace(vocab_info=SimpleNamespace(size=size + (pad is None), **marks))


def made(folder, tokenizer, **settings):
    module = PretrainedTransformer.Config(path=str(folder), **settings).build(tokenizer=tokenizer)
    take_weights(module)
    return module.eval()


def sources(model):
    """Ids with padding at their ends, their lengths, and the mask of transformers."""
    lengths = torch.tensor([7, 3, 5, 2])
    ids = torch.randint(3, SIZE - 1, (4, 7))
    mask = torch.arange(7) < lengths[:, None]
    return ids.masked_fill(~mask, model.config.pad_token_id), lengths, mask.long()


@torch.no_grad()
def logits(model, module):
    """Theirs and ours, of the same ids."""
    torch.manual_seed(1)
    if isinstance(module, CausalTransformer):
        ids = torch.randint(3, SIZE, (3, 9))
        return model(ids).logits, module(ids)
    source, lengths, mask = sources(model)
    target = torch.randint(3, SIZE - 1, (4, 6))
    wanted = model(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
    return wanted, module(source, lengths, target)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers(family, tmp_path):
    model = save(tmp_path, family)
    wanted, found = logits(model, made(tmp_path, tokenizer_of(model)))
    assert wanted.std() > 0.2  # of near nothing all would be near
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_gradients_are_those_of_transformers(family, tmp_path):
    model = save(tmp_path, family)
    module = made(tmp_path, tokenizer_of(model))
    torch.manual_seed(1)
    if family in DECODERS:
        ids = torch.randint(3, SIZE, (3, 9))
        model(ids).logits.logsumexp(-1).sum().backward()
        module(ids).logsumexp(-1).sum().backward()
    else:
        ids, target = torch.randint(3, SIZE - 1, (4, 7)), torch.randint(3, SIZE - 1, (4, 6))
        model(input_ids=ids, decoder_input_ids=target).logits.logsumexp(-1).sum().backward()
        module(ids, None, target).logsumexp(-1).sum().backward()
    theirs = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    ours = {id(p): p.grad for p in module.parameters()}
    with torch.no_grad():  # gradients in the places of the weights have their names
        for parameter in module.parameters():
            parameter.copy_(ours[id(parameter)])
    named = dict(named_tensors(module, family))
    shared = theirs.keys() & named.keys()
    assert len(shared) > 20
    for name in shared:
        torch.testing.assert_close(named[name], theirs[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 16])  # which the fast step lays out in two ways
def test_what_a_checkpoint_bans_is_never_answered(rows, tmp_path):
    model = save(tmp_path, "marian")
    pad = SIZE - 1
    with torch.no_grad():
        model.model.shared.weight[pad] = 0  # as OPUS-MT's
        model.final_logits_bias[:] = -5.0
        model.final_logits_bias[0, pad] = 0.0
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(tmp_path)
    module = made(tmp_path, tokenizer_of(model))
    assert isinstance(module, Transformer)
    source = torch.randint(3, pad, (rows, 5))
    decoding = Decoding(beam_size=1, max_length_a=0, max_length_b=6)
    found = decode(module, source, None, decoding, prefix=[pad], eos_idx=EOS)
    with torch.inference_mode():
        state = module.start(module.encode(source, None))
        assert (module.step(torch.full((rows,), pad), state)[:, pad] == -torch.inf).all()
    out = model.generate(source, max_new_tokens=6, do_sample=False, num_beams=1)
    ended = [row[: row.index(EOS)] if EOS in row else row for row in out[:, 1:].tolist()]
    assert [row[0].ids for row in found] == ended
    assert "banned" not in "".join(module.state_dict())


def test_a_mark_that_no_text_has_gets_no_score(tmp_path):
    model = save(tmp_path, "gpt2")
    tokenizer = tokenizer_of(model)
    assert tokenizer.vocab_info.size == SIZE + 1
    assert len(made(tmp_path, tokenizer).output_weight) == SIZE


@pytest.mark.parametrize("family", ["gpt2", "marian"])
def test_ids_without_a_row_are_never_the_best(family, tmp_path):
    model = save(tmp_path, family)
    module = made(tmp_path, tokenizer_of(model, size=SIZE + 3))
    wanted, found = logits(model, module)
    torch.testing.assert_close(found[..., :SIZE], wanted, rtol=1e-5, atol=1e-5)
    assert (found.argmax(-1) < SIZE).all()


def test_the_size_of_nllb_is_the_published_one():
    wanted = dataclasses.replace(NLLB_600M, vocabulary_size=None)
    assert own_config(PUBLISHED["nllb-200"], "nllb-200") == wanted
    with torch.device("meta"):
        model = NLLB_600M.build(
            tokenizer=SimpleNamespace(vocab_info=SimpleNamespace(size=256_206, pad_idx=1))
        )
    assert round(sum(each.numel() for each in model.parameters()) / 1e6) == 615  # its model card


@pytest.mark.parametrize(
    ("family", "settings", "said"),
    [
        ("marian", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings"),
        ("marian", {"decoder_ffn_dim": 32}, "decoder_ffn_dim=32, where 24 is known"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("gpt2", {"activation_function": "tanh"}, "the activation 'tanh'"),
        ("llama", {"head_dim": 8}, "head_dim=8, where 4 is known"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "linear", "rope_theta": 9.0, "factor": 2.0}},
            "rope_parameters",
        ),
    ],
)
def test_what_own_layers_do_not_have_is_refused(family, settings, said):
    with pytest.raises(UserError, match=f"DIR is a {family} that textmill's own layers.*{said}"):
        own_config({**FAMILIES[family], **settings, "model_type": family}, "DIR")


def test_another_tokenizer_is_refused(tmp_path):
    save(tmp_path, "marian")
    info = SimpleNamespace(size=SIZE, pad_idx=0, eos_idx=EOS)
    with pytest.raises(UserError, match=r"padding is 0, but .* is 29: .*tokenizer.type=pretrained"):
        made(tmp_path, SimpleNamespace(vocab_info=info))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"transformer.ln_f.bias": None}, "transformer.ln_f.bias is missing"),
        ({"transformer.ln_f.bias": torch.zeros(9)}, r"ln_f.bias is \[9\], not \[16\]"),
        ({"transformer.wpe.weight": torch.zeros(41, 16)}, r"wpe.weight is \[41, 16\]"),
        ({"transformer.h.9.ln_1.bias": torch.zeros(16)}, "h.9.ln_1.bias has no place"),
        ({"transformer.wte.weight": torch.zeros(16)}, r"wte.weight is \[16\]"),
    ],
)
def test_weights_of_another_shape_are_refused(change, said, tmp_path):
    model = save(tmp_path, "gpt2")
    file = tmp_path / "model.safetensors"
    found = {**load_file(file), **change}
    save_file({name: value for name, value in found.items() if value is not None}, file)
    with pytest.raises(UserError, match=f"do not fit its architecture gpt2: .*{said}"):
        made(tmp_path, tokenizer_of(model))

"""Folders of pretrained models that are damaged, quantized, or of odd settings: each is refused."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

import textmill
from tests.pretrained_checkpoints import changed, save_encoder, save_language_model, save_seq2seq
from textmill.errors import UserError
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.decoders.pretrained_transformer import PretrainedTransformer, take_weights
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.preflight.check import check

INFO = SimpleNamespace(size=60, pad_idx=0, bos_idx=0, eos_idx=0, known_idx=range(60))
TOKENIZER = SimpleNamespace(vocab_info=INFO)


def begun_encoder(folder):
    found = PretrainedEncoder.Config(path=str(folder)).build(vocab_info=INFO)
    return found.begin()


def begun_decoder(folder):
    return PretrainedLanguageModel.Config(path=str(folder)).build(tokenizer=TOKENIZER).begin()


def begun_own(folder):
    return take_weights(PretrainedTransformer.Config(path=str(folder)).build(tokenizer=TOKENIZER))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    hub = tmp_path_factory.mktemp("hub")
    save_encoder(hub / "bert", "bert")
    save_language_model(hub / "gpt2", "gpt2", pad_token_id=None)
    return hub


@pytest.fixture
def folder(saved, tmp_path, family):
    return shutil.copytree(saved / family, tmp_path / family)


def with_tensors(folder, change):
    found = load_file(folder / "model.safetensors")
    change(found)
    save_file(found, folder / "model.safetensors")


@pytest.mark.parametrize("family", ["bert"])
def test_quantized_weights_are_refused(folder):
    changed(folder, "config.json", quantization_config={"quant_method": "fp8"})
    with pytest.raises(UserError, match="quantization_config"):
        begun_encoder(folder)


@pytest.mark.parametrize(
    ("begun", "family"), [(begun_encoder, "bert"), (begun_decoder, "gpt2"), (begun_own, "gpt2")]
)
def test_a_file_that_is_cut_off_is_refused(begun, folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{folder} do not load"):
        begun(folder)


@pytest.mark.parametrize("family", ["bert"])
def test_a_file_that_an_index_names_must_be_there(folder):
    names = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = folder / "model.safetensors.index.json"
    weight_map = dict.fromkeys(names, "model-1.safetensors")
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    begun_encoder(folder)
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(UserError, match="do not load"):
        begun_encoder(folder)


@pytest.mark.parametrize(
    ("begun", "family", "values", "why"),
    [
        (begun_encoder, "bert", {"vocab_size": "abc"}, "says vocab_size='abc', where the number"),
        (begun_own, "gpt2", {"vocab_size": -1}, "says vocab_size=-1"),
        (begun_encoder, "bert", {"hidden_act": "none"}, "makes no bert: KeyError: 'none'"),
        (begun_encoder, "bert", {"num_attention_heads": 3}, "makes no bert: The hidden size"),
        (begun_decoder, "gpt2", {"n_head": 3}, "makes no gpt2: "),
        (begun_own, "gpt2", {"n_head": 3}, "gpt2|model.num_heads"),
    ],
)
def test_odd_settings_are_refused_by_name(begun, folder, values, why):
    changed(folder, "config.json", **values)
    with pytest.raises(UserError, match=why):
        begun(folder)


@pytest.mark.parametrize("words", ["no", [[10**9]]])
def test_odd_bans_are_refused(tmp_path, words):
    folder = save_seq2seq(tmp_path / "t5", "t5", bad_words_ids=None)
    changed(folder, "config.json", bad_words_ids=words)
    with pytest.raises(UserError, match=r"says bad_words_ids=.* where lists of tokens' ids are"):
        PretrainedSeq2Seq.Config(path=str(folder)).build(tokenizer=TOKENIZER)


@pytest.mark.parametrize(
    ("begun", "family", "values"),
    [
        (begun_encoder, "bert", {"vocab_size": 1 << 40}),
        (begun_decoder, "gpt2", {"n_positions": 1 << 12}),
    ],
)
def test_a_model_larger_than_its_weights_is_refused(begun, folder, values):
    changed(folder, "config.json", **values)
    with pytest.raises(UserError, match=r"do not fit|makes no bert"):
        begun(folder)


@pytest.mark.parametrize(
    ("begun", "family", "values", "name"),
    [
        (begun_encoder, "bert", {"num_hidden_layers": 1}, "encoder.layer.1."),
        (begun_decoder, "gpt2", {"n_layer": 1}, "transformer.h.1."),
        (begun_own, "gpt2", {"n_layer": 1}, "transformer.h.1."),
    ],
)
def test_layers_without_a_place_are_refused(begun, folder, values, name):
    changed(folder, "config.json", **values)
    with pytest.raises(UserError, match=f"{name}.* has no place"):
        begun(folder)


@pytest.mark.parametrize("family", ["bert"])
def test_other_tensors_without_a_place_are_said(folder):
    line = begun_encoder(folder)
    assert "Without a place" not in line, "the pooler is not among them"
    with_tensors(folder, lambda t: t.update({"embeddings.more.weight": torch.zeros(2)}))
    assert (
        begun_encoder(folder) == f"{line} Without a place in it: embeddings.more.weight, 1 in all."
    )
    with_tensors(
        folder,
        lambda t: t.update({f"bert.{n}": t.pop(n) for n in [*t]} | {"cls.bias": torch.zeros(2)}),
    )
    line = f"{line} Without a place in it: bert.embeddings.more.weight, 1 in all."
    assert begun_encoder(folder) == line


@pytest.mark.parametrize("family", ["bert"])
def test_a_check_reads_the_weights(folder, tmp_path):
    rows = tmp_path / "rows.tsv"
    rows.write_text("good\tthe cat sat\nbad\tdogs bark\n" * 4)
    words = [f"model.encoder.path={folder}", f"train_data.path={rows}", f"valid_data.path={rows}"]
    words += ["task.max_length=30", "trainer.max_steps=2", "reporters.html=false"]
    assert check("classification/pretrained", words).problems == []
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    (problem,) = check("classification/pretrained", words).problems
    assert "do not load" in problem
    with pytest.raises(UserError, match="do not load"):
        textmill.load_encoder(str(folder))

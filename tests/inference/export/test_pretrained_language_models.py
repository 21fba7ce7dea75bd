"""Exports of pretrained decoders: transformers and other programs go on with texts as the run."""

import json
import os

import pytest
import torch
import transformers

from tests.pretrained_checkpoints import LANGUAGE_MODELS, TEXTS, save_language_model
from textmill.inference import Predictor
from textmill.inference.export.folder import write_export
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoding import Decoding
from textmill.models.lora import Lora
from textmill.tasks.language_model import LanguageModeling
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

ROWS = [{"text": text} for text in (*TEXTS, "", "the cat <s> </s> <|endoftext|> <bos>")]
GREEDY = Decoding(max_length_a=0.0, max_length_b=6)


def predictor(folder, family, *, decoding=GREEDY, **model):
    saved = save_language_model(folder / family, family)
    tokenizer = PretrainedTokenizer.Config(path=saved / "tokenizer.json").build()
    config = PretrainedLanguageModel.Config(path=str(saved), **model)
    module = config.build(tokenizer=tokenizer)
    task = LanguageModeling.Config(block=24, decoding=decoding).build(
        module=module, tokenizer=tokenizer
    )
    task.initialize()
    module.eval()
    return Predictor(task, checkpoint="made")


def slow_but(*quick):
    """Families to test; all but those that are quick are slow."""
    slow = pytest.mark.slow
    return [f if f in quick else pytest.param(f, marks=slow) for f in LANGUAGE_MODELS]


def exported(model, form, out):
    return write_export(model, form, out, rows=ROWS, where="rows", source={})


@pytest.mark.parametrize("family", slow_but("gpt2", "llama"))
def test_transformers_goes_on_alike(tmp_path, family):
    model, out = predictor(tmp_path, family), tmp_path / "out"
    found = exported(model, "huggingface", out)
    assert (found.same, found.rows) == (len(ROWS), len(ROWS))
    assert found.largest < 1e-5
    mask = os.umask(0)
    os.umask(mask)
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o666 & ~mask}
    assert json.loads((out / "config.json").read_text())["model_type"] == family
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(out)
    begun = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / family / "tokenizer.json")
    )
    own = begun("the cat")["input_ids"]
    assert tokenizer("the cat")["input_ids"][-len(own) :] == own
    texts = [row["text"] for row in ROWS]
    batch = tokenizer(texts, padding=True, return_tensors="pt", padding_side="left")
    added = theirs.generate(**batch)[:, batch["input_ids"].shape[1] :]
    told = tokenizer.batch_decode(added, skip_special_tokens=True)
    assert told == [answer.text for answer in model(ROWS)]


def test_adapters_are_in_the_weights(tmp_path):
    model = predictor(tmp_path, "llama", lora=Lora(rank=2))
    with torch.no_grad():
        for name, parameter in model.task.module.named_parameters():
            if ".lora_" in name:
                parameter.normal_(std=0.3)
    found = exported(model, "huggingface", tmp_path / "out")
    assert (found.same, found.largest < 1e-5) == (len(ROWS), True)
    assert any(".lora_" in name for name, _ in model.task.module.named_parameters())


@pytest.mark.parametrize("family", slow_but("opt"))
def test_ctranslate2_goes_on_alike(tmp_path, family):
    model, out = predictor(tmp_path, family), tmp_path / "out"
    weights = {name: each.clone() for name, each in model.task.module.state_dict().items()}
    found = exported(model, "ctranslate2", out)
    for name, each in model.task.module.state_dict().items():
        assert torch.equal(each, weights.pop(name))
    assert not weights
    assert (found.same, found.rows) == (len(ROWS), len(ROWS))
    assert found.largest < 1e-5

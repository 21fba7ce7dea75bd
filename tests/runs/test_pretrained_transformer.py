"""Runs of textmill's own Transformers that begin with published weights, and are then whole."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import textmill
from tests.pretrained_checkpoints import LANGS, TEXTS, changed, save_language_model, save_seq2seq
from tests.runs.pretrained_runs import answers, quick, train_from
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.transformer import Transformer
from textmill.runs.export import export

FAMILIES = ("gpt2", "llama", "m2m_100", "marian", "nllb")
ASKED = ["the cat sat", "dogs bark at the moon"]


def checkpoint(folder: Path, family: str) -> Path:
    save = save_language_model if family in ("gpt2", "llama") else save_seq2seq
    return save(folder / family, family)


def trained(folder: Path, family: str, *more: str, steps: int = 2) -> Path:
    """A run of a few steps that begins with the checkpoint in the folder."""
    language = family in ("gpt2", "llama")
    rows = TEXTS if language else [f"{text}\t{text[::-1]}" for text in TEXTS]
    own = ["task.block=16", "task.decoding.sample=false"]
    if not language:
        own = ["task.decoding.max_length_a=0"]
    if family in LANGS:
        source, target = LANGS[family]
        own += [f"tokenizer.source_langs=[{source}]", f"tokenizer.target_langs=[{target}]"]
    words = ["model.type=pretrained_transformer", f"model.path={folder / family}"]
    words += ["trainer.max_epochs=9", *own, *more]
    text, suffix = "\n".join(rows * 4) + "\n", "txt" if language else "tsv"
    name = f"{'language' if language else 'translation'}/pretrained"
    return train_from(folder, name, text, *words, suffix=suffix, steps=steps)


@pytest.mark.parametrize("family", quick(FAMILIES, "marian"))
def test_a_run_is_whole_and_exported(family: str, tmp_path: Path) -> None:
    checkpoint(tmp_path, family)
    run = trained(tmp_path, family)
    before = answers(run, ASKED)
    shutil.rmtree(tmp_path / family)
    run = Path(shutil.move(run, tmp_path / "moved"))
    assert answers(run, ASKED) == before
    module = textmill.load(run).task.module
    assert isinstance(module, Transformer | CausalTransformer)
    for kind in ("huggingface", "ctranslate2"):
        export(run, kind, out=tmp_path / kind)  # which compares answers to the rows of valid_data


@pytest.mark.slow
@pytest.mark.parametrize("model", ["pretrained_seq2seq", "pretrained_transformer"])
def test_what_a_checkpoint_bans_is_banned_in_exports(model: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "marian")
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    changed(folder, "generation_config.json", bad_words_ids=[[pad]])
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["final_logits_bias"][0, pad] = 1e3
    save_file(weights, file, metadata={"format": "pt"})
    greedy = ["task.decoding.beam_size=1", "task.decoding.max_length_b=6", "task.label_smoothing=0"]
    run = trained(tmp_path, "marian", *greedy, f"model.type={model}")
    module = textmill.load(run).task.module
    assert module.banned.tolist() == [pad]
    for kind in ("huggingface", "ctranslate2"):
        found = export(run, kind, out=tmp_path / kind).comparison
        assert found.same == found.rows


def test_the_first_loss_is_that_of_transformers(tmp_path: Path) -> None:
    import transformers

    checkpoint(tmp_path, "marian")
    run = trained(tmp_path, "marian", "optimizer.lr=1e-12", "trainer.ema=null", steps=1)
    predictor = textmill.load(run)
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    text = predictor.task.text
    row = {"source": TEXTS[0], "target": TEXTS[1]}
    ids = text.encode([row], with_targets=True)
    source, target = (torch.from_numpy(ids[n][0].copy()).long()[None] for n in ("source", "target"))
    with torch.no_grad():
        theirs = model(input_ids=source, decoder_input_ids=target[:, :-1]).logits
        ours = predictor.task.module(source, None, target[:, :-1])
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)

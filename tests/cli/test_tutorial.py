"""The tutorial of the 2023 fairseq2 with textmill's names: a script that grows, each step tried.

The scripts are those of docs/coming-from-fairseq2.md, on a file of 125 pairs.
"""

import re
import shutil

import pytest

import textmill
from textmill.cli.main import main

DOC = '"""Train eng-fra translation model on Tatoeba dataset"""\n'

TOKENIZER = '''
from pathlib import Path

from textmill import data, text

TSV_FILE = Path("examples/fra.txt")
SPM_PATTERN = "examples/fra.{vocab_size}.spm"


def tokenizer(
    tsv_file: Path = TSV_FILE, vocab_size: int = 50, spm: str = SPM_PATTERN
) -> text.MultilingualTokenizer:
    """eng-fra sentencepiece tokenizer"""
    spm_path = Path(spm.format(vocab_size=vocab_size))
    if not spm_path.exists():
        eng_fra = (
            data.read_text(tsv_file, rtrim=True)
            .map(lambda line: "\\n".join(line.split("\\t")[:2]))
            .and_return()
        )
        text.train_sentencepiece(eng_fra, spm_path, vocab_size=vocab_size)
    return text.MultilingualTokenizer.from_file(
        spm_path, source_langs={"eng"}, target_langs={"fra"}
    )
'''

TRAIN_DATA = '''
from textmill.runtime.devices import Env


def train_data(
    tokenizer: text.MultilingualTokenizer,
    env: Env,
    batch_size: int = 32,
    tsv_file: Path = TSV_FILE,
) -> data.DataPipeline:
    """Batches of English sentences and their French translations"""

    def column(encoder: text.Encoder, number: int) -> data.DataPipeline:
        return (
            data.read_text(tsv_file, rtrim=True)
            .map(lambda line: line.split("\\t")[number])
            .map(encoder)
            .and_return()
        )

    pad_idx = tokenizer.vocab_info.pad_idx
    source = column(tokenizer.create_encoder(mode="source", lang="eng"), 0)
    target = column(tokenizer.create_encoder(mode="target", lang="fra"), 1)
    return (
        data.zip_pipelines([source, target])
        .shuffle(10_000)
        .batch(batch_size, pad_idx=pad_idx)
        .map(lambda pair: data.Seq2SeqBatch.from_padded(*pair, pad_idx=pad_idx).to(env.device))
        .and_return()
    )
'''

MODULE = '''
import dataclasses

import torch

from textmill import models


def module(
    model_cfg: models.Transformer.Config, tokenizer: text.MultilingualTokenizer, env: Env
) -> torch.nn.Module:
    """A Transformer on the device of this run"""
    return model_cfg.build(tokenizer=tokenizer).to(env.device)


def model_cfg(
    tokenizer: text.MultilingualTokenizer, model_dim: int = 16, num_layers: int = 1
) -> models.Transformer.Config:
    """NLLB's architecture, made smaller"""
    return dataclasses.replace(
        models.NLLB_600M,
        vocabulary_size=tokenizer.vocab_info.size,
        pad_idx=tokenizer.vocab_info.pad_idx,
        dim=model_dim,
        num_encoder_layers=num_layers,
        num_decoder_layers=num_layers,
        num_heads=4,
        ffn_dim=model_dim * 4,
    )
'''


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Gives a command to textmill in an empty folder with the data; returns what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    names = [
        ("cat", "chat"),
        ("dog", "chien"),
        ("book", "livre"),
        ("wall", "mur"),
        ("bread", "pain"),
    ]
    colours = [
        ("red", "rouge"),
        ("small", "petit"),
        ("old", "vieux"),
        ("new", "neuf"),
        ("big", "gros"),
    ]
    what = [
        ("here", "ici"),
        ("there", "là"),
        ("yours", "à toi"),
        ("mine", "à moi"),
        ("gone", "parti"),
    ]
    rows = [
        f"The {a} {b} is {c}.\tLe {y} {x} est {z}.\tCC-BY 2.0"
        for a, x in colours
        for b, y in names
        for c, z in what
    ]
    (tmp_path / "examples" / "fra.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def command(line, *, code=0):
        capsys.readouterr()
        found = main(line.split())
        printed = capsys.readouterr()
        assert found == code, printed.out + printed.err
        assert "Traceback" not in printed.err
        return printed.out + printed.err

    return command


def test_the_tutorial(run, tmp_path):  # one story
    script = tmp_path / "tatoeba.py"

    script.write_text(DOC)
    text = run("help tatoeba.py")
    assert text.startswith("Train eng-fra translation model on Tatoeba dataset\n")
    assert re.findall("!!! .* !!!", text) == [
        "!!! No tokenizer specified !!!",
        "!!! No module specified !!!",
        "!!! No train_data specified !!!",
    ]
    assert "no 'tokenizer' is specified" in run("train tatoeba.py", code=2)

    script.write_text(DOC + TOKENIZER)
    text = run("help tatoeba.py")
    assert "**tokenizer** (MultilingualTokenizer): eng-fra sentencepiece tokenizer\n" in text
    assert "  tokenizer.vocab_size (int): (default=50)\n" in text
    assert "!!! No tokenizer" not in text
    text = run("test tatoeba.py -f tokenizer")
    assert "Success! tokenizer() = MultilingualTokenizer(50 ids, eng->fra)\n" in text
    assert "trained a unigram tokenizer of 50 pieces: examples/fra.50.spm\n" in text
    made = (tmp_path / "examples" / "fra.50.spm").stat().st_mtime_ns
    assert run("test -f tokenizer tatoeba.py") == (
        "Success! tokenizer() = MultilingualTokenizer(50 ids, eng->fra)\n"
    )
    assert (tmp_path / "examples" / "fra.50.spm").stat().st_mtime_ns == made
    assert "MultilingualTokenizer(45 ids" in run("test tatoeba.py -f tokenizer vocab_size=45")

    script.write_text(DOC + TOKENIZER + TRAIN_DATA)
    text = run("test tatoeba.py -f train_data")
    assert "train_data, one epoch: 4 batches, 125 examples in " in text
    assert re.search(r"[\d,]+ tokens/s, padding \d+\.\d %\n", text)
    assert "!!! No module specified !!!" in run("help tatoeba.py")

    script.write_text(DOC + TOKENIZER + TRAIN_DATA + MODULE)
    assert "!!!" not in run("help tatoeba.py")
    assert "Transformer.Config(vocabulary_size=50" in run("test tatoeba.py -f model_cfg")
    assert "Success! module() = Transformer(" in run("test tatoeba.py vocab_size=45 -f module")
    text = run("check tatoeba.py vocab_size=45")
    assert "batches against the text processor: the same ids" in text
    assert text.endswith("Ready to train.\n")

    text = run("train tatoeba.py vocab_size=45 max_steps=3 --run-dir run")
    assert text.startswith("steps: 3\nrun: run\n")
    config = (tmp_path / "run" / "config.yaml").read_text()
    settings, _, built = config.partition("\nbuilt:")
    assert "vocab_size: 45" in settings
    assert "vocabulary_size: 45" in built

    shutil.rmtree(tmp_path / "examples")
    script.unlink()
    (tmp_path / "new.txt").write_text("The old dog is here.\nThe big wall is mine.\n")
    for name in ("inference", "predict"):
        assert len(run(f"{name} run new.txt").splitlines()) == 2
    (tmp_path / "pairs.tsv").write_text("The old dog is here.\tLe chien vieux est ici.\n")
    text = run("evaluate run valid_data.path=pairs.tsv")
    assert text.startswith("valid_data (1 answered rows)\n")
    answer = textmill.load("run")("The old dog is here.")
    assert isinstance(answer.text, str)

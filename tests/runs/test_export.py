"""Exporting a run: by command, at the end of a training, and what is said before one."""

import dataclasses
import errno
import importlib.util
import json

import pytest

import textmill
from tests.trained_run import train_script
from textmill.cli.main import main
from textmill.errors import PlanError, StorageError, UserError
from textmill.exported import load
from textmill.exported.manifest import MANIFEST, ExportError
from textmill.inference.export import ctranslate2
from textmill.inference.export.compare import Comparison
from textmill.runs.export import export

OWN = """
from textmill import data

del train_data, valid_data, tokenizer


def tokenizer():
    from textmill.text import MultilingualTokenizer, train_sentencepiece

    path = HERE / "spm.model"
    if not path.exists():
        lines = (HERE / "train.tsv").read_text().split("\\n")
        train_sentencepiece(lines, path, vocab_size=60)
    return MultilingualTokenizer.from_file(path, source_langs=["a"], target_langs=["b"])


class Own:
    def __init__(self, ids):
        self.ids, self.source_lengths = ids, [ids.shape[1]]

    def to(self, device):
        return self


class Mine(Translation):
    def batch_size(self, batch):
        return 1

    def training_step(self, batch, examples=()):
        batch = data.Seq2SeqBatch(batch.ids, None, batch.ids, None)
        return super().training_step(batch, examples)


def train_data():
    import torch

    return [Own(torch.tensor([[2, 9, 8, 3]]))] * 3


task = Mine.Config()
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that was exported at its end, with its data beside it."""
    folder = tmp_path_factory.mktemp("trained")
    return train_script(folder, words=("trainer.export=[ctranslate2]",))


def compared(folder):
    return json.loads((folder / MANIFEST).read_bytes())["compared"]


def test_a_training_ends_with_the_export_and_says_how_it_compares(trained):
    made = trained / "export" / "ctranslate2"
    assert compared(made)["where"] == "valid_data"
    assert compared(made)["same"] == compared(made)["rows"] == 8
    info = json.loads((trained / "run.json").read_text())
    source = json.loads((made / MANIFEST).read_bytes())["source"]
    assert source["key"] == info["key"]
    assert source["checkpoint"] == f"step-{info['result']['best']['step']:08}"
    assert load(made, device="cpu")("Go.").text == textmill.load(trained)("Go.").text
    said = (trained / "log.txt").read_text(encoding="utf-8")
    assert f"Exported to {made}. Compared on 8 rows of valid_data: 8 answers are the same," in said
    assert info["result"]["exports"] == {"ctranslate2": compared(made)}


def test_batches_without_text_are_refused_before_the_training(tmp_path, capsys):
    with pytest.raises(UserError) as caught:
        train_script(tmp_path, OWN, words=("trainer.export=[ctranslate2]",))
    message = (
        "trainer.export=ctranslate2: an export is compared with the run on rows of valid_data, "
        "test_data or train_data, but none of them has the text of 'source'. Leave trainer.export "
        "out, and export the run when it has ended, with a text file of rows: textmill export RUN "
        "--format ctranslate2 --rows FILE"
    )
    assert str(caught.value) == message
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert main(["check", str(tmp_path / "tiny.py"), "trainer.export=[ctranslate2]"]) == 2
    assert f"export: {message}" in capsys.readouterr().err


def test_an_export_that_fails_names_the_run_and_the_command(tmp_path, monkeypatch):
    real = Comparison.check

    def other(found):
        real(dataclasses.replace(found, same=0))

    monkeypatch.setattr(Comparison, "check", other)
    with pytest.raises(ExportError) as caught:
        train_script(tmp_path, words=("trainer.export=[ctranslate2]",))
    run = tmp_path / "run"
    first, second = str(caught.value).split("\n")
    assert first.startswith("The export differs from the model on 8 rows of valid_data: 8 answers")
    assert second == (
        f"The training of {run} itself is over, and its checkpoints are kept. To compare an export "
        f"of it on other rows: textmill export {run} --format ctranslate2 --rows FILE"
    )
    assert list((run / "export").iterdir()) == []


@pytest.mark.slow
def test_a_run_that_goes_on_says_that_its_export_is_of_before(tmp_path):
    run = train_script(tmp_path)
    made = export(run, "ctranslate2").folder
    (run / "export" / "notes").mkdir()
    (run / "export" / "list.txt").write_text("mine", encoding="utf-8")
    checkpoint = json.loads((made / MANIFEST).read_bytes())["source"]["checkpoint"]
    line = (
        f"{made} is an export of {checkpoint} and stays that when the run goes on. To have one of "
        f"what it becomes, delete that folder, then: textmill export {run} --format ctranslate2\n"
    )
    textmill.train(run, ["trainer.max_steps=6"], allow_code=True)
    said = (run / "log.txt").read_text(encoding="utf-8")
    assert said.count(line) == said.count(" is an export of ") == 1
    textmill.train(run, ["trainer.max_steps=8", "trainer.export=[ctranslate2]"], allow_code=True)
    assert (run / "log.txt").read_text(encoding="utf-8").count(" is an export of ") == 1
    assert (run / "export" / "list.txt").exists()


def test_what_cannot_be_exported_is_said_before_the_training(tmp_path, monkeypatch):
    words = ("trainer.export=[ctranslate2]",)
    with pytest.raises(UserError, match=r"task\.decoding\.sample is True"):
        train_script(tmp_path / "a", words=(*words, "task.decoding.sample=true"))
    assert not (tmp_path / "a" / "run" / "checkpoints").exists()
    with pytest.raises(PlanError, match="tflite"):
        train_script(tmp_path / "b", words=("trainer.export=[tflite]",))
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(UserError, match=r"^The export format 'ctranslate2' needs the package"):
        train_script(tmp_path / "c", words=words)
    assert not (tmp_path / "c" / "run").exists()


def test_a_run_whose_export_failed_is_gone_on_with_to_its_export(tmp_path, monkeypatch):
    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "model.bin"))

    with monkeypatch.context() as patch:
        patch.setattr(ctranslate2, "write_graph", full)
        with pytest.raises(StorageError, match="No space left on device"):
            train_script(tmp_path, words=("trainer.export=[ctranslate2]",))
    run = tmp_path / "run"
    info = json.loads((run / "run.json").read_text())
    assert not info["finished"]
    assert "No space left on device" in info["failed"]
    assert list((run / "export").iterdir()) == []
    textmill.train(run, allow_code=True)
    info = json.loads((run / "run.json").read_text())
    assert info["finished"]
    assert "failed" not in info
    assert compared(run / "export" / "ctranslate2")["same"] == 8


OWN_MODULE = '''
import torch
from pathlib import Path
from torch import nn
from textmill import like
from textmill.data import TextRows
from textmill.models.classifier import Classifier
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Trainer


class Mine(SequenceEncoder):
    class Config(SequenceEncoder.Config):
        """It has none."""

    def __init__(self, config, *, dim):
        super().__init__(config, dim=dim)
        self.line = nn.Linear(dim, dim)

    def forward(self, x, lengths):
        x = self.line(x)
        {chosen}


train_data = TextRows.Config(path=Path(__file__).with_name("train.tsv"))
valid_data = like("train_data", shuffle=False)
tokenizer = FittedWords.Config()
labels = FittedLabels.Config()
model = Classifier.Config(embedding={{"dim": 8}}, encoder=Mine.Config())
task = DocumentClassification.Config()
optimizer = Adam.Config()
trainer = Trainer.Config(max_steps=2, export=["onnx"])
'''
BRANCH = "return 2 * x if x.sum() > 0 else x"


def own_module(folder, chosen):
    rows = [f"{label}\ta b {label}\n" for label in ("ham", "spam") * 4]
    (folder / "train.tsv").write_text("".join(rows))
    script = folder / "mine.py"
    script.write_text(OWN_MODULE.format(chosen=chosen))
    return script


def test_a_module_that_no_graph_can_be_made_of_is_refused_before_the_first_step(tmp_path, capsys):
    """Its numbers decide what is computed: torch would say so when the training is over."""
    script = own_module(tmp_path, BRANCH)
    line = 1 + script.read_text().splitlines().index(f"        {BRANCH}")
    refused = (
        f"Torch cannot make a graph of this model, a Classifier: Mine.forward does in "
        f"{script}:{line} what no graph can: {BRANCH}. Torch says: Could not guard on "
    )
    with pytest.raises(UserError) as caught:
        textmill.train(script, ["reporters.console=false"], run_dir=tmp_path / "run")
    assert str(caught.value).startswith(refused)
    assert str(caught.value).endswith(
        "A graph is made before there are numbers: choose by torch.where, not by if, and take no "
        "number out of a tensor. Or leave the export out, and use the run itself: textmill "
        "predict RUN"
    )
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
    assert main(["check", str(script)]) == 2
    assert f"{script}:{line} what no graph can" in "".join(capsys.readouterr())

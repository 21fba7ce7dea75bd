"""Exports of a pruned run: without its zero units where the format can, with the same answers."""

import onnx
import pytest

import textmill
from tests.runs.test_pretrained import trained
from tests.runs.tiny import write_recipe
from textmill.exported import load
from textmill.runs.export import export

PRUNING = ("trainer.pruning.sparsity=0.75", "trainer.pruning.end=2", "trainer.pruning.every=1")


def test_an_encoder_is_smaller_in_onnx_and_whole_for_transformers(tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("the cat sat on the mat\ndogs bark\n")
    run = trained("classification", "bert", tmp_path, *PRUNING)
    folder = export(run, "onnx", rows=rows).folder
    predictor = textmill.load(run)
    found = load(folder, device="cpu")("the moon").scores
    assert found == pytest.approx(predictor("the moon").scores, abs=1e-5)
    layer = predictor.task.module.text.encoder.model.encoder["layer"][0]
    units, dim = layer.intermediate.dense.weight.shape
    graph = onnx.load(folder / "graph/model.onnx").graph
    shapes = [{*each.dims} for each in graph.initializer]
    assert {units, dim} not in shapes
    assert {units // 4, dim} in shapes
    whole = export(run, "huggingface", rows=rows)
    assert whole.comparison.same == 2


def test_a_translator_is_smaller_in_ctranslate2(tmp_path):
    made = []
    for name, settings in (("whole", []), ("pruned", PRUNING)):
        folder = write_recipe(tmp_path / name)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            textmill.run_experiment("tiny.py", "train", "run", [*settings, "trainer.max_steps=4"])
            done = export("run", "ctranslate2")
            made.append(sum(path.stat().st_size for path in (done.folder / "graph").iterdir()))
        assert done.comparison.same == done.comparison.rows
    pruned = 2 * 24  # of two blocks with 32 units each
    assert made[0] - made[1] == pytest.approx(4 * pruned * (16 + 16 + 1), rel=0.1)

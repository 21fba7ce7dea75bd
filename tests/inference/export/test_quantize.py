"""Quantized exports: what they cost is measured, told, and refused where it is too much."""

import json
import math
import shutil

import pytest
import torch

from tests.trained_run import PAIRS, copy_of, library_run, train_script
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.exported import load
from textmill.exported.formats import ExportSettings
from textmill.exported.manifest import MANIFEST, ExportError
from textmill.inference.export.folder import write_export
from textmill.inference.export.quality import Quality
from textmill.run_folder.folder import RunFolder
from textmill.runs.export import export


def quality(run, found, **more):
    given = {"metric": "accuracy", "better": "higher", "size": 0.3, "max_quality_loss": 0.05}
    values = {"run": {"accuracy": run}, "export": {"accuracy": found}}
    return Quality(quantize="int8", rows=557, where="valid_data", **{**given, **values, **more})


def test_the_command_says_what_it_costs(tmp_path, capsys):
    name = "ctranslate2"
    folder = copy_of(library_run(), tmp_path / "run")
    main(["export", str(folder), "--format", name])
    assert main(["export", str(folder), "--format", name, "--quantize", "int8"]) == 0
    said, out = capsys.readouterr().out.splitlines()[-2:]
    assert said.startswith("Quantized to int8: bleu ")
    assert out == str(folder / "export" / f"{name}-int8")
    whole, small = folder / "export" / name, folder / "export" / f"{name}-int8"
    found = json.loads((small / MANIFEST).read_bytes())["compared"]["quality"]
    assert (found["quantize"], found["metric"], found["max_quality_loss"]) == ("int8", "bleu", 0.05)
    assert set(found["run"]) == set(found["export"]) == {"bleu", "chrf", "bleu_single"}
    sizes = [sum(f.stat().st_size for f in (e / "graph").iterdir()) for e in (small, whole)]
    assert found["size"] == pytest.approx(sizes[0] / sizes[1])
    assert isinstance(load(small, device="cpu", threads=1)("Go.").text, str)


def test_what_cannot_be_measured_is_refused(tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("Go.\nStop.\n", encoding="utf-8")
    form = ExportSettings("ctranslate2", quantize="int8")
    with pytest.raises(UserError, match="is measured on rows with 'source' and 'target', but none"):
        export(library_run(), form, out=tmp_path / "out", rows=rows)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.txt"]


@pytest.mark.parametrize(
    ("run", "found", "more", "refused"),
    [
        (0.98, 0.94, {}, False), (0.98, 0.93, {}, True), (2.0, 2.2, {"better": "lower"}, True),
        (0.0, 0.1, {"better": "lower"}, True), (-1.0, -1.1, {}, True), (0.9, math.nan, {}, True),
        (0.9, 0.89, {"max_quality_loss": 0.0}, True), (0.0, 0.2, {"max_quality_loss": 0.0}, False),
        (-1.0, -0.5, {"max_quality_loss": 0.0}, False),
    ],
)  # fmt: skip
def test_what_lost_too_much_is_refused(run, found, more, refused):
    measured = quality(run, found, **more)
    if not refused:
        measured.check()
        return
    with pytest.raises(ExportError, match=r"the export is worse by .*of the run's accuracy"):
        measured.check()


def test_a_share_where_nothing_is_quantized_is_refused(capsys):
    assert main(["export", "run", "--format", "onnx", "--max-quality-loss", "0.1"]) == 2
    assert "max_quality_loss is 0.1, but nothing is quantized." in capsys.readouterr().err
    with pytest.raises(UserError, match=r"'huggingface' is not quantized here"):
        ExportSettings("huggingface", quantize="int8")
    with pytest.raises(UserError, match=r"a share from 0, as 0.05, but is -1.0\.$"):
        ExportSettings("onnx", quantize="int8", max_quality_loss=-1.0)


def test_a_training_quantizes_at_its_end(tmp_path):
    words = ("trainer.export=[ctranslate2, {format: ctranslate2, quantize: int8}]",)
    run = train_script(tmp_path, words=words)
    exports = RunFolder(run).result["exports"]
    names = ["ctranslate2", "ctranslate2-int8"]
    assert sorted(path.name for path in (run / "export").iterdir()) == names == sorted(exports)
    assert [("quality" in exports[name]) for name in names] == [False, True]
    shutil.rmtree(run / "export" / "ctranslate2-int8")
    with pytest.raises(UserError, match=r"export=ctranslate2-int8 .* --quantize int8$"):
        train_script(tmp_path, words=words)


def test_the_weights_of_the_run_stay_as_they_are(translator, tmp_path):
    predictor = translator(seed=2)
    before = {name: value.clone() for name, value in predictor.task.module.state_dict().items()}
    rows = [{"source": source, "target": target} for source, target in PAIRS]
    form = ExportSettings("ctranslate2", quantize="int8", max_quality_loss=1.0)
    made = write_export(predictor, form, tmp_path / "out", rows=rows, where="rows", source={})
    after = predictor.task.module.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert made.largest < 0.5


def test_rows_with_a_prefix_are_measured(translator, tmp_path):
    rows = [{"source": s, "target": t, "prefix": t[:2]} for s, t in PAIRS]
    form = ExportSettings("ctranslate2", quantize="int8", max_quality_loss=1.0)
    predictor = translator(seed=2)
    made = write_export(predictor, form, tmp_path / "out", rows=rows, where="rows", source={})
    assert made.quality.rows == made.rows == len(rows)

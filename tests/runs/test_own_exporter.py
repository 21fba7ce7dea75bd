"""An exporter of a person's own: tried before a training, and never run as a folder names it."""

import json
import sys

import pytest

from tests.trained_run import train_script
from textmill.cli.main import main
from textmill.errors import CodeNotAllowedError, PlanError, UserError
from textmill.exported import load
from textmill.exported.manifest import ExportError, read
from textmill.runs.export import export

MODULE = """
from textmill.inference.export.compare import compare
from textmill.inference.export.folder import ExportWriter


class Sizes(ExportWriter):
    def write(self, task, folder, rows):
        parts = {name: list(p.shape) for name, p in task.module.named_parameters()}
        (folder / "sizes.txt").write_text(repr(parts), encoding="utf-8")
        return {}

    def compare(self, predictor, folder, facts, rows):
        parts = {name: list(p.shape) for name, p in predictor.task.module.named_parameters()}
        same = (folder / "sizes.txt").read_text(encoding="utf-8") == repr(parts)
        return compare(rows, [(same, 0.0) for _ in rows])


class Other(Sizes):
    def compare(self, predictor, folder, facts, rows):
        return compare(rows, [(False, 0.0) for _ in rows])


class Breaks(Sizes):
    def write(self, task, folder, rows):
        raise KeyError(len(rows))


class Half(ExportWriter):
    def write(self, task, folder, rows):
        return {}


class Picky(Sizes):
    def unsupported(self, task):
        return ["it is no poem"]


class NoWriter:
    pass
"""
IN_SCRIPT = ["from our_formats import Sizes", "class Mine(Sizes): pass"]
SET_IN_SCRIPT = "trainer = Trainer.Config(max_steps=2, export=(Mine,))"


@pytest.fixture
def _module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "our_formats.py").write_text(MODULE, encoding="utf-8")
    yield
    sys.modules.pop("our_formats", None)


@pytest.mark.usefixtures("_module")
def test_a_recipe_names_an_exporter_and_the_run_is_exported_by_it(tmp_path, capsys):
    run = train_script(tmp_path, words=("trainer.export=[@our_formats.Sizes]",))
    made = run / "export" / "Sizes"
    assert "output_weight" in (made / "sizes.txt").read_text(encoding="utf-8")
    manifest = read(made)
    assert manifest.graph == "@our_formats.Sizes"
    assert [*manifest.files] == ["sizes.txt"]
    assert manifest.compared["same"] == manifest.compared["rows"] == 8
    assert [*json.loads((run / "run.json").read_bytes())["result"]["exports"]] == ["Sizes"]
    # The folder never leads to the class, even though it is imported here.
    with pytest.raises(UserError, match="code that a folder names is not executed"):
        load(made)
    (made / "sizes.txt").write_text("{}", encoding="utf-8")
    with pytest.raises(ExportError, match="sizes"):
        read(made)
    # A command: named by the person, or allowed.
    del sys.modules["our_formats"]
    with pytest.raises(CodeNotAllowedError, match=r"exported by @our_formats\.Sizes, its recipe's"):
        export(run, out="out")
    assert "our_formats" not in sys.modules
    asked = ["export", str(run), "--out", "out"]
    assert main([*asked, "--allow-code"]) == 0
    assert main(["export", str(run), "--format", "@our_formats.Sizes", "--out", "typed"]) == 0
    assert read(tmp_path / "out").files == read(tmp_path / "typed").files
    assert main([*asked, "--format", "@our_formats.Sizes", "--quantize", "int8"]) == 2
    assert "are for --format onnx and ctranslate2" in capsys.readouterr().err


@pytest.mark.usefixtures("_module")
def test_a_class_of_the_script_itself(tmp_path):
    run = train_script(tmp_path, *IN_SCRIPT, SET_IN_SCRIPT)
    assert read(run / "export" / "Mine").graph == "@Mine"
    assert export(run, "@Mine", out="out", allow_code=True).comparison.same == 8
    with pytest.raises(UserError, match=r"Which format.*trainer\.export of .* has none\."):
        export(run, "@Yours", out="other", allow_code=True)


@pytest.mark.usefixtures("_module")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoWriter", r"@our_formats\.NoWriter is to export a run, but is not an ExportWriter"),
        ("Half", r"The exporter @our_formats\.Half lacks compare\."),
        ("Picky", r"cannot be exported to @our_formats\.Picky:\n  it is no poem"),
        ("Breaks", "3"),
        ("Nothing", "our_formats has no 'Nothing'"),
    ],
)
def test_a_wrong_one_is_found_before_the_first_step(tmp_path, name, message):
    with pytest.raises((UserError, PlanError, KeyError), match=message):
        train_script(tmp_path, words=(f"trainer.export=[@our_formats.{name}]",))
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert main(["check", str(tmp_path / "tiny.py"), f"trainer.export=[@our_formats.{name}]"]) == 2


@pytest.mark.usefixtures("_module")
def test_one_that_answers_otherwise_is_not_written(tmp_path):
    run = train_script(tmp_path)
    with pytest.raises(ExportError, match="8 answers differ"):
        export(run, "@our_formats.Other", allow_code=True)
    assert not (run / "export" / "Other").exists()

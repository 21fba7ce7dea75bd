"""Exports where only ``pip install 'textmill[exported,serve]'`` was run: no torch."""

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pyarrow.parquet import read_table

import textmill
from tests.recipes.local_data import write_data
from tests.serving.served import started
from textmill.exported import load
from textmill.runs.export import export
from textmill.runtime.devices import may_have_accelerator

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def needs(name, extra):
    """What a distribution asks for, with one of its extras or with none of them."""
    if name == "textmill":
        lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    else:
        lines = importlib.metadata.requires(name) or []
    found = map(Requirement, lines)
    return [need for need in found if not need.marker or need.marker.evaluate({"extra": extra})]


def brought_by(*extras):
    """The distributions that pip installs beside textmill itself for these extras."""
    left, seen = [Requirement(f"textmill[{','.join(extras)}]")], set()
    while left:
        need = left.pop()
        for key in {(canonicalize_name(need.name), extra) for extra in ("", *need.extras)} - seen:
            seen.add(key)
            left += needs(*key)
    return {name for name, _ in seen} - {"textmill"}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Starts a program that finds the files of these distributions alone."""
    folder = tmp_path_factory.mktemp("installed")
    for name in brought_by("exported", "serve"):
        for file in importlib.metadata.files(name) or []:
            if ".." not in file.parts and (source := Path(file.locate())).is_file():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).symlink_to(source)
    (own := folder / f"textmill-{PROJECT['version']}.dist-info").mkdir()
    (own / "METADATA").write_text(f"Name: textmill\nVersion: {PROJECT['version']}\n")
    paths = [str(ROOT / "src"), str(folder)]

    def command(program, *words):
        # Neither site nor the environment adds to what is found.
        return [
            sys.executable, "-I", "-S", "-c", f"import sys; sys.path += {paths}\n{program}", *words,
        ]  # fmt: skip

    return command


@pytest.fixture(scope="module")
def exports(exported, tmp_path_factory):
    """An export of each format: of a translator, and of a classifier, whose run is the third."""
    folder = tmp_path_factory.mktemp("classifier")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_data("classification/ngrams/local")
        words = ["reporters.console=false"]
        textmill.run_experiment("classification/ngrams/local", "train", "run", words)
        export("run", "onnx")
    run = folder / "run"
    return {"ctranslate2": exported, "onnx": run / "export/onnx", "run": run}


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


MAIN = "from textmill.cli.main import main\nsys.exit(main())"
TEXTS = ["The cat sleeps.", "Go.", "wake me at seven"]


def test_torch_is_not_among_what_is_brought(python):
    assert {"numpy", "onnxruntime", "ctranslate2", "uvicorn"} <= brought_by("exported", "serve")
    absent = {"torch", "sacrebleu", "onnx", "onnxscript", "transformers", "pytest"}
    assert absent & brought_by("exported", "serve") == set()
    assert {"torch", "sacrebleu"} <= brought_by("train")
    program = f"import importlib.util\nprint(*filter(importlib.util.find_spec, {sorted(absent)}))"
    assert run(python(program)).stdout == "\n"


def test_every_room_and_every_module_on_the_floors_without_torch_is_imported(python):
    program = """import importlib, pkgutil, textmill
for module in pkgutil.iter_modules(textmill.__path__, "textmill."):
    if module.ispkg:
        importlib.import_module(module.name)
for room in ("config", "runtime", "text", "exported", "serving", "pipelines"):
    package = importlib.import_module(f"textmill.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"textmill.{room}."):
        importlib.import_module(module.name)
"""
    assert run(python(program)).stderr == ""


has_accelerator = pytest.mark.skipif(may_have_accelerator(), reason="there the run answers")


@pytest.mark.parametrize(
    "name", ["ctranslate2", "onnx", pytest.param("run", marks=has_accelerator)]
)
def test_an_export_answers_by_command_and_over_http(python, exports, tmp_path, name):
    model = load(exports["onnx" if name == "run" else name], device="cpu", threads=1)
    (column,) = model.columns
    wanted = [model.answer_row(answer) for answer in model(TEXTS)]
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({column: text}) + "\n" for text in TEXTS)
    )
    device = [] if name == "run" else ["--device", "cpu"]
    words = ["rows.jsonl", *device, "--output", "answers.parquet"]
    done = run(python(MAIN, "predict", str(exports[name]), *words), cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("answers.parquet: 3 rows\n", "")
    found = read_table(tmp_path / "answers.parquet").to_pydict()
    assert found["prediction"] == [row["prediction"] for row in wanted]
    with started(python(MAIN, "serve", str(exports[name]), "--port", "0", *device)) as served:
        assert served.ask(TEXTS).json() == wanted
        assert served.get("").text.startswith("<!doctype html>")
        assert served.end() == (0, "")


COMMANDS = [
    ["check", "tiny.py"], ["demo"], ["evaluate", "run"], ["export", "run", "--format", "onnx"],
    ["help", "tiny.py"], ["predict", "run"], ["prepare", "tiny.py"], ["runs", "list"],
    ["serve", "run"], ["show", "adamw"], ["test", "tiny.py", "-f", "model"], ["train", "tiny.py"],
    ["train", "tiny.py", "--include", "tiny"],
]  # fmt: skip


def test_what_needs_torch_says_so_in_a_line(python, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "tiny.py").write_text("import torch\n")
    program = """import json
from textmill.cli.main import main
print([main(words) for words in json.loads(sys.argv[1])])
"""
    done = run(python(program, json.dumps(COMMANDS)), cwd=tmp_path)
    assert done.stdout == f"{[2] * len(COMMANDS)}\n"
    for words, line in zip(COMMANDS, done.stderr.splitlines(), strict=True):
        package = "sacrebleu" if words == ["demo"] else "torch"
        asked = " ".join(["textmill", *words[:2]])
        assert line.startswith(f"error: {asked} needs the package '{package}', which is not")


def test_a_public_name_that_needs_torch_says_so(python):
    program = """
import textmill, textmill.checkpoint
for get in (lambda: textmill.load, lambda: textmill.checkpoint.Checkpoints):
    try:
        get()
    except textmill.errors.MissingExtraError as error:
        print(error)
print(textmill.Recipe)
"""
    first, second, recipe = run(python(program)).stdout.splitlines()
    assert first.startswith("textmill.load needs the package 'torch'")
    assert second.startswith("textmill.checkpoint.Checkpoints needs the package 'torch'")
    assert recipe == "<class 'textmill.config.recipe.Recipe'>"


def test_another_module_that_is_missing_is_not_said_to_be_torch(python, tmp_path):
    (tmp_path / "mine.py").write_text("import torch_of_mine\n")
    done = run(python(MAIN, "list", "tasks", "--include", "mine"), cwd=tmp_path)
    assert "ModuleNotFoundError: No module named 'torch_of_mine'" in done.stderr
    assert "textmill[train]" not in done.stderr

"""Every task: what the run answers, its evaluation, its ONNX export and a server of that.

In any batch, at any length, without torch. A new task is a line of this file.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import weft
from tests.recipes.local_data import write_data
from weft.errors import DataError, UserError
from weft.exported import load
from weft.exported.manifest import ExportError
from weft.inference.export import compare
from weft.inference.export.folder import write_export
from weft.recipes import registries
from weft.runs.export import export
from weft.serving.app import Service, make_app
from weft.serving.limits import Limits

LOCAL = [name for name in registries.experiments.names() if name.endswith("/local")]
QUICK = (
    "bert/pretraining", "classification/bilstm", "joint/bilstm-crf", "language/lstm",
    "pairs/ngrams", "question/drqa", "regression/ngrams", "tagging/transformer",
    "translation/demo",
)  # fmt: skip
WORDS = ["wake", "me", "at", "seven", "play", "old", "song", "now", "Ann", "met", "Bob", "Rollo"]


def marked(name):
    quick = name.removesuffix("/local") in QUICK
    return pytest.param(name, marks=() if quick else pytest.mark.slow)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Makes a run of an experiment, and its export, once."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("runs")
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                settings = write_data(name)
                words = ["trainer.max_steps=2", "trainer.evaluate_every=2 steps"]
                words += ["reporters.console=false", "reporters.html=false"]
                if "decoding" in settings["task"]:
                    words += ["task.decoding.max_length_a=0", "task.decoding.max_length_b=5"]
                run = weft.run_experiment(name, "train_and_evaluate", "run", words)
                done = export("run", "onnx", out="out")
            made[name] = folder, run.evaluations["valid_data"].rows, done.comparison
        return made[name]

    return make


def texts(predictor, lengths, *, seed=0):
    """Rows to ask, with that many words in each column."""
    random = np.random.default_rng(seed)
    rows = [{c: " ".join(random.choice(WORDS, size=n)) for c in predictor.columns} for n in lengths]
    return [dict(predictor.task.asked(row)) for row in rows]


def alike(found, expected):
    """Whether two answers as plain data are the same, numbers to 1e-5."""
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(alike(found[k], expected[k]) for k in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(expected, float):
        return found == pytest.approx(expected, abs=1e-5, rel=1e-5)
    return found == expected


@pytest.mark.parametrize("name", [*map(marked, LOCAL)])
def test_it_answers_as_the_run(runs, name):
    folder, rows, compared = runs(name)
    assert compared.same == compared.rows
    assert compared.largest < 1e-5
    predictor, exported = weft.load(folder / "run"), load(folder / "out", device="cpu", threads=1)
    assert exported.columns == predictor.columns
    lengths = [1, 2, 30, 3, 7, 7, 90]
    given = texts(predictor, lengths)
    expected = [predictor.answer_row(answer) for answer in predictor(given)]
    for size in (1, 2, 7):
        for start in range(0, len(given), size):
            part = given[start : start + size]
            found = [exported.answer_row(answer) for answer in exported(part)]
            assert all(map(alike, found, expected[start : start + size]))
    # What the evaluation answered, and a file of predictions.
    rows = [row for row in rows if "prediction" in row]  # language models only measure
    inputs = [{name: row[name] for name in predictor.columns} for row in rows]
    for answer, row in zip(exported(inputs), rows, strict=True):
        shown = exported.answer_row(answer)
        assert alike(shown, {key: row[key] for key in shown})
    service = Service(predictor=exported, name="m", limits=Limits())
    with TestClient(make_app(service)) as client:
        answered = client.post("/predict", json=given).json()
    service.batcher.close()
    assert all(map(alike, answered, expected))
    assert exported.answer_type == predictor.answer_type
    streamed = [row["prediction"] for row in exported.stream(inputs)]
    assert alike(streamed, [row["prediction"] for row in rows])


@pytest.mark.parametrize("name", [*map(marked, LOCAL)])
def test_the_longest_text_it_takes_is_answered(runs, name):
    folder, _, _ = runs(name)
    predictor, exported = weft.load(folder / "run"), load(folder / "out", device="cpu", threads=1)
    (row,) = texts(predictor, [2_000], seed=3)
    try:
        expected = predictor.answer_row(predictor(row))
    except DataError:
        with pytest.raises(DataError):
            exported(row)
        limits = [each for each in predictor.task.text.limits.values() if each is not None]
        (row,) = texts(predictor, [min(limits, default=160) // 8], seed=3)
        expected = predictor.answer_row(predictor(row))
    assert alike(exported.answer_row(exported(row)), expected)


@pytest.mark.parametrize(
    "name",
    [
        "bert/pretraining/local",
        "classification/bilstm/local",
        "language/lstm/local",
        "translation/demo/local",
    ],
)
def test_torch_is_not_needed(runs, name):
    folder, _, _ = runs(name)
    predictor = weft.load(folder / "run")
    (row,) = texts(predictor, [4])
    program = (
        "import json, sys; sys.modules['torch'] = None\n"
        "from weft.exported import load\n"
        f"model = load({str(folder / 'out')!r}, device='cpu', threads=1)\n"
        f"print(json.dumps(model.answer_row(model({row!r}))))"
    )
    done = subprocess.run(  # its own text
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert alike(json.loads(done.stdout), predictor.answer_row(predictor(row)))


def test_nothing_of_this_machine_is_in_a_graph(runs):
    folder, _, _ = runs("classification/bilstm/local")
    graph = (folder / "out" / "graph" / "model.onnx").read_bytes()
    for word in (str(Path(weft.__file__).parent), "site-packages", "classifier.py"):
        assert word.encode() not in graph


def test_wrong_weights_are_found_and_the_row_is_named(runs, tmp_path, monkeypatch):
    folder, _, _ = runs("classification/bilstm/local")
    predictor = weft.load(folder / "run")
    rows = texts(predictor, [3, 4, 5])
    real, calls = compare._difference, []

    def wrong(wanted, found):
        calls.append(0)
        return 0.5 if len(calls) == 1 else real(wanted, found)

    monkeypatch.setattr(compare, "_difference", wrong)
    with pytest.raises(ExportError, match=r"numbers of answers by up to 0\.5 .*Most in row 0 \("):
        write_export(predictor, "onnx", tmp_path / "out", rows=rows, where="rows", source={})
    assert not (tmp_path / "out").exists()


def test_a_task_that_answers_by_its_own_code_is_refused(runs, tmp_path, monkeypatch):
    folder, _, _ = runs("classification/bilstm/local")
    predictor = weft.load(folder / "run")

    class Mine(type(predictor.task)):
        def answers(self, scores, batch):
            return super().answers(scores, batch)

    predictor.task.__class__ = Mine
    with pytest.raises(UserError, match=r"Mine has a method of its own, answers"):
        write_export(predictor, "onnx", tmp_path / "out", rows=[], where="rows", source={})


def test_a_model_of_ones_own_that_generates_is_refused(runs, tmp_path):
    folder, _, _ = runs("language/lstm/local")
    predictor = weft.load(folder / "run")
    predictor.task.module.__class__ = type("Mine", (type(predictor.task.module),), {})
    with pytest.raises(UserError, match=r"the model must be one of .*, but is a Mine"):
        write_export(predictor, "onnx", tmp_path / "out", rows=[], where="rows", source={})

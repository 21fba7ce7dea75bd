"""Every task of typed columns: what the run answers, its ONNX export and a server of that.

In any batch, at any length. A new task is a line of this file.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import textmill
from tests.recipes.local_data import short, write_data
from textmill.errors import DataError, UserError
from textmill.exported import load
from textmill.exported.formats import ExportSettings
from textmill.exported.manifest import MANIFEST, ExportError, seal_folder
from textmill.exported.onnx import OnnxGraph
from textmill.inference.export import compare
from textmill.inference.export.folder import refuse_unsupported, write_export
from textmill.inference.export.onnx import quantize
from textmill.inference.export.quality import measure_quality
from textmill.preflight.export_checks import rows_of_run
from textmill.recipes import registries
from textmill.runs.export import export
from textmill.runs.load_run import evaluate
from textmill.runtime.sealed import seal
from textmill.text.processors.column_processor import PlainColumns

STEPWISE = ("language/", "parsing/", "summarization/scitldr", "translation/", "trees/rnng")
"""Experiments whose models choose one thing after another: no graph answers for them."""
QUICK = {
    "bert/pretraining", "classification/averaging", "joint/bilstm-crf", "question/drqa",
    "regression/ngrams", "tagging/bilstm",
}  # fmt: skip
PHRASES = ["dictionary.type=phrases", "dictionary.path=phrases.tsv"]
SMALL = {  # torch takes seconds for each recurrent layer; joint/bilstm-crf has them
    "classification/docnn/local": PHRASES,
    "question/drqa/local": ["model.encoder.type=cnn", "model.question_encoder.type=cnn"],
    "tagging/bilstm/local": ["model.encoder.type=cnn", *PHRASES, "dictionary.column=words"],
}


def slow_but(*quick):
    """Experiments whose models answer at once; all but those that are quick are slow."""
    return [
        pytest.param(name, marks=() if name.removesuffix("/local") in quick else pytest.mark.slow)
        for name in registries.experiments.names()
        if name.endswith("/local") and not name.startswith(STEPWISE)
    ]


QUIET = ["reporters.console=false", "reporters.html=false"]
WORDS = ["wake", "me", "at", "seven", "play", "old", "song", "now", "Ann", "met", "Bob", "Rollo"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Makes a run of an experiment, and its export, once."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("runs")
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                write_data(name)
                phrases = "wake me\tverb\nseven\ttime\n"
                (folder / "phrases.tsv").write_text(phrases, encoding="utf-8")
                words = [*short(name), *SMALL.get(name, ()), *QUIET]
                run = textmill.run_experiment(name, "train_and_evaluate", "run", words)
                done = export("run", "onnx", out="out")
            made[name] = folder, run.evaluations["valid_data"].rows, done.comparison
        return made[name]

    return make


def both(folder):
    """The predictor of a run and of its export."""
    return textmill.load(folder / "run"), load(folder / "out", device="cpu", threads=1)


def with_its_graph(monkeypatch, folder):
    """The graph of another export of the same weights is taken in place of one that torch makes."""

    def copied(module, path, *_, **__):
        shutil.copy(folder / "out" / "graph" / "model.onnx", path)

    monkeypatch.setattr("textmill.inference.export.onnx.write_graph", copied)


def texts(predictor, lengths, *, seed=0):
    """Rows to ask, with that many words in each column."""
    random = np.random.default_rng(seed)
    rows = [{c: " ".join(random.choice(WORDS, size=n)) for c in predictor.columns} for n in lengths]
    return [dict(predictor.task.asked(row)) for row in rows]


def alike(found, expected, *, most=1e-5):
    """Whether two answers as plain data are the same, numbers to ``most``."""
    apart = compare.difference(expected, found)
    return apart is not None and apart <= most


def refused(ask, given):
    try:
        ask(given)
    except DataError:
        return True
    return False


@pytest.mark.parametrize("name", slow_but(*QUICK))
def test_it_answers_as_the_run(runs, name):
    folder, rows, compared = runs(name)
    assert compared.same == compared.rows
    assert compared.largest < 1e-5
    predictor, exported = both(folder)
    assert exported.columns == predictor.columns
    given = texts(predictor, [1, 2, 30, 3, 7, 7, 90])
    expected = [predictor.answer_row(answer) for answer in predictor(given)]
    for size in (1, 2, 7):
        for start in range(0, len(given), size):
            part = given[start : start + size]
            found = [exported.answer_row(answer) for answer in exported(part)]
            assert all(map(alike, found, expected[start : start + size]))
    # What the evaluation answered.
    rows = [row for row in rows if "prediction" in row]  # masked models only measure
    inputs = [{name: row[name] for name in predictor.columns} for row in rows]
    for answer, row in zip(exported(inputs), rows, strict=True):
        shown = exported.answer_row(answer)
        assert alike(shown, {key: row[key] for key in shown})
    assert exported.answer_type == predictor.answer_type
    # What answers rows that it has not checked refuses all that a check would.
    for model in (predictor, exported):
        for bad in ("a\ud800", 7, b"a", {"a": 1}, None, ["two words", 3]):
            row = {**given[0], predictor.columns[-1]: bad}
            if model.checks_itself and refused(model.check, row):
                assert refused(model.answers, [row])
    # The longest text that it takes: sums over 512 tokens in another order, 1.5e-5 was seen.
    (row,) = texts(predictor, [2_000], seed=3)
    if refused(predictor, row):
        assert refused(exported, row)
        limits = [each for each in predictor.task.text.limits.values() if each is not None]
        (row,) = texts(predictor, [min(limits, default=160) // 8], seed=3)
    wanted = predictor.answer_row(predictor(row))
    assert alike(exported.answer_row(exported(row)), wanted, most=1e-4)


MEASURED = [
    each for each in slow_but("regression/ngrams") if each.values != ("bert/electra/local",)
]
"""ELECTRA is measured on more than its export answers, and so refuses a quality."""


@pytest.mark.parametrize("name", MEASURED)
def test_its_quality_is_that_of_the_run_and_it_can_be_quantized(runs, tmp_path, monkeypatch, name):
    folder, _, _ = runs(name)
    monkeypatch.chdir(folder)
    predictor, exported = both(folder)
    where, rows = rows_of_run(folder / "run", predictor.task)
    asked = {"where": where, "metric": "loss", "size": 1.0}
    form = ExportSettings("onnx", quantize="int8", max_quality_loss=10)
    found = measure_quality(predictor, exported, rows, settings=form, **asked)
    assert found.export == pytest.approx(found.run, abs=1e-5, nan_ok=True)
    assert found.rows == len(rows)
    evaluated = evaluate(folder / "run")["valid_data"].values
    wanted = {key: value for key, value in found.run.items() if key in evaluated}
    assert wanted == pytest.approx({key: evaluated[key] for key in wanted}, nan_ok=True)
    made = export(folder / "run", form, out=tmp_path / "out")
    assert made.comparison.quality is not None
    small = load(tmp_path / "out", device="cpu", threads=1)
    for answer in small(texts(predictor, [1, 5])):
        json.dumps(small.answer_row(answer), allow_nan=False)


def test_a_quantized_export_that_lost_too_much_is_refused(runs, tmp_path, monkeypatch):
    folder, _, _ = runs("regression/ngrams/local")
    monkeypatch.chdir(folder)

    def broken(path):
        model = onnx.load(str(path))
        for tensor in model.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                values = 50 * np.frombuffer(tensor.raw_data, np.float32)
                tensor.raw_data = values.tobytes()
        path.write_bytes(model.SerializeToString())

    with_its_graph(monkeypatch, folder)
    monkeypatch.setattr("textmill.inference.export.onnx.quantize", broken)
    with pytest.raises(ExportError, match=r"^Quantized to int8, the export is worse by "):
        export(folder / "run", ExportSettings("onnx", quantize="int8"), out=tmp_path / "out")
    assert [*tmp_path.iterdir()] == []


def numbers(folder):
    """Settings of numbers beside the text, which the data gets."""
    for path in folder.rglob("*.tsv"):
        rows = path.read_text(encoding="utf-8").splitlines()
        lines = (f"{row}\t{len(row)} {n}\n" for n, row in enumerate(rows))
        path.write_text("".join(lines), encoding="utf-8")
    columns = "{label: 0, text: 1, dense: 2}"
    return ["dense.type=fitted"] + [f"{d}.columns={columns}" for d in ("train_data", "valid_data")]


@pytest.mark.parametrize(
    "experiment",
    [
        "classification/averaging/local",
        pytest.param("classification/ngrams/local", marks=pytest.mark.slow),
    ],
)
def test_numbers_beside_texts_are_in_the_graph(experiment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(experiment)
    words = [*numbers(tmp_path), *short(experiment), *QUIET]
    textmill.run_experiment(experiment, "train", "run", words)
    export("run", "onnx", out="out")
    predictor, exported = textmill.load("run"), load("out", device="cpu", threads=1)
    given = texts(predictor, [1, 5, 30])
    given = [{**row, **({"dense": "3 0.5"} if "dense" in row else {})} for row in given]
    expected = [predictor.answer_row(answer) for answer in predictor(given)]
    assert all(map(alike, [exported.answer_row(answer) for answer in exported(given)], expected))


def test_a_long_context_is_read_in_many_windows(runs):
    folder, _, _ = runs("question/drqa/local")
    predictor, exported = both(folder)
    (asked, long) = texts(predictor, [3, 1_500], seed=9)
    row = {"question": asked["question"], "context": long["context"]}
    assert alike(exported.answer_row(exported(row)), predictor.answer_row(predictor(row)))


@pytest.mark.parametrize("row", ["", " ", [], ["wake", "me"], "snow ☃ 😀"])
@pytest.mark.parametrize("name", ["classification/averaging/local", "joint/bilstm-crf/local"])
def test_odd_texts_are_answered_as_the_run_answers_them(runs, name, row):
    folder, _, _ = runs(name)
    found = []
    for model in both(folder):
        given = dict.fromkeys(model.columns, row)
        found.append(next(iter(model.stream([given]))))
    assert alike(found[1], found[0])


def test_a_text_that_is_too_long_is_told_alike(runs):
    folder, _, _ = runs("joint/bilstm-crf/local")
    predictor, exported = both(folder)
    predictor.task.config = replace(predictor.task.config, over_length="error")
    exported.refuses_long = True
    (row,) = texts(predictor, [600])
    told = [next(iter(model.stream([row])))["error"] for model in (predictor, exported)]
    assert told[0] == told[1]
    assert told[0].startswith("The row has more tokens than the model takes: 512 tokens of ")


def resealed(folder, out, **changed):
    """A copy of an export whose manifest says something else, under a seal that fits."""
    shutil.copytree(folder, out)
    content = json.loads((out / MANIFEST).read_text())
    del content["digest"]
    content["answers"] |= changed
    (out / MANIFEST).write_bytes(seal(content))
    return out


HOSTILE = {
    "another forward": ("classification/averaging/local", {"forward": "eval"}),
    "numbers it has not": ("classification/averaging/local", {"numbers": {"size": 3}}),
    "a setting that is none": ("tagging/bilstm/local", {"settings": {"scheme": ["bio"]}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_manifest_that_says_something_else_is_refused(runs, tmp_path, name):
    experiment, changed = HOSTILE[name]
    folder = resealed(runs(experiment)[0] / "out", tmp_path / "out", **changed)
    with pytest.raises(ExportError) as caught:
        load(folder, device="cpu", threads=1)
    assert str(folder) in str(caught.value)


def graph_of(path, **made):
    """Writes a graph with the inputs of another and outputs of one's own."""
    from onnx import helper, numpy_helper

    model = onnx.load(str(path))
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))
        for name, value in made.items()
    ]
    outputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in made.items()
    ]
    graph = helper.make_graph(nodes, "g", list(model.graph.input), outputs)
    path.write_bytes(helper.make_model(graph, opset_imports=model.opset_import).SerializeToString())


WRONG = {
    "NaN": ("classification/averaging/local", {"a": np.full((1, 2), np.nan, np.float32)}),
    "strings": ("classification/averaging/local", {"a": np.array([["x", "y"]], dtype=object)}),
    "scores of fewer words": (
        "joint/bilstm-crf/local",
        {"a": np.ones((1, 2), np.float32), "b": np.ones((1, 1, 9), np.float32)},
    ),
    "labels below nothing": (
        "tagging/bilstm/local",
        {"a": np.full((1, 4), -1), "b": np.ones((1, 4), np.float32)},
    ),
    "scores of other parts": ("question/drqa/local", {"a": np.ones((3, 3), np.float32)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_graph_of_other_outputs_is_refused(runs, tmp_path, name):
    experiment, made = WRONG[name]
    source, out = runs(experiment)[0] / "out", tmp_path / "out"
    shutil.copytree(source, out)
    graph_of(out / "graph" / "model.onnx", **made)
    content = json.loads((out / MANIFEST).read_text())
    facts = {k: v for k, v in content.items() if k not in ("digest", "files", "format_version")}
    (out / MANIFEST).unlink()
    seal_folder(out, facts)
    model = load(out, device="cpu", threads=1)
    with pytest.raises(ExportError):
        model(dict.fromkeys(model.columns, "wake me at seven"))


def test_nothing_of_this_machine_is_in_a_graph(runs):
    folder, _, _ = runs("classification/averaging/local")
    graph = (folder / "out" / "graph" / "model.onnx").read_bytes()
    for word in (str(Path(textmill.__file__).parent), "site-packages", "classifier.py"):
        assert word.encode() not in graph


def test_wrong_weights_are_found_and_the_row_is_named(runs, tmp_path, monkeypatch):
    folder, _, _ = runs("classification/averaging/local")
    predictor = textmill.load(folder / "run")
    rows = texts(predictor, [3, 4, 5])
    real, calls = compare.difference, []

    def wrong(wanted, found):
        calls.append(0)
        return 0.5 if len(calls) == 1 else real(wanted, found)

    with_its_graph(monkeypatch, folder)
    monkeypatch.setattr(compare, "difference", wrong)
    with pytest.raises(ExportError, match=r"numbers of answers by up to 0\.5 .*Most in row 0 \("):
        write_export(predictor, "onnx", tmp_path / "out", rows=rows, where="rows", source={})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["answers", "answer_row", "check"])
def test_a_task_that_answers_by_its_own_code_is_refused(runs, tmp_path, name):
    folder, _, _ = runs("classification/averaging/local")
    predictor = textmill.load(folder / "run")

    def own(self, *given):
        return getattr(super(Mine, self), name)(*given)

    Mine = type("Mine", (type(predictor.task),), {name: own})  # a class
    predictor.task.__class__ = Mine
    with pytest.raises(UserError, match=rf"Mine has a method of its own, {name}"):
        write_export(predictor, "onnx", tmp_path / "out", rows=[], where="rows", source={})


def test_a_text_processor_that_makes_no_answers_is_refused(runs, tmp_path):
    folder, _, _ = runs("classification/averaging/local")
    predictor = textmill.load(folder / "run")
    text = predictor.task.text
    predictor.task.text = PlainColumns(text.inputs, text.targets)
    with pytest.raises(UserError, match=r"its text processor is PlainColumns, which makes no ans"):
        write_export(predictor, "onnx", tmp_path / "out", rows=[], where="rows", source={})


@pytest.mark.parametrize(
    ("name", "works"),
    [
        ("language/lstm/local", "Use the run itself: textmill predict RUN."),
        ("translation/demo/local", "Export it by --format ctranslate2, or use the run itself"),
    ],
)
def test_what_generates_text_is_refused_with_what_works(name, works, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(name)
    task = textmill.create_task(name)
    with pytest.raises(UserError, match=rf"to onnx:\n  it generates text\n{works}"):
        refuse_unsupported(task, "onnx")


def test_products_of_8_bits_are_right_on_any_processor(tmp_path, monkeypatch):
    # The largest numbers: processors without VNNI cannot add two products with signed weights.
    halves = [np.full((512, 600), sign, np.float32) for sign in (1, -1)]
    names = ["positive", "negative"]
    nodes = [
        helper.make_node("Concat", names, ["weight"], axis=1),
        helper.make_node("MatMul", ["x", "weight"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["B", None]) for n in "xy")
    held = [onnx.numpy_helper.from_array(half, n) for half, n in zip(halves, names, strict=True)]
    graph = helper.make_graph(nodes, "graph", [x], [y], held)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    quantize(path)
    kinds = {each.op_type for each in onnx.load(path).graph.node}
    assert "MatMulInteger" in kinds
    assert not kinds & {"MatMul", "Concat"}, "a weight of two parts stayed as it was"
    (found,) = OnnxGraph(path, device="cpu").run({"x": np.ones((1, 512), np.float32)})
    assert found == pytest.approx(512 * np.repeat([[1, -1]], 600, axis=1), rel=1e-5)
    for processor, unsigned in (("GenuineIntel avx2", "1"), ("AuthenticAMD avx512_vnni", "0")):
        monkeypatch.setattr("textmill.exported.onnx.processor", lambda name=processor: name)
        options = OnnxGraph(path, device="cpu").session.get_session_options()
        assert options.get_session_config_entry("session.x64quantprecision") == unsigned

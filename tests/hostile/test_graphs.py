"""Graphs of strangers: refused before they compute, or stopped where they take too much memory."""

import resource
import time

import numpy as np
import pytest
from onnx import helper

from tests.hostile.graphs import LARGE, REFUSED, model
from textmill.exported.manifest import ExportError
from textmill.exported.onnx import OnnxGraph
from textmill.exported.onnx_nodes import GraphError, check_graph

SECONDS, MEGABYTES = 1.0, 256


@pytest.fixture(autouse=True)
def _measured():
    """Each is answered or refused in its time and memory."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB"


@pytest.fixture(scope="module")
def made():
    """The bytes of each graph, made before anything is measured."""
    graphs = {**{name: make for name, (make, _) in REFUSED.items()}, **LARGE}
    return {name: make().SerializeToString() for name, make in graphs.items()}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_do_something_else_is_refused(name, made, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(made[name])
    with pytest.raises(ExportError) as caught:
        OnnxGraph(path, device="cpu", threads=1)
    assert str(caught.value).startswith(str(path))
    assert REFUSED[name][1] in str(caught.value)


@pytest.mark.parametrize("name", LARGE)
def test_what_takes_more_memory_than_a_graph_needs_is_an_error(name, made, tmp_path, monkeypatch):
    monkeypatch.setattr("textmill.exported.onnx.MOST_MEMORY", 100 << 20)
    path = tmp_path / "model.onnx"
    path.write_bytes(made[name])
    with pytest.raises(ExportError, match="onnxruntime cannot"):
        OnnxGraph(path, device="cpu", threads=1).run({"x": np.zeros(1, np.int64)})


def test_each_graph_has_a_bound_of_its_own(tmp_path, monkeypatch):
    """One that is opened later with a smaller bound takes nothing from one before it."""
    path = tmp_path / "model.onnx"
    nodes = [helper.make_node("ConstantOfShape", ["x"], ["y"])]
    path.write_bytes(model(nodes).SerializeToString())
    wide = OnnxGraph(path, device="cpu", threads=1)
    monkeypatch.setattr("textmill.exported.onnx.MOST_MEMORY", 8 << 20)
    narrow = OnnxGraph(path, device="cpu", threads=1)
    asked = {"x": np.array([4 << 20], np.int64)}  # 16 MB
    with pytest.raises(ExportError, match="Available memory of"):
        narrow.run(asked)
    assert wide.run(asked)[0].nbytes == 16 << 20


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x3a\xff", "it is no graph of ONNX"),
        (b"\x3a\x05", "it is no graph of ONNX"),
        (b"\x38\x01", "it is no graph of ONNX"),
        (b"\xff" * 64, "it is no graph of ONNX"),
        (b"\x0b" * 64, "it is no graph of ONNX"),
        (b"\x3a\x02\x08\x01", "it is no graph of ONNX"),
        (b"\x08\x01" * 500_001, "it has more than 500,000 fields"),
    ],
)
def test_bytes_that_are_no_graph_are_told(data, error):
    with pytest.raises(GraphError) as caught:
        check_graph(data)
    assert str(caught.value) == error


def test_every_part_of_a_graph_in_pieces_is_looked_at(made):
    """Protobuf joins a message that is given twice: so the second is looked at as the first is."""
    good = model([]).SerializeToString()
    with pytest.raises(GraphError, match="'Loop' has a graph within it"):
        check_graph(good + made["an endless loop"])

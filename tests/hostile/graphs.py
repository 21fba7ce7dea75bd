"""Graphs of ONNX that do something else than compute a model, or more of it than one can need."""

from itertools import pairwise

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
Nodes = list  # of NodeProto


def constant(name: str, value: object, dtype: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(value, dtype), name)


def model(nodes: Nodes, *constants: TensorProto) -> ModelProto:
    """A graph from ids ``x`` to numbers ``y``."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT64, ["B"])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    opset = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10)


def identity(of: str) -> Nodes:
    return [helper.make_node("Identity", [of], ["y"])]


def branch(name: str) -> object:
    value = helper.make_tensor_value_info(name, FLOAT, [1])
    node = helper.make_node("Constant", [], [name], value=constant("v", [0], np.float32))
    return helper.make_graph([node], "b", [], [value])


def endless_loop() -> ModelProto:
    values = [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("v", FLOAT, [1])]
    given = [helper.make_tensor_value_info(*value) for value in values]
    made = [helper.make_tensor_value_info(f"{name}o", *rest) for name, *rest in values[1:]]
    nodes = [helper.make_node("Identity", [name], [f"{name}o"]) for name in "cv"]
    body = helper.make_graph(nodes, "body", given, made)
    return model(
        [helper.make_node("Loop", ["", "go", "v"], ["y"], body=body)],
        constant("go", True, bool),
        constant("v", [0], np.float32),
    )


def choice() -> ModelProto:
    made = {"then_branch": branch("a"), "else_branch": branch("b")}
    return model([helper.make_node("If", ["c"], ["y"], **made)], constant("c", True, bool))


def other_file(place: str) -> ModelProto:
    made = model(identity("a"), constant("a", [0] * 4, np.float32))
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=place)
    return made


def constant_of_another_file() -> ModelProto:
    made = other_file("/etc/passwd")
    node = helper.make_node("Constant", [], ["y"])
    node.attribute.add(name="value", type=4).t.CopyFrom(made.graph.initializer[0])
    return model([node])


def own_function() -> ModelProto:
    made = model([helper.make_node("F", ["x"], ["y"])])
    opset = [helper.make_opsetid("", 20)]
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    made.functions.append(helper.make_function("", "F", ["x"], ["y"], nodes, opset))
    return made


def sparse() -> ModelProto:
    made = model(identity("a"))
    numbers, places = constant("a", [1], np.float32), constant("p", [0])
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(numbers, places, [1 << 31]))
    return made


def training() -> ModelProto:
    made = model(identity("a"), constant("a", [0], np.float32))
    made.training_info.add().initialization.name = "t"
    return made


def no_numbers() -> ModelProto:
    made = model(identity("a"))
    made.graph.initializer.append(TensorProto(name="a", data_type=FLOAT, dims=[1 << 40]))
    return made


def twofold(of: str, *constants: TensorProto, begin: Nodes) -> ModelProto:
    """An array that is doubled 40 times."""
    names = [of, *(f"d{i}" for i in range(40))]
    pairs = pairwise(names)
    nodes = [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in pairs]
    return model([*begin, *nodes, *identity(names[-1])], *constants)


SHAPE = [
    helper.make_node("Shape", ["x"], ["s"]),
    helper.make_node("Max", ["s", "n"], ["m"]),
]
CAST = [helper.make_node("Cast", ["x"], ["c"], to=FLOAT)]

REFUSED = {
    "an endless loop": (endless_loop, "'Loop' has a graph within it, which can be computed for"),
    "a branch": (choice, "'If' has a graph within it"),
    "numbers of a file outside": (
        lambda: other_file("../../../../etc/passwd"),
        "it takes numbers from another file",
    ),
    "numbers of an endless file": (lambda: other_file("/dev/zero"), "numbers from another file"),
    "a constant of a file": (constant_of_another_file, "it takes numbers from another file"),
    "functions": (own_function, "it has functions of its own"),
    "sparse numbers": (sparse, "it has sparse numbers"),
    "a training": (training, "it has graphs of a training"),
    "operators of others": (
        lambda: model([helper.make_node("System", ["x"], ["y"], domain="os")]),
        "'System' of 'os' is no operator of the ONNX standard",
    ),
    "20,001 nodes": (
        lambda: model([helper.make_node("Identity", ["x"], [f"{i}"]) for i in range(20_001)]),
        "it has more than 20,000 nodes",
    ),
    "a shape without numbers": (no_numbers, "onnxruntime cannot use this graph"),
    "an operator that is none": (
        lambda: model([helper.make_node("ReadFile", ["x"], ["y"])]),
        "onnxruntime cannot use this graph",
    ),
    "a cycle": (
        lambda: model(
            [helper.make_node("Neg", ["y"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
        ),
        "onnxruntime cannot use this graph",
    ),
}
"""Graphs that are refused before they compute, and why."""

LARGE = {
    "a huge constant": lambda: model(
        [helper.make_node("ConstantOfShape", ["s"], ["y"])], constant("s", [1 << 33])
    ),
    "a constant of a computed shape": lambda: model(
        [*SHAPE, helper.make_node("ConstantOfShape", ["m"], ["y"])], constant("n", [1 << 33])
    ),
    "an expanded number": lambda: model(
        [helper.make_node("Expand", ["a", "s"], ["y"])],
        constant("a", [1], np.float32),
        constant("s", [1 << 33]),
    ),
    "a range": lambda: model(
        [
            helper.make_node("Range", ["a", "n", "d"], ["r"]),
            helper.make_node("Cast", ["r"], ["y"], to=FLOAT),
        ],
        constant("a", 0),
        constant("n", 1 << 33),
        constant("d", 1),
    ),
    "tiles": lambda: model(
        [*CAST, helper.make_node("Tile", ["c", "s"], ["y"])], constant("s", [1 << 33])
    ),
    "random numbers": lambda: model([helper.make_node("RandomNormal", [], ["y"], shape=[1 << 33])]),
    "a product of two long rows": lambda: model(
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        constant("a", [[1]] * 90_000, np.float32),
        constant("b", [[1] * 90_000], np.float32),
    ),
    "a constant that is doubled": lambda: twofold("a", constant("a", [1], np.float32), begin=[]),
    "an input that is doubled": lambda: twofold("c", begin=CAST),
}
"""Graphs that take 32 GB and more to answer; some name sizes that only the inputs tell."""

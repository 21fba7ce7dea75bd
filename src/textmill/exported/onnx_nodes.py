"""What a graph of ONNX computes with, told by its bytes before a program is given them.

A protobuf message is a row of fields, each a number and a value; of the fields of ONNX only those
are looked at by which a graph could do something else than compute: for ever, or with the numbers
of another file.
"""

from collections.abc import Iterator

from textmill.runtime.protobuf import message_fields

MOST_NODES = 20_000
"""Nodes of a graph; the largest textmill writes has some thousand. onnxruntime takes a second to
begin with so many, and time with their square."""

MOST_FIELDS = 500_000
"""Fields that are looked at, in half a second; the numbers of a tensor are one field."""

Message = memoryview

# Fields by the names that onnx.proto gives them.
GRAPH, TRAINING, FUNCTIONS = 7, 20, 25  # of ModelProto
NODE, INITIALIZER, SPARSE_INITIALIZER = 1, 5, 15  # of GraphProto
OP_TYPE, ATTRIBUTE, DOMAIN = 4, 5, 7  # of NodeProto
TENSOR, SUBGRAPH, TENSORS, SUBGRAPHS = 5, 6, 10, 11  # of AttributeProto
SPARSE_TENSOR, SPARSE_TENSORS = 22, 23  # of AttributeProto, too
EXTERNAL_DATA, DATA_LOCATION = 13, 14  # of TensorProto
DOMAINS = ("", "ai.onnx")
"""Of the standard's own operators, by both of its names."""


class GraphError(ValueError):
    """What a graph must not have."""


def check_graph(model: bytes) -> None:
    """Refuses a graph that repeats a part of itself, or reads other files.

    Without loops, branches and functions each node is computed once, so that a graph ends.

    Args:
        model: A message of ``ModelProto``.

    Raises:
        GraphError: It has such a part, or is no such message; says which.

    Example:
        >>> check_graph(bytes([0xCA, 1, 0]))
        Traceback (most recent call last):
        textmill.exported.onnx_nodes.GraphError: it has functions of its own
    """
    try:
        _Walk().model(memoryview(model))
    except GraphError:
        raise
    except ValueError:
        raise GraphError("it is no graph of ONNX") from None


class _Walk:
    """One look at a graph's messages; what it counts is of all of them."""

    def __init__(self) -> None:
        self.nodes = self.fields_seen = 0

    def model(self, model: Message) -> None:
        for number, value in self.fields(model):
            if number == FUNCTIONS:
                raise GraphError("it has functions of its own")
            if number == TRAINING:
                raise GraphError("it has graphs of a training")
            if number == GRAPH:
                self.graph(_message(value))

    def graph(self, graph: Message) -> None:
        for number, value in self.fields(graph):
            if number == NODE:
                self.nodes += 1
                if self.nodes > MOST_NODES:
                    raise GraphError(f"it has more than {MOST_NODES:,} nodes")
                self.node(_message(value))
            elif number == INITIALIZER:
                self.tensor(_message(value))
            elif number == SPARSE_INITIALIZER:
                raise GraphError("it has sparse numbers")

    def node(self, node: Message) -> None:
        name, domain, attributes = "", "", []
        for number, value in self.fields(node):
            if number == ATTRIBUTE:
                attributes.append(_message(value))
            elif number == OP_TYPE:
                name = bytes(_message(value)[:80]).decode(errors="replace")
            elif number == DOMAIN:
                domain = bytes(_message(value)[:80]).decode(errors="replace")
        if domain not in DOMAINS:
            raise GraphError(f"{name!r} of {domain!r} is no operator of the ONNX standard")
        for attribute in attributes:
            self.attribute(attribute, name)

    def attribute(self, attribute: Message, name: str) -> None:
        for number, value in self.fields(attribute):
            if number in (SUBGRAPH, SUBGRAPHS):
                raise GraphError(f"{name!r} has a graph within it, which can be computed for ever")
            if number in (SPARSE_TENSOR, SPARSE_TENSORS):
                raise GraphError("it has sparse numbers")
            if number in (TENSOR, TENSORS):
                self.tensor(_message(value))

    def tensor(self, tensor: Message) -> None:
        for number, value in self.fields(tensor):
            if number == EXTERNAL_DATA or (number == DATA_LOCATION and value != 0):
                raise GraphError("it takes numbers from another file")

    def fields(self, message: Message) -> Iterator[tuple[int, int | Message]]:
        """Numbers and values of a message's fields; each is a number, or bytes of the message."""
        for field in message_fields(message):
            self.fields_seen += 1
            if self.fields_seen > MOST_FIELDS:
                raise GraphError(f"it has more than {MOST_FIELDS:,} fields")
            yield field


def _message(value: int | Message) -> Message:
    if isinstance(value, int):
        raise GraphError("it is no graph of ONNX")
    return value

"""ONNX as a format of exports: tasks of typed columns, and masked language models.

Graphs are made by torch's exporter, and all that it says is kept to itself.
"""

import contextlib
import inspect
import io
import linecache
import logging
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.exported.columns import answers_of, save_arrays
from textmill.exported.formats import FORMATS
from textmill.exported.forward import graph_inputs
from textmill.exported.manifest import GRAPH, TEXT
from textmill.exported.onnx import ARRAYS, MODEL
from textmill.inference.export.compare import Comparison, answers_apart, compare
from textmill.inference.export.folder import ExportWriter, own_answers, own_methods
from textmill.inference.load import Predictor
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.tasks.parsing import ShiftReduceParsing
from textmill.tasks.seq2seq import Seq2Seq
from textmill.tasks.task import Row, Task
from textmill.text.columns.column import padded_columns
from textmill.text.processors.column_processor import PlainColumns

LEAST = 3
"""Fewest places of each example column: from one place torch makes a graph for one place only."""


class OnnxWriter(ExportWriter):
    """Writes what :mod:`textmill.exported.onnx` reads."""

    @override
    def unsupported(self, task: Task) -> list[str]:
        if isinstance(task, ShiftReduceParsing):
            return ["it chooses actions one by one, each by the stack that the last has left"]
        if isinstance(task, ColumnsTask):
            return _own_columns(task)
        if isinstance(task, MaskedLanguageModeling):
            return own_answers(task)
        if isinstance(task, Seq2Seq | LanguageModeling):
            return ["it generates text"]
        return ["it is none of the library's tasks, and no subclass of ColumnsTask"]

    @override
    def write(self, task: Task, folder: Path, rows: Sequence[Row]) -> dict[str, Any]:
        graph = folder / GRAPH
        graph.mkdir()
        task.text.save(folder / TEXT)
        if isinstance(task, ColumnsTask):
            return {"search": {}, "answers": _write_columns(task, graph, rows)}
        assert isinstance(task, MaskedLanguageModeling), "others are refused"
        given = {
            "text": torch.ones(3, 5, dtype=torch.int64),
            "text.lengths": torch.tensor([5, 4, 2]),
            "rows": torch.tensor([0, 0, 1, 2]),
            "places": torch.tensor([0, 4, 1, 0]),
        }
        tensors = {name: tensor.to(task.device) for name, tensor in given.items()}
        write_graph(_Masks(task.module), graph / MODEL, tensors, varying=[[0, 1], [0], [0], [0]])
        answers = {"top_k": task.config.top_k, "longest": task.module.finder.max_length}
        return {"search": {}, "answers": answers}

    @override
    def quantize(self, task: Task, folder: Path) -> None:
        quantize(folder / GRAPH / MODEL)

    @override
    def compare(
        self, predictor: Predictor, folder: Path, facts: Mapping[str, Any], rows: Sequence[Row]
    ) -> Comparison:
        exported = FORMATS["onnx"].open(folder, facts, device="cpu")
        return compare(rows, answers_apart(predictor, exported, rows))


WRITER = OnnxWriter()


def _own_columns(task: ColumnsTask) -> list[str]:
    """Methods of a task that a graph does not have, a line for each."""
    kind, order = type(task), type(task).__mro__
    by = {
        name: next(number for number, each in enumerate(order) if name in vars(each))
        for name in ("answers", "exported_outputs", "answer_row", "predict")
    }
    base = order.index(ColumnsTask)
    own = [name for name in ("answer_row", "predict") if by[name] < base]
    if by["exported_outputs"] == base or by["answers"] < by["exported_outputs"]:
        own.append("answers")
    told = [f"{kind.__name__} has a method of its own, {name}" for name in sorted(own)]
    told += own_methods(kind, "check")
    if isinstance(task.text, PlainColumns):
        told.append("its text processor is PlainColumns, which makes no answers of outputs")
    return told


class _Masks(nn.Module):
    """Scores of the tokens at the masks."""

    def __init__(self, model: MaskedLanguageModel) -> None:
        super().__init__()
        self.model = model

    @override
    def forward(self, text: Tensor, lengths: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        return self.model.project(self.model.hidden(text, lengths)[rows, places]).float()


class _Outputs(nn.Module):
    """A task's outputs, of tensors by position: the columns, then their lengths."""

    def __init__(self, task: ColumnsTask, roles: Sequence[str], measured: Sequence[str]) -> None:
        super().__init__()
        self.model, self.roles, self.measured = task.module, roles, measured
        self.outputs = task.exported_outputs

    @override
    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        columns = dict(zip(self.roles, given, strict=False))
        lengths = dict(zip(self.measured, given[len(self.roles) :], strict=True))
        return self.outputs(ColumnBatch(columns=columns, lengths=lengths))


def _write_columns(task: ColumnsTask, folder: Path, rows: Sequence[Row]) -> dict[str, Any]:
    text, forward = task.text, task.exported_forward
    encoded = text.encode(rows, with_targets=False, truncate=True)
    columns, lengths = padded_columns(encoded, text.all, np.arange(3) % len(rows), least=LEAST)
    tensors = {
        name: torch.from_numpy(array).to(task.device)
        for name, array in graph_inputs(columns, lengths).items()
    }
    axes = {name: [*range(tensor.ndim)] for name, tensor in tensors.items()}
    for role, column in text.inputs.items():
        if column.single or column.fixed:
            axes[role] = [0]
        elif column.width > 1 and issubclass(column.dtype, np.floating):
            axes[role] = [0, 1]  # only ids that are padding everywhere are left out
    module = _Outputs(task, list(columns), list(lengths))
    write_graph(module, folder / MODEL, tensors, varying=[*axes.values()])
    save_arrays(forward, folder / ARRAYS)
    return answers_of(text, forward, refuses_long=task.config.over_length == "error")


def write_graph(
    module: nn.Module, path: Path, given: Mapping[str, Tensor], *, varying: Sequence[Sequence[int]]
) -> None:
    """Writes a module, which computes with its attribute ``model``, as a graph.

    ``given`` are examples of its inputs, in their order; ``varying`` the axes of each that can have
    another size, and have a size of 2 or more in the examples.
    """
    shapes = [dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in varying]
    try:
        with torch.inference_mode(), _quiet():
            program: Any = torch.onnx.export(
                module.eval(),
                tuple(given.values()),
                input_names=list(given),
                dynamic_shapes=_by_parameter(module, shapes),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:
        cause = error.__cause__ or error
        said = str(cause).partition("\n")[0]
        raise UserError(
            f"Torch cannot make a graph of this model, a {type(module.model).__name__}"
            f"{_user_line(cause)}. Torch says: {said.strip()} A graph is made before there are "
            "numbers: choose by torch.where, not by if, and take no number out of a tensor. Or "
            "leave the export out, and use the run itself: textmill predict RUN"
        ) from error
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()  # source lines and paths of this machine
    program.save(path, external_data=False)


def quantize(path: Path) -> None:
    """Writes a graph anew whose weights are of 8 bits where it multiplies by them, or looks up.

    Recurrent layers stay as they are: the standard has no operator for them with such weights.
    Each column of a matrix has a scale of its own. Weights of matrices are signed: a processor with
    VNNI multiplies by them 2.3 times as fast as by unsigned ones. Others would lose the sums that
    exceed 16 bits, so :class:`textmill.exported.onnx.OnnxGraph` has them made unsigned there. That
    leaves out convolutions, whose weights are unsigned: signed ones take 2.5 times as long.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxscript.optimizer import optimize

    kinds = {"Conv": QuantType.QUInt8, "Gather": QuantType.QInt8, "MatMul": QuantType.QInt8}
    any_size = 1 << 62
    with _quiet():
        # Weights that are joined or turned on the way to a product would stay as they are.
        model: Any = optimize(
            onnx.load(path), input_size_limit=any_size, output_size_limit=any_size
        )
        onnx.save(model, path)
        for kind, weights in kinds.items():  # a Gemm is made a MatMul
            quantize_dynamic(
                path, path, op_types_to_quantize=[kind], per_channel=True, weight_type=weights
            )


def _user_line(error: BaseException) -> str:
    """The innermost line of the user's own code, in words; empty if there is none."""
    known, found = ("<", str(Path(__file__).parents[2])), ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not (code.co_filename.startswith(known) or "site-packages" in code.co_filename):
            text = linecache.getline(code.co_filename, line).strip()
            found = (
                f": {code.co_qualname} does in {code.co_filename}:{line} what no graph can: {text}"
            )
    return found


def _by_parameter(module: nn.Module, shapes: Sequence[Any]) -> tuple[Any, ...]:
    """Shapes by the parameters of forward; all positional ones of ``*args`` are one entry."""
    parameters = inspect.signature(module.forward).parameters.values()
    single = sum(each.kind is not each.VAR_POSITIONAL for each in parameters)
    rest = [tuple(shapes[single:])] if single < len(parameters) else []
    return (*shapes[:single], *rest)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        silent = contextlib.redirect_stderr(io.StringIO())
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), silent:
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)

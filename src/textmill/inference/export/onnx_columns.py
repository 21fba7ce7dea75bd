"""A task of typed columns as a graph of ONNX: the module, and what answers need of its scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.data.column_batch import ColumnBatch
from textmill.exported.columns import ARRAYS, MODEL, answers_of, save_arrays
from textmill.exported.forward import graph_inputs
from textmill.inference.export.onnx import write_graph
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Row
from textmill.text.columns.padding import padded_columns

LEAST = 3
"""Places of each example column at least: of one place torch makes a graph of one place alone."""


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


def write(task: ColumnsTask, folder: Path, rows: Sequence[Row]) -> dict[str, Any]:
    """Writes the graph of a task.

    Args:
        task: The task, its module with trained weights.
        folder: Where to.
        rows: Rows as examples of its inputs; one at least.

    Returns:
        What becomes of the graph's outputs, as a manifest has it.

    Raises:
        UserError: Torch cannot make a graph of the module.
    """
    text, forward = task.text, task.exported_forward
    encoded = text.encode(rows, with_targets=False, truncate=True)
    some = np.arange(3) % len(rows)
    columns, lengths = padded_columns(encoded, text.all, some, least=LEAST)
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

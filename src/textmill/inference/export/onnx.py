"""Modules as graphs of ONNX: by torch's exporter, with all it says kept to itself."""

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

import torch
from torch import Tensor, nn

from textmill.errors import UserError


def write_graph(
    module: nn.Module,
    path: Path,
    given: Mapping[str, Tensor],
    *,
    varying: Sequence[Sequence[int]],
    outputs: Sequence[str] | None = None,
) -> None:
    """Writes a module as a graph.

    Args:
        module: Called with the tensors in their order; it computes with its attribute ``model``.
        path: Where to.
        given: Examples of its inputs by their names; what varies in them is 2 or more.
        varying: The axes of each input that can have another size.
        outputs: Names of what it gives; None: they do not matter.

    Raises:
        UserError: Torch cannot make a graph of it.
    """
    shapes = [dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in varying]
    try:
        with torch.inference_mode(), _quiet():
            program: Any = torch.onnx.export(
                module.eval(),
                tuple(given.values()),
                input_names=list(given),
                output_names=outputs,
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
    Each column of a matrix has a scale of its own. Weights are unsigned as inputs are: of signed
    ones processors without VNNI lose the sums that exceed 16 bits.

    Args:
        path: The graph, which is replaced.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _quiet():
        quantize_dynamic(
            path,
            path,
            op_types_to_quantize=["Conv", "Gather", "MatMul"],  # a Gemm is made one of these
            per_channel=True,
            weight_type=QuantType.QUInt8,
        )


def is_user_code(part: object) -> bool:
    """Whether a module or a task is of a class that neither textmill nor torch has."""
    return type(part).__module__.partition(".")[0] not in ("textmill", "torch")


def _user_line(error: BaseException) -> str:
    """The innermost line that is neither textmill's nor a library's, in words; empty if none.

    >>> _user_line(ValueError("no line raised it"))
    ''
    """
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
    """Shapes by the parameters of forward: all behind a star are one."""
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

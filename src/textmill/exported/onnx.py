"""Exports that onnxruntime runs: graphs from named arrays to arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textmill.errors import UserError
from textmill.exported.columns import load_columns
from textmill.exported.language import ExportedMaskedModel
from textmill.exported.manifest import GRAPH, TEXT, ExportError
from textmill.exported.row_predictor import ExportedPredictor
from textmill.runtime.devices import processor
from textmill.runtime.files import read_all
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.language_model import MaskedText
from textmill.text.processors.text_processor import load_text_processor

MODEL, ARRAYS = "model.onnx", "arrays.safetensors"
"""Files of the graph's folder."""
LARGEST_GRAPH = (1 << 31) - 1
"""Bytes of a graph: protobuf has no longer messages."""


class OnnxGraph:
    """A session of onnxruntime; device and threads are those of ``exported.formats.load``."""

    def __init__(self, path: Path, *, device: str = "auto", threads: int = 0) -> None:
        import onnxruntime

        self.path = path
        model = read_all(path, LARGEST_GRAPH, ExportError)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # what goes wrong is raised
        # A sum with its norm in one takes 4 times as long on a CPU as the two in turn.
        options.add_session_config_entry(
            "optimization.disable_specified_optimizers", "SkipLayerNormFusion"
        )
        # Without VNNI sums of products with signed weights exceed their 16 bits: these are made
        # unsigned. With VNNI that would only be slow.
        overflows = "0" if "vnni" in processor() else "1"
        options.add_session_config_entry("session.x64quantprecision", overflows)
        providers = _providers(device, onnxruntime.get_available_providers())
        try:
            self.session: Any = onnxruntime.InferenceSession(model, options, providers=providers)
        except Exception as error:  # onnxruntime's own classes have no common base
            raise ExportError(f"{path}: onnxruntime cannot use this graph: {error}") from error
        self.inputs = tuple(each.name for each in self.session.get_inputs())
        self.outputs = tuple(each.name for each in self.session.get_outputs())

    def run(self, arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """The graph's outputs; of ``arrays`` it reads those that have the names of its inputs."""
        try:
            given = {name: arrays[name] for name in self.inputs}
        except KeyError as missing:
            name = missing.args[0]
            raise ExportError(
                f"{self.path}: needs '{name:.80}', which the text processor does not give"
            ) from None
        try:
            outputs = self.session.run(self.outputs, given)
        except Exception as error:
            raise ExportError(f"{self.path}: onnxruntime cannot answer: {error}") from error
        made = [np.asarray(each) for each in outputs]
        for name, array in zip(self.outputs, made, strict=True):
            is_float = array.dtype.kind == "f"
            if not is_float and array.dtype.kind not in "iu":
                raise ExportError(f"{self.path}: gives '{name:.80}' as {array.dtype}, no numbers")
            if is_float and np.count_nonzero(np.isfinite(array)) < array.size:
                raise ExportError(f"{self.path}: gives '{name:.80}' with NaN or infinity")
        return made


def open_export(
    folder: Path, facts: Mapping[str, Any], *, device: str, threads: int
) -> ExportedPredictor:
    """Opens a folder, as :meth:`textmill.exported.formats.ExportFormat.open` says."""
    text, answers = load_text_processor(folder / TEXT), facts["answers"]
    if not isinstance(text, ColumnsText):
        raise ExportError(f"a {type(text).__name__} cannot be answered by onnx")
    graph = OnnxGraph(folder / GRAPH / MODEL, device=device, threads=threads)
    if not isinstance(text, MaskedText):
        return load_columns(text, graph, answers, folder / GRAPH / ARRAYS)
    return ExportedMaskedModel(text, graph, **answers)


def _providers(device: str, available: list[str]) -> list[Any]:
    name, _, index = device.partition(":")
    if name not in ("auto", "cpu", "cuda") or (index and not index.isdecimal()):
        raise UserError(f"onnxruntime runs on cpu or cuda; the device {device} is neither.")
    cuda = "CUDAExecutionProvider"
    if name == "cuda" and cuda not in available:
        raise UserError(
            f"The device is {device}, but this onnxruntime has none: {', '.join(available)}. "
            "Install onnxruntime-gpu, or name cpu."
        )
    first = [(cuda, {"device_id": int(index or 0)})] if cuda in available and name != "cpu" else []
    return [*first, "CPUExecutionProvider"]

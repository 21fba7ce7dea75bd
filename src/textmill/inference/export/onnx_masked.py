"""A masked language model as a graph of ONNX: scores of the tokens at the masks."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.exported.columns import MODEL
from textmill.inference.export.onnx import write_graph
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.tasks.masked_language_model import MaskedLanguageModeling


class _Masks(nn.Module):
    def __init__(self, model: MaskedLanguageModel) -> None:
        super().__init__()
        self.model = model

    @override
    def forward(self, text: Tensor, lengths: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        return self.model.project(self.model.hidden(text, lengths)[rows, places]).float()


def write(task: MaskedLanguageModeling, folder: Path) -> dict[str, Any]:
    """Writes the graph; gives what a manifest says of answers.

    Raises:
        UserError: Torch cannot make a graph of the model.
    """
    given = {
        "text": torch.ones(3, 5, dtype=torch.int64),
        "text.lengths": torch.tensor([5, 4, 2]),
        "rows": torch.tensor([0, 0, 1, 2]),
        "places": torch.tensor([0, 4, 1, 0]),
    }
    tensors = {name: tensor.to(task.device) for name, tensor in given.items()}
    write_graph(_Masks(task.module), folder / MODEL, tensors, varying=[[0, 1], [0], [0], [0]])
    return {"top_k": task.config.top_k, "longest": task.module.encoder.max_length}

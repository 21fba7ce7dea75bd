"""The cost of quantizing an export: metrics of the run and of the export, on the same rows."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from textmill.errors import UserError, worded
from textmill.exported.ctranslate2 import ExportedLanguageModel
from textmill.exported.formats import ExportSettings
from textmill.exported.language import ExportedMaskedModel
from textmill.exported.manifest import ExportError
from textmill.exported.row_predictor import RowPredictor, is_answerable
from textmill.inference.load import Predictor
from textmill.metrics.metric import Direction
from textmill.metrics.tables import format_value, is_of_label
from textmill.tasks.evaluation import evaluate
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.tasks.task import Row, Task

ROWS = 1_000
"""Most rows that are measured; they give a share to one or two hundredths."""

Values = tuple[dict[str, float], Mapping[str, Direction]]


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Metrics of a run and of its quantized export."""

    quantize: str
    """Type of its weights."""
    rows: int
    """Rows measured."""
    where: str
    """Where they come from."""
    metric: str
    """The value that decides."""
    better: Direction
    """Whether higher or lower values are better."""
    run: Mapping[str, float]
    """Values of the run, by name."""
    export: Mapping[str, float]
    """The same of the export."""
    size: float
    """Bytes of the graph, as a share of the graph that is not quantized."""
    max_quality_loss: float
    """Largest loss allowed, as a share of the run's value."""

    @property
    def lost(self) -> float:
        """How much worse the export's metric is, as a share of the run's; below 0 if better."""
        ours, found = self.run[self.metric], self.export[self.metric]
        worse = ours - found if self.better == "higher" else found - ours
        return worse / abs(ours) if ours else math.copysign(math.inf, worse) if worse else 0.0

    def check(self) -> None:
        """Refuses an export that lost more than is allowed."""
        if not self.lost <= self.max_quality_loss:
            raise ExportError(
                f"Quantized to {self.quantize}, the export is worse by {self.lost:.1%} of the "
                f"run's {self.metric} (allowed: {self.max_quality_loss:.1%}): {self._values} on "
                f"{self.rows:,} rows of {self.where}. Nothing was written. Export it without "
                "quantize, or allow more by max_quality_loss."
            )

    @property
    def _values(self) -> str:
        both = (format_value(self.metric, each[self.metric]) for each in (self.run, self.export))
        return f"{self.metric} {' → '.join(both)}"

    @property
    def sentence(self) -> str:
        return (
            f"Quantized to {self.quantize}: {self._values} on {self.rows:,} rows of {self.where}; "
            f"{self.size:.0%} of the size."
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values; a value that does not exist is None."""
        both = {
            name: {n: v if math.isfinite(v) else None for n, v in getattr(self, name).items()}
            for name in ("run", "export")
        }
        return {**asdict(self), **both}


def measure_quality(
    predictor: Predictor,
    exported: RowPredictor,
    rows: Sequence[Row],
    *,
    where: str,
    settings: ExportSettings,
    metric: str,
    size: float,
) -> Quality:
    """Measures the metrics of a run and of its export on rows with targets.

    Of those that can be answered :data:`ROWS` are taken, evenly spread. ``metric`` decides if it is
    measured, else the first one.
    """
    assert settings.quantize is not None, "others are compared by their numbers"
    task, columns = predictor.task, predictor.task.text.columns
    by_loss = isinstance(task, LanguageModeling | MaskedLanguageModeling)
    known = [row for row in spread(rows, ROWS) if all(name in row for name in columns)]
    known = [row for row in known if by_loss or is_answerable(predictor, row)]
    if not known:
        listed = " and ".join(map(repr, columns))
        raise UserError(
            f"What quantizing costs is measured on rows with {listed}, but none of the "
            f"{len(rows):,} rows of {where} has them and can be answered. Name a file of such with "
            f"{worded('--rows FILE.jsonl', 'rows=FILE.jsonl')}, or export without quantize."
        )
    if isinstance(task, MaskedLanguageModeling) and not task.module.only_masks:
        raise UserError(
            "With model.rows_apart, model.next_sentence or model.generator the run is measured on "
            "more than the export, which fills the masks of one text, so what quantizing costs "
            "cannot be measured. Export it without quantize."
        )
    if isinstance(exported, ExportedLanguageModel):
        both = [_evaluated(task, each, known) for each in (task.module, _GraphLanguage(exported))]
    elif isinstance(exported, ExportedMaskedModel):
        both = [_evaluated(task, each, known) for each in (task.module, _GraphMasks(exported))]
    else:
        both = [_answered(task, each, known) for each in (predictor, exported)]
    (run, ways), (export, _) = both
    named = [name for name in (metric, *run) if name in ways and name in run]
    if not named:
        raise UserError(
            f"A {type(task).__name__} has no metrics of its answers, so what quantizing costs "
            "cannot be measured. Export it without quantize."
        )
    return Quality(
        quantize=settings.quantize,
        rows=len(known),
        where=where,
        metric=named[0],
        better=ways[named[0]],
        run=run,
        export=export,
        size=size,
        max_quality_loss=settings.max_quality_loss,
    )


def spread(rows: Sequence[Row], most: int) -> Sequence[Row]:
    """At most so many rows, evenly spread."""
    return rows if len(rows) <= most else [rows[i * len(rows) // most] for i in range(most)]


def _answered(task: Task, predictor: RowPredictor, rows: Sequence[Row]) -> Values:
    metrics = task.measured(predictor.answers, rows)
    ways = {name: way for each in metrics.values() for name, way in each.directions().items()}
    return _of_all(task.reduce(metrics)), ways


def _evaluated(task: Task, module: nn.Module, rows: Sequence[Row]) -> Values:
    task = copy.copy(task)
    task.module = module
    found = evaluate(task, task.batches_of("rows", rows, train=False, seed=0))
    return _of_all(found.values), found.directions


def _of_all(values: Mapping[str, float]) -> dict[str, float]:
    """Values without those of single labels, of which there can be thousands."""
    return {name: value for name, value in values.items() if not is_of_label(name)}


class _GraphLanguage(nn.Module):
    """Puts an exported language model in the module's place; its states are its scores."""

    def __init__(self, exported: ExportedLanguageModel) -> None:
        super().__init__()
        self.generator = exported.generator

    def hidden(self, ids: Tensor, state: None = None) -> tuple[Tensor, None]:
        return torch.from_numpy(self.generator.read(ids.cpu().numpy())), state

    def project(self, logits: Tensor) -> Tensor:
        return logits


class _GraphMasks(nn.Module):
    """Puts an exported masked model in the module's place; its states are places of tokens."""

    rows_apart = False
    next_sentence = replaced = None

    def __init__(self, exported: ExportedMaskedModel) -> None:
        super().__init__()
        self.exported, self.ids = exported, torch.empty(0)

    def hidden(self, ids: Tensor, parts: None = None) -> Tensor:
        """The row and the place of each token. *Shape:* :math:`(B,T,2)`."""
        self.ids = ids.cpu()
        axes = (torch.arange(size) for size in ids.shape)
        return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)

    def project(self, places: Tensor) -> Tensor:
        """Logits of tokens at places. *Shape:* :math:`(N,2)` to :math:`(N,V)`."""
        return torch.from_numpy(self.exported.scores(self.ids.numpy(), *places.numpy().T))

"""Which model of ``transformers`` computes what a fine-tuned encoder and its head do.

Its names of the weights, which are the encoder's own and two layers' of a head at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor, nn

from textmill.models import registries
from textmill.models.classifier import Classifier, Regressor, TextVector
from textmill.models.embedding.sentence_encoder import SentenceEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.pairs import PairClassifier, PairRegressor
from textmill.models.poolings import Pooler
from textmill.models.tagger import Tagger
from textmill.runtime.pretrained import POOLINGS
from textmill.tasks.classification import DocumentClassification, PairClassification
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.regression import DocumentRegression, PairRegression
from textmill.tasks.tagging import WordTagging

_BERTS: Final = ("bert.pooler.dense", "classifier", "tanh")
_ROBERTAS: Final = ("classifier.dense", "classifier.out_proj", "tanh")
_DEBERTAS: Final = ("pooler.dense", "classifier", "")
_TEXT_HEADS: Final = {
    "bert": _BERTS,
    "camembert": _ROBERTAS,
    "deberta": _DEBERTAS,
    "deberta-v2": _DEBERTAS,
    "electra": ("classifier.dense", "classifier.out_proj", "gelu"),
    "roberta": _ROBERTAS,
    "xlm-roberta": _ROBERTAS,
}
"""What a head of texts calls its layers, and the activation between; empty: a setting says it."""

Scored: TypeAlias = Classifier | Regressor | PairClassifier | PairRegressor


@dataclass(frozen=True)
class Form:
    """How transformers reads what was exported."""

    loader: str = "AutoModel"
    """The class whose ``from_pretrained`` does."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What ``config.json`` says besides the architecture."""
    head: Mapping[str, Tensor] = field(default_factory=dict)
    """The head's weights, by their names there."""
    why: str = ""
    """Why no program reads more than the encoder; empty where one does."""
    pooling: str = ""
    """What sentence-transformers calls the pooling of a sentence encoder, which it reads."""

    @property
    def alone(self) -> bool:
        """Whether transformers reads the encoder alone."""
        return self.loader == Form.loader

    @property
    def note(self) -> str:
        """The same for a person."""
        if self.pooling:
            return "sentence-transformers reads all of it; transformers its encoder, by AutoModel."
        if not self.why:
            return f"transformers reads all of it, by {self.loader}."
        return (
            f"transformers reads the encoder alone, by {self.loader}, and the weights behind it "
            f"are in head.safetensors: {self.why}."
        )


def encoder_of(module: nn.Module) -> PretrainedEncoder | None:
    """The pretrained encoder of a model; None where it has none.

    Example:
        >>> encoder_of(nn.Linear(1, 1)) is None
        True
    """
    found = [part for part in module.modules() if isinstance(part, PretrainedEncoder)]
    return found[0] if found else None


def form_of(task: ColumnsTask, encoder: PretrainedEncoder) -> Form:
    """The form in which transformers can read a task's model, whole where it can.

    Args:
        task: The task with its module.
        encoder: That of the module.
    """
    module, kind = task.module, str((encoder.config.architecture or {})["model_type"])
    texts = DocumentClassification | DocumentRegression | PairClassification | PairRegression
    if isinstance(module, SentenceEncoder):
        names = {name: there for there, name in POOLINGS.items()}
        name = names.get(registries.poolings.name_of(type(module.text.pooling)) or "", "")
        why = "" if name else "sentence-transformers has no such pooling (model.pooling)"
        return Form(pooling=name, why=why)
    if isinstance(module, Tagger) and isinstance(task, WordTagging):
        return _words(module, task, kind)
    if isinstance(module, Scored) and isinstance(task, texts):
        return _texts(module, task, kind)
    return Form(why=f"no model there has the answers of {type(task).__name__}")


def _words(module: Tagger, task: WordTagging, kind: str) -> Form:
    if module.crf is not None:
        return Form(why="model.crf is true, and no model there has a random field")
    if kind not in _TEXT_HEADS:
        return Form(why=f"the layers before the scores of a {kind} there are others")
    settings = _named(task.text.ingredients["labels"].names)
    return Form("AutoModelForTokenClassification", settings, _layer("classifier", module.scores))


def _texts(module: Scored, task: Any, kind: str) -> Form:
    pooling, scores = module.text.pooling, _single(module.scores)
    if kind not in _TEXT_HEADS:
        return Form(why=f"the layers before the scores of a {kind} there are others")
    dense, out, activation = _TEXT_HEADS[kind]
    wanted = f" model.pooling.activation={activation}" if activation == "gelu" else ""
    if not isinstance(pooling, Pooler):
        return Form(
            why=f"model.pooling is not pooler, by which a {kind} there reads texts "
            f"(model.pooling.type=pooler{wanted})"
        )
    if activation not in ("", pooling.config.activation):
        return Form(
            why=f"model.pooling.activation is {pooling.config.activation}, but {activation} "
            f"there for a {kind}"
        )
    if scores is None or scores.in_features != module.text.out_dim:
        return Form(why="there is more before the scores than the pooled vector")
    if getattr(module, "wide", None) is not None or not _reads_texts(task, module.text):
        return Form(why="the model reads more than texts as one row of tokens")
    settings = _answers(task)
    if settings is None:
        return Form(why="task.loss makes other probabilities of scores than are made there")
    if not activation:
        settings |= {
            "pooler_hidden_act": pooling.config.activation,
            "pooler_hidden_size": pooling.out_dim,
        }
    head = _layer(dense, pooling.dense) | _layer(out, scores, span=_span(task))
    return Form("AutoModelForSequenceClassification", settings, head)


def _reads_texts(task: Any, text: TextVector) -> bool:
    together = getattr(task.module, "together", False)
    pair = len(task.text.input_columns) == 2
    return set(task.text.inputs) <= {"text", "text1", "text2"} and together == pair


def _single(scores: nn.Sequential) -> nn.Linear | None:
    """The only layer that learns; None: there are more."""
    layers = [layer for layer in scores if isinstance(layer, nn.Linear)]
    return layers[0] if len(layers) == 1 else None


def _named(names: Any) -> dict[str, Any]:
    numbered = dict(enumerate(names))
    return {"id2label": numbered, "label2id": {name: i for i, name in numbered.items()}}


def _answers(task: Any) -> dict[str, Any] | None:
    """What says how scores become answers there; None: nothing does."""
    if isinstance(task, DocumentRegression | PairRegression):
        return {"num_labels": 1, "problem_type": "regression"}
    labels = task.text.label.labels.names
    some = torch.linspace(-2, 3, len(labels))[None]
    made = task.criterion.probabilities(some)
    kind = "multi" if task.text.multiple else "single"
    wanted = some.sigmoid() if task.text.multiple else some.softmax(-1)
    if not torch.allclose(made.cpu(), wanted, atol=1e-6):
        return None
    return {**_named(labels), "problem_type": f"{kind}_label_classification"}


def _span(task: Any) -> tuple[float, float] | None:
    found: tuple[float, float] | None = (
        task.text.number.span if isinstance(task, DocumentRegression | PairRegression) else None
    )
    return found


def _layer(
    name: str, layer: nn.Linear, *, span: tuple[float, float] | None = None
) -> dict[str, Tensor]:
    """A layer's weights; where its 0 and 1 stand for a ``span``, those that give that itself."""
    weight, bias = layer.weight.detach(), layer.bias.detach()
    if span is not None:
        low, high = span
        weight, bias = weight * (high - low), low + bias * (high - low)
    return {f"{name}.weight": weight, f"{name}.bias": bias}

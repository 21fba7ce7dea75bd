"""A folder that ``transformers`` loads of a fine-tuned encoder; compared by loading it."""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from textmill.checkpoint.tensors import write_tensors
from textmill.data.column_batch import ColumnBatch, collate_columns
from textmill.inference.export.compare import NUMBERS, Comparison, compare, difference
from textmill.inference.export.huggingface_folder import (
    FORMAT,
    loaded,
    refuse_other_ids,
    write_tokenizer,
)
from textmill.models import registries
from textmill.models.classifier import Classifier, Regressor
from textmill.models.encoders.pretrained import PretrainedEncoder, framed_pairs, framed_words
from textmill.models.pairs import PairClassifier, PairRegressor, SentenceEncoder
from textmill.models.poolings import Pooler
from textmill.models.pretrained import pretrained_config
from textmill.models.tagger import Tagger
from textmill.runtime.disk import HashingFile
from textmill.runtime.files import write_file
from textmill.runtime.pretrained import LENGTHS, MODULES, POOLING, POOLINGS
from textmill.tasks.classification import DocumentClassification, LabelTask, PairClassification
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.regression import DocumentRegression, PairRegression
from textmill.tasks.tagging import WordTagging
from textmill.tasks.task import Row
from textmill.text.cells import words_in
from textmill.text.columns.texts import TextsColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

HEAD = "head.safetensors"
"""File of the weights after the encoder, if transformers has no model for them."""
MOST = 512
"""Most tokens of a text for encoders without position embeddings."""
CARD = """# {title}

Fine-tuned by textmill. {note}

```python
{code}
```

It reads {length} tokens at most.
"""
CODE = """from transformers import AutoTokenizer, {loader}

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = {loader}.from_pretrained("FOLDER"{options})
inputs = tokenizer(["a text"], truncation=True, return_tensors="pt")"""
VECTORS = """from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("FOLDER").encode(["a text", "another"])"""

_ROBERTAS: Final = ("classifier.dense", "classifier.out_proj", "tanh")
_DEBERTAS: Final = ("pooler.dense", "classifier", "")
_TEXT_HEADS: Final = {
    "bert": ("bert.pooler.dense", "classifier", "tanh"),
    "camembert": _ROBERTAS,
    "deberta": _DEBERTAS,
    "deberta-v2": _DEBERTAS,
    "electra": ("classifier.dense", "classifier.out_proj", "gelu"),
    "roberta": _ROBERTAS,
    "xlm-roberta": _ROBERTAS,
}
"""Names of a classification head's two layers, and its activation; empty if a setting says it."""

Scored: TypeAlias = Classifier | Regressor | PairClassifier | PairRegressor


@dataclass(frozen=True)
class Form:
    """How transformers loads an export."""

    loader: str = "AutoModel"
    """The class whose ``from_pretrained`` loads it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings in ``config.json`` besides the architecture."""
    head: Mapping[str, Tensor] = field(default_factory=dict)
    """The head's weights, by their names there."""
    why: str = ""
    """Why only the encoder is loaded; empty if all of the model is."""
    pooling: str = ""
    """The pooling of a sentence encoder by its name in sentence-transformers."""

    @property
    def alone(self) -> bool:
        """Whether transformers loads the encoder only."""
        return self.loader == Form.loader

    @property
    def note(self) -> str:
        """Which program loads how much, for a person."""
        if self.pooling:
            return "sentence-transformers reads all of it; transformers its encoder, by AutoModel."
        if not self.why:
            return f"transformers reads all of it, by {self.loader}."
        return (
            f"transformers reads the encoder alone, by {self.loader}, and the weights behind it "
            f"are in head.safetensors: {self.why}."
        )


def refusals(task: ColumnsTask) -> Iterator[str]:
    """Why a task with a pretrained encoder cannot be written; empty if it can be."""
    found = _tokenizer(task)
    if not isinstance(found, PretrainedTokenizer):
        yield f"the tokenizer is a {type(found).__name__}, not the encoder's own (pretrained)"
    if any(isinstance(column, TextsColumn) for column in task.text.inputs.values()):
        yield "a row has several texts, whose vectors transformers does not join"


def write(task: ColumnsTask, folder: Path) -> None:
    """Writes all that ``from_pretrained`` loads of a task with a pretrained encoder."""
    import transformers

    encoder = _encoder(task)
    form = form_of(task, encoder)
    config = pretrained_config(encoder.config.architecture or {}, "", needed_by=FORMAT)
    config.update({**form.settings, "dtype": "float32"})
    model = getattr(transformers, form.loader).from_config(config, **_options(config, form))
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    weights = {**encoder.model.state_dict(), **form.head}
    prefix = "" if form.alone else f"{model.base_model_prefix}."
    wanted = [*model.state_dict()]
    own = {name: name if name in form.head else name.removeprefix(prefix) for name in wanted}
    _write(folder / "model.safetensors", {name: weights[own[name]] for name in wanted})
    if form.why:  # else all other weights are read, or there are none
        read = {id(weight) for weight in encoder.state_dict(keep_vars=True).values()}
        every = task.module.state_dict(keep_vars=True).items()
        _write(folder / HEAD, {name: weight for name, weight in every if id(weight) not in read})
    most = _most(task, encoder)
    tokenizer = _tokenizer(task)
    info = tokenizer.vocab_info
    typed = ["token_type_ids"] if getattr(config, "type_vocab_size", 0) > 1 else []
    write_tokenizer(
        folder,
        tokenizer,
        {"cls": info.bos_idx, "sep": info.eos_idx, "pad": info.pad_idx, "unk": info.unk_idx},
        spaced="pieces" in task.text.inputs,
        model_max_length=most,
        model_input_names=["input_ids", *typed, "attention_mask"],
    )
    if form.pooling:
        _write_sentence_files(folder, task, form.pooling, dim=encoder.out_dim, most=most)
    options = "".join(f", {name}={value}" for name, value in _options(config, form).items())
    card = CARD.format(
        title=f"{type(task).__name__}, {config.model_type}",
        note=form.note,
        code=VECTORS if form.pooling else CODE.format(loader=form.loader, options=options),
        length=most,
    )
    write_file(folder / "README.md", card)


def _write_sentence_files(
    folder: Path, task: ColumnsTask, pooling: str, *, dim: int, most: int
) -> None:
    config: Any = task.module.config
    kinds = ["Transformer", "Pooling", *["Normalize"] * config.normalize]
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds[1:], start=1))]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    modes = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
    pooled = {f"pooling_mode_{mode}": name == pooling for name, mode in modes.items()}
    for path in paths[1:]:
        (folder / path).mkdir()
    files: dict[str, Any] = {
        MODULES: modules,
        LENGTHS: {"max_seq_length": most, "do_lower_case": False},
        POOLING: {"word_embedding_dimension": dim, **pooled},
    }
    for name, content in files.items():
        write_file(folder / name, json.dumps(content, indent=2))


def _encoder(task: ColumnsTask) -> PretrainedEncoder:
    encoder = encoder_of(task.module)
    assert encoder is not None, "others are refused"
    return encoder


def _most(task: ColumnsTask, encoder: PretrainedEncoder) -> int:
    """Most tokens of a row, marks among them."""
    positions, words = encoder.max_length, "pieces" in task.text.inputs
    if words or "question" in task.text.inputs:  # the limits are of words, and of questions
        return MOST if positions is None else positions + (2 if words else 0)
    limit = min(task.text.limits.values())  # all are alike
    return 2 * limit if getattr(task.module, "together", False) else limit


def _tokenizer(task: ColumnsTask) -> Any:
    pieces = task.text.ingredients.get("pieces")
    return task.text.ingredients["tokenizer"] if pieces is None else pieces.tokenizer


def _options(config: Any, form: Form) -> dict[str, Any]:
    """Arguments of ``from_pretrained``: an encoder alone has no pooling layer."""
    import transformers

    kind: Any = transformers.MODEL_MAPPING[type(config)]
    pooled = "add_pooling_layer" in inspect.signature(kind).parameters
    return {"add_pooling_layer": False} if form.alone and pooled else {}


def _write(path: Path, tensors: dict[str, Tensor]) -> None:
    with HashingFile(path) as file:
        write_tensors(file, {name: each.detach().float().cpu() for name, each in tensors.items()})


def compare_encoder(task: ColumnsTask, folder: Path, rows: Sequence[Row]) -> Comparison:
    """Loads the folder as a user would, and compares its answers with the run's."""
    encoder = _encoder(task)
    form = form_of(task, encoder)
    config = pretrained_config(encoder.config.architecture or {}, "", needed_by=FORMAT)
    model, tokenizer = loaded(form.loader, folder, **_options(config, form))
    found = (_vectors_apart if form.alone else _answers_apart)(task, model, tokenizer, rows)
    apart = ((each is not None, each or 0.0) for each in found)
    if not form.alone:
        return compare(rows, apart, note=form.note)
    numbers, things = ("numbers of vectors", NUMBERS[1]), "texts have the same vectors"
    return compare(rows, apart, numbers, things=things, note=form.note)


def _answers_apart(
    task: ColumnsTask, model: Any, tokenizer: Any, rows: Sequence[Row]
) -> Iterator[float | None]:
    """Differences of the numbers of answers; None if the answers differ in something else."""
    text, encoded = task.text, task.text.encode(rows, with_targets=False)
    over, cut = {*encoded.over_length.tolist()}, task.text.cut(encoded)
    ours = [task.answer_row(answer) for answer in task.predict(rows)]
    for number, row in enumerate(rows):
        batch = collate_columns(cut, text.inputs, np.array([number]))
        read = _read(_encoder(task), batch)
        if number not in over and read.whole:
            refuse_other_ids(rows, number, _ids_of(task, tokenizer, row), read.ids[0].tolist())
        [answer] = task.answers(_scores(task, model, read), batch)
        yield difference(ours[number], task.answer_row(task.text.completed(answer, row)))


@dataclass(frozen=True)
class _Read:
    """A row as the run's encoder reads it."""

    ids: Tensor
    """Of its tokens. *Shape:* :math:`(1,S)`."""
    types: Tensor | None = None
    """Of which text each is; None: of one. *Shape:* :math:`(1,S)`."""
    begins: Tensor | None = None
    """Where each word begins. *Shape:* :math:`(1,T)`."""
    whole: bool = True
    """Whether no word can have lost a piece."""


def _read(encoder: PretrainedEncoder, batch: ColumnBatch) -> _Read:
    info, most = encoder.vocab_info, encoder.max_length
    if "pieces" in batch:
        pieces = F.pad(batch["pieces"], (0, 0, 0, 1), value=info.pad_idx)  # a text can have no word
        ids, _, begins = framed_words(pieces, batch.lengths["words"], info, most=most)
        some = bool((pieces[..., -1] == info.pad_idx).all())
        short = most is None or int((pieces != info.pad_idx).sum()) <= most
        return _Read(ids, begins=begins, whole=some and short)
    if "text" in batch:
        return _Read(batch["text"])
    sides = [of for role in ("text1", "text2") for of in (batch[role], batch.lengths[role])]
    ids, _, types = framed_pairs(*sides, info=info, two_marks=encoder.two_marks)
    return _Read(ids, types=types if encoder.typed else None)


def _ids_of(task: ColumnsTask, tokenizer: Any, row: Row) -> list[int]:
    """The ids of a row by the exported tokenizer."""
    columns = task.text.input_columns
    if "pieces" in task.text.inputs:
        words = words_in(row[columns[0]], columns[0], 0)
        return list(tokenizer(words, is_split_into_words=True)["input_ids"])
    return list(tokenizer(*(row[name] for name in columns))["input_ids"])


@torch.inference_mode()
def _scores(task: ColumnsTask, model: Any, read: _Read) -> Tensor:
    """Scores of a row in the task's own form, from those of transformers."""
    given = {} if read.types is None else {"token_type_ids": read.types}
    scores: Tensor = model(input_ids=read.ids, **given).logits
    if read.begins is not None:
        return scores.gather(1, read.begins[..., None].expand(-1, -1, scores.shape[-1]))
    if (span := _span(task)) is not None:
        low, high = span
        return (scores - low) / (high - low)
    return scores


@torch.inference_mode()
def _vectors_apart(
    task: ColumnsTask, model: Any, tokenizer: Any, rows: Sequence[Row]
) -> Iterator[float | None]:
    """Differences of the vectors of rows' first texts; None if more than is allowed."""
    encoder = _encoder(task)
    name, device, most = task.text.input_columns[0], task.device, _most(task, encoder)
    spaced = "pieces" in task.text.inputs
    column = TextColumn(name, _tokenizer(task), limit=most)
    texts = [row[name] for row in rows]
    texts = [" ".join(words_in(text, name, 0)) if spaced else text for text in texts]
    encoded = column.encode([f" {text}" for text in texts] if spaced else texts)
    task.module.eval()
    for number, (text, each) in enumerate(zip(texts, column.cut(encoded, most), strict=True)):
        ids = tokenizer(text, truncation=True)["input_ids"]
        refuse_other_ids(rows, number, ids, each.tolist())
        given = torch.tensor([ids])
        ours = encoder(given.to(device), torch.tensor([len(ids)], device=device)).cpu().float()
        theirs = model(input_ids=given).last_hidden_state
        apart = float(((ours - theirs).abs() / ours.abs().clamp(min=1)).max())
        yield apart if apart <= NUMBERS[1] else None


def encoder_of(module: nn.Module) -> PretrainedEncoder | None:
    """The pretrained encoder of a model; None where it has none."""
    found = [part for part in module.modules() if isinstance(part, PretrainedEncoder)]
    return found[0] if found else None


def form_of(task: ColumnsTask, encoder: PretrainedEncoder) -> Form:
    """The form in which transformers loads a task's model: whole if it can."""
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
    pair, together = len(task.text.input_columns) == 2, getattr(module, "together", False)
    is_text = {*task.text.inputs} <= {"text", "text1", "text2"} and together == pair
    if getattr(module, "wide", None) is not None or not is_text:
        return Form(why="the model reads more than texts as one row of tokens")
    settings = _answers(task)
    if settings is None:
        return Form(why="task.loss makes other probabilities of scores than are made there")
    if isinstance(task, LabelTask) and task.text.thresholds is not None:
        return Form(
            why="it is calibrated for a share of correct answers; no model there has thresholds"
        )
    if not activation:
        settings["pooler_hidden_act"] = pooling.config.activation
        settings["pooler_hidden_size"] = pooling.out_dim
    head = _layer(dense, pooling.dense) | _layer(out, scores, span=_span(task))
    return Form("AutoModelForSequenceClassification", settings, head)


def _single(scores: nn.Sequential) -> nn.Linear | None:
    """The only linear layer; None if there are several."""
    layers = [layer for layer in scores if isinstance(layer, nn.Linear)]
    return layers[0] if len(layers) == 1 else None


def _named(names: Any) -> dict[str, Any]:
    numbered = dict(enumerate(names))
    return {"id2label": numbered, "label2id": {name: i for i, name in numbered.items()}}


def _answers(task: Any) -> dict[str, Any] | None:
    """Settings by which scores become answers there; None if there are none."""
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
    """What a score of 0 and one of 1 become there; None: they stay what they are."""
    if isinstance(task, LabelTask) and task.text.temperature != 1:
        return 0.0, 1 / task.text.temperature
    return task.text.number.span if isinstance(task, DocumentRegression | PairRegression) else None


def _layer(
    name: str, layer: nn.Linear, *, span: tuple[float, float] | None = None
) -> dict[str, Tensor]:
    """A layer's weights; where its 0 and 1 stand for a ``span``, those that give that itself."""
    weight, bias = layer.weight.detach(), layer.bias.detach()
    if span is not None:
        low, high = span
        weight, bias = weight * (high - low), low + bias * (high - low)
    return {f"{name}.weight": weight, f"{name}.bias": bias}

"""Files of settings of other frameworks: the textmill command that comes nearest to one.

PyText's JSON and Model Garden's YAML. It is a table and no converter: the experiment for the task,
and what the file says of data, length and learning rate.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from textmill.config.foreign_names import OWN, SETTINGS
from textmill.errors import UserError

PRETRAINED = " model.encoder.path=FOLDER"
_LABELED = "label: label|doc_label, text: text"
_WORDS = "words: text, tags: slots|word_label"
_FRAMES = "label: label|doc_label, text: text, slots: slots|word_label"
_PAIR = "text1: text1, text2: text2"
_TREES = "source: tokenized_text|text, target: seqlogical"
_SEQUENCES = "source: source_sequence, target: target_sequence"
_SPANS = " train_data.spans='{tags: words}'"

PYTEXT = (
    ("NewBertClassification", "", "classification/pretrained" + PRETRAINED, _LABELED),
    ("DocumentClassification", "BERT", "classification/pretrained" + PRETRAINED, _LABELED),
    ("DocumentClassification", "BiLSTM", "classification/bilstm", _LABELED),
    ("DocumentClassification", "", "classification/docnn", _LABELED),
    ("DocClassification", "BiLSTM", "classification/bilstm", _LABELED),
    ("DocClassification", "", "classification/docnn", _LABELED),
    ("DocumentRegression", "", "regression/docnn", "score: label, text: text"),
    ("NewBertPairClassification", "", "pairs/pretrained" + PRETRAINED, f"label: label, {_PAIR}"),
    ("BertPairRegression", "", "similarity/pretrained" + PRETRAINED, f"{_PAIR}, score: label"),
    ("PairwiseClassification", "", "pairs/classification", f"label: label, {_PAIR}"),
    ("PairwiseRegression", "", "pairs/regression", f"{_PAIR}, score: label"),
    (
        "QueryDocumentPairwiseRanking", "", "pairs/ranking",
        "query: query, positive: pos_response, negative: neg_response",
    ),
    ("WordTagging", "CRF", "tagging/bilstm-crf" + _SPANS, _WORDS),
    ("WordTagging", "", "tagging/bilstm" + _SPANS, _WORDS),
    ("RoBERTaNER", "", "ner/pretrained" + PRETRAINED, "words: text, tags: label"),
    (
        "IntentSlot", "Contextual", "joint/context slots.format=spans",
        "label: label, turns: text_seq, slots: slots",
    ),
    ("IntentSlot", "CRF", "joint/bilstm-crf slots.format=spans", _FRAMES),
    ("IntentSlot", "", "joint/bilstm slots.format=spans", _FRAMES),
    ("JointText", "", "joint/bilstm slots.format=spans", _FRAMES),
    ("MaskedLM", "", "bert/pretraining train_data.type=text_rows", "text: text"),
    ("LM", "", "language/lstm train_data.type=text_rows", "text: text"),
    ("SeqNN", "", "classification/sentences", "label: label|doc_label, text: text_seq"),
    (
        "SquadQA", "", "question/drqa",
        "context: doc, question: question, answers: answers, answer_starts: answer_starts",
    ),
    ("SemanticParsing", "", "trees/rnng", _TREES),
    ("SequenceLabeling", "", "parsing/top model.type=lstm_seq2seq", _SEQUENCES),
    ("Seq2Seq", "", "parsing/top model.type=lstm_seq2seq", _SEQUENCES),
    ("NARSeq2Seq", "", "parsing/mask-predict", _SEQUENCES),
    ("DecoupledNARSeq2Seq", "", "parsing/mask-predict", _SEQUENCES),
    ("Ensemble", "IntentSlot", "joint/bilstm slots.format=spans task.sample_rate=0.9", _FRAMES),
    ("Ensemble", "", "classification/docnn task.sample_rate=0.9", _LABELED),
)  # fmt: skip
"""Task there, a word of its settings, recipe here, and the columns: ours with those there."""

GARDEN = (
    ("max_predictions_per_seq", "bert/pretraining"),
    ("n_best_size", "question/pretrained" + PRETRAINED),
    ("class_names", "tagging/pretrained" + PRETRAINED),
    ("src_lang", "translation/tatoeba"),
    ("text_fields", "pairs/pretrained" + PRETRAINED),
    ("num_classes", "classification/pretrained" + PRETRAINED),
)
"""A name in the settings there, and the recipe here: the file does not name its experiment."""

CARRIED = (
    "train_data.path", "valid_data.path", "test_data.path", "train_data.batch_size",
    "trainer.max_epochs", "trainer.max_steps", "optimizer.lr",
)  # fmt: skip
"""Settings that are taken over."""


def refuse_foreign(path: Path, content: Any) -> None:
    """Refuses a file of another framework: what it is, and what to type in its place."""
    config = content.get("config", content) if isinstance(content, Mapping) else {}
    task = config.get("task") if isinstance(config, Mapping) else None
    if not isinstance(task, Mapping):
        return
    kind, inside = next(iter(task.items()), ("", None))
    if len(task) == 1 and str(kind)[:1].isupper() and isinstance(inside, Mapping):
        what, words = f"a config of PyText ({kind})", _pytext(kind, inside)
        rest = "Of its model and features nothing is taken over"
        if kind.startswith("Ensemble"):
            rest = "Train one for each trainer.seed, and join them: textmill ensemble RUN RUN"
    elif "runtime" in config or {"train_data", "init_checkpoint"} & {*task}:
        text = json.dumps(task, default=str)
        recipe = next((there for name, there in GARDEN if f'"{name}"' in text), "RECIPE")
        what, words = "a config of Model Garden", [*shlex.split(recipe), *_carried(config)]
        rest = "TFRecord files and TensorFlow's checkpoints are not read: name files of text"
    else:
        return
    command = shlex.join(["textmill", "train", *words])
    raise UserError(
        f"{path}: this is {what}, which textmill does not read. The nearest command is\n"
        f"  {command}\n{rest}. What a recipe can set: textmill help {words[0]} --all; "
        "which recipes there are: textmill list experiments."
    )


def _pytext(kind: str, settings: Mapping[str, Any], task: str = "") -> list[str]:
    """Recipe and settings for a task of PyText; those of one of several begin with its name."""
    several = settings.get("tasks")
    if isinstance(several, Mapping):
        words = ["multitask/words"]
        for name, each in several.items():
            for inner, of in each.items() if isinstance(each, Mapping) else ():
                own = str(name).lower()
                first, *more = _pytext(inner, of, f"{own}.")
                words += [f"{own}.recipe={first}", *more]
                if first == "language/lstm":  # of another size than an encoder
                    words += ["tokenizer.marks=true", "task.share=[]"]
        here = {key: value for key, value in settings.items() if key != "tasks"}
        return words + [word for word in _carried(here) if "_data." not in word]
    name, text = kind.removesuffix("_Deprecated").removesuffix("Task"), json.dumps(settings)
    found = (row[2:] for row in PYTEXT if row[0].lower() == name.lower() and row[1] in text)
    recipe, columns = next(found, ("RECIPE", ""))
    first, *more = shlex.split(recipe)
    data = _carried(settings)
    if not data[0].endswith((".tsv", ".json", "=FILE")):
        more.append("train_data.format=tsv")  # whatever its name says
    more += _columns(columns, settings) + data
    return [first, *(task + word for word in more)]


def _carried(settings: Mapping[str, Any]) -> list[str]:
    """The settings that are taken over, as words; a file is asked for if none is named."""
    found = {"train_data.path": "FILE", "valid_data.path": "FILE"}
    for place, value in _leaves(settings):
        ours = OWN.get(place[-1]) or SETTINGS.get(place[-1], "")
        if "validation_data" in place:
            ours = ours.replace("train_data.path", "valid_data.path")
            ours = "" if ours == "train_data.batch_size" else ours
        if ours in CARRIED and value and not isinstance(value, bool):
            found[ours] = value
    length = {"trainer.max_epochs", "trainer.max_steps"}
    if len(known := length & {*found}) == 1:
        found[(length - known).pop()] = "null"
    return [f"{name}={found[name]}" for name in CARRIED if name in found]


def _columns(wanted: str, settings: Mapping[str, Any]) -> list[str]:
    """Where the columns stand in the data; none if the settings do not say it."""
    lists = [(place[-1], value) for place, value in _leaves(settings) if isinstance(value, list)]
    names = next((v for name, v in lists if name in ("field_names", "columns_to_read")), None)
    moved = {v: p[-1] for p, v in _leaves(settings) if "column_mapping" in p and v != p[-1]}
    if names is None and "data_handler" not in settings and wanted:
        named = ", ".join(each.partition("|")[0] for each in wanted.split(", "))
        return ["train_data.header=true", f"train_data.columns={{{named}}}"]
    found = []
    for ours, theirs in (each.split(": ") for each in wanted.split(", ") if each):
        there = [moved.get(name, name) for name in theirs.split("|")]
        place = next((names.index(name) for name in there if names and name in names), None)
        if place is None:
            return []
        found.append(f"{ours}: {place}")
    return [f"train_data.columns={{{', '.join(found)}}}"] if found else []


def _leaves(node: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Texts, numbers and lists of a tree of settings, each with its path."""
    if isinstance(node, Mapping):
        for name, inner in node.items():
            yield from _leaves(inner, (*place, str(name)))
    elif place:
        yield place, node

"""PyText's twenty cases: what its users could do, on its own tiny files.

    python -m benchmarks.results pytext --data data

Each case is trained and evaluated on the same few rows, as the ceiling that PyText's own models
reach on them; what is wanted is what its version 0.3.3 reached, or the ceiling.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import textmill
from textmill.errors import TextmillError

BEGIN = "<!-- made by make results RESULTS=pytext -->"
END = "<!-- made by make results RESULTS=pytext: end -->"
COLUMNS = ("case", "recipe", "reached", "wanted", "")
QUIET = ("reporters.console=false", "reporters.html=false")
STEADY = ("lr_scheduler.type=constant", "lr_scheduler.warmup_steps=0", "trainer.ema=null")
SURE = (*STEADY, "tokenizer.min_count=1", "model.dropout=0", "optimizer.lr=0.01")
KIM = ("tokenizer.type=fitted_words", "ngrams=null", "model.encoder.widths=[3, 4]")


@dataclass(frozen=True)
class Case:
    """One of the twenty: what is trained, and which values are wanted."""

    number: str
    name: str
    recipe: str
    file: str
    words: Sequence[str]
    wanted: Mapping[str, float]
    """Values by their names, at least; of a loss or a perplexity at most."""
    prepare: Callable[[Path], Path] | None = None
    """Writes the file in another form; where that is."""
    train: Callable[..., Mapping[str, float]] | None = None
    """What is done in place of a training and an evaluation."""


LOWER = ("loss", "perplexity", "lm/perplexity")


def trained(case: Case, data: Path) -> Mapping[str, float]:
    """The values of the best checkpoint on the rows that it was trained on."""
    path = data / "pytext-tiny" / case.file
    path = case.prepare(path) if case.prepare else path
    words = [f"train_data.path={path}", f"valid_data.path={path}", *QUIET, *case.words]
    run = textmill.run_experiment(case.recipe, "train_and_evaluate", "run", words)
    return run.evaluations["valid_data"].values


def tagged(path: Path) -> Path:
    """The words of rows of label, slots and text, each with its slot or NoLabel."""
    lines = []
    for row in path.read_text(encoding="utf-8").splitlines():
        _, slots, text = row.split("\t")[:3]
        spans = [slot.split(":") for slot in slots.split(",") if slot]
        end = 0
        for word in text.split():
            start = text.index(word, end)
            end = start + len(word)
            inside = (n for a, b, n in spans if int(a) <= start and end <= int(b))
            lines.append(f"{word}\t{next(inside, 'NoLabel')}")
        lines.append("")
    made = Path("tagged.conll")
    made.write_text("\n".join(lines), encoding="utf-8")
    return made


def squad(path: Path) -> Path:
    """Rows of text, question, answers and their places as SQuAD's JSON."""
    paragraphs = []
    for number, row in enumerate(path.read_text(encoding="utf-8").splitlines()):
        context, question, answers, starts = row.split("\t")[:4]
        places = zip(json.loads(answers), json.loads(starts), strict=True)
        found = [{"text": text, "answer_start": int(start)} for text, start in places]
        asked = {"id": str(number), "question": question, "answers": found}
        paragraphs.append({"context": context, "qas": [asked]})
    made = Path("squad.json")
    made.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    return made


def multitask(case: Case, data: Path) -> Mapping[str, float]:
    """Labels of documents and a language model, on one LSTM."""
    tiny = data / "pytext-tiny"
    words = [
        *QUIET, "docs.recipe=classification/bilstm", "lm.recipe=language/lstm",
        *(f"docs.{part}_data.path={tiny / 'train_data_tiny.tsv'}" for part in ("train", "valid")),
        *(f"lm.{part}_data.path={tiny / 'alarm_lm_tiny.tsv'}" for part in ("train", "valid")),
        "docs.train_data.columns={label: 0, text: 2}", *case.words,
    ]  # fmt: skip
    run = textmill.train(case.recipe, words, run_dir="run")
    last = [line for line in run.history if line["split"] == "valid"][-1]
    answer = textmill.load("run/docs")("turn on all my alarms")
    return {**last, "docs answers": float(answer.label == "alarm/set_alarm")}


def ensemble(case: Case, data: Path) -> Mapping[str, float]:
    """Two kinds of classifiers, each of a sample of the rows, and the run that joins them."""
    path = data / "pytext-tiny" / case.file
    words = [f"train_data.path={path}", f"valid_data.path={path}", *QUIET, *case.words]
    for name in ("docnn", "bilstm"):
        textmill.train(f"classification/{name}", words, run_dir=name)
    from textmill.runs.ensemble import ensemble as joined

    joined([Path("docnn"), Path("bilstm")], Path("run"))
    members = [textmill.load(name)("sound the alarm").scores for name in ("docnn", "bilstm")]
    values = dict(textmill.evaluate("run")["valid_data"].values)
    return {**values, "members differ": float(members[0] != members[1])}


def soft_labels(path: Path) -> Path:
    """Rows of text, label and the log probabilities of labels by their names."""
    lines = []
    for row in path.read_text(encoding="utf-8").splitlines():
        text, scores, _, names, label = row.split("\t")
        soft = dict(zip(json.loads(names), json.loads(scores), strict=True))
        lines.append(json.dumps({"text": text, "label": label, "scores": soft}))
    made = Path("soft.jsonl")
    made.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return made


def rates(case: Case, data: Path) -> Mapping[str, float]:
    """The learning rates of three epochs of one step, and where the run stops."""
    path, other = (data / "pytext-tiny" / name for name in (case.file, "test_data_tiny.tsv"))
    words = [f"train_data.path={path}", f"valid_data.path={other}", *QUIET, *case.words]
    run = textmill.train(case.recipe, [*words, f"test_data.path={other}"], run_dir="run")
    lines = run.history
    best = run.result["best"]["step"]
    tested = next(line for line in lines if line["split"] == "test")
    kept = next(x for x in lines if x["split"] == "valid" and x["step"] == best)
    found = [line["lr"] for line in lines if line["split"] == "train"][:3]
    wanted = [0.0005, 0.001, 0.0005]
    same = len(found) == 3 and all(abs(a - b) < 1e-9 for a, b in zip(found, wanted, strict=True))
    return {"rates": float(same), "test is the best epoch's": float(tested["loss"] == kept["loss"])}


def odd_rows(case: Case, data: Path) -> Mapping[str, float]:
    """How many of the files of odd rows are read, row by row."""
    tiny = data / "pytext-tiny"
    from textmill.data.text_rows import TextRows

    def count(name: str, **settings: Any) -> int:
        made = TextRows.Config(path=tiny / name, **settings).build().read()
        return made.count.good if made.count.bad == settings.get("max_bad_rows", 0) else -1

    two = {"label": 0, "text": 1}
    read = {
        "test_tsv_quoting.tsv": (4, {"columns": two}),
        "test_data_tiny_csv.tsv": (5, {"columns": {"label": 0, "text": 2}, "format": "csv"}),
        "train_tiny_with_lang.tsv": (10, {"columns": {"label": 0, "text": 2}}),
        "seq_tagging_example.tsv": (3, {"columns": {"s": 0, "text": 1}, "group_by": "s"}),
    }
    right = sum(count(name, **how) == wanted for name, (wanted, how) in read.items())
    return {"files read": right / len(read)}


TINY = "train_data_tiny.tsv"
DOCUMENTS = "train_data.columns={label: 0, text: 2}"
JOINT = (
    "train_data.columns=[label,slots,text]", "slots.format=spans", *SURE, "model.word_dropout=0",
    "ngrams=null", "trainer.max_epochs=40", "trainer.evaluate_every=10 epochs",
)  # fmt: skip
TAGS = (*SURE, "model.word_dropout=0", "trainer.max_epochs=60", "trainer.evaluate_every=20 epochs")
SHARED = ("encoder.hidden_dim=32", "encoder.bidirectional=false", "embedding.dim=32")
FRAMES = {"frame_accuracy": 0.9, "slot_f1": 0.909}
TREES = ("train_data.columns=[source,target]", *SURE, "trainer.evaluate_every=50 steps")

CASES = (
    Case("1", "labels of documents", "classification/docnn", TINY,
         (DOCUMENTS, *KIM, *STEADY, "optimizer.lr=0.005", "trainer.max_epochs=60"),
         {"accuracy": 1.0, "loss": 0.05}),
    Case("2", "labels of words", "tagging/bilstm", TINY, TAGS, {"token_accuracy": 1.0},
         prepare=tagged),
    Case("3", "labels of words, random field", "tagging/bilstm-crf", TINY, TAGS,
         {"token_accuracy": 1.0}, prepare=tagged),
    Case("4", "intents and slots", "joint/bilstm", "train_data_tiny_weights.tsv", JOINT, FRAMES),
    Case("5", "intents and slots, random field", "joint/bilstm-crf",
         "train_data_tiny_weights.tsv", JOINT, FRAMES),
    Case("6", "intents and slots beside earlier turns", "joint/context",
         "contextual_intent_slot_train_tiny.tsv",
         ("train_data.columns=[label,slots,turns]", "slots.format=spans", *SURE,
          "model.word_dropout=0", "trainer.max_epochs=40", "trainer.evaluate_every=10 epochs"),
         {"frame_accuracy": 1.0}),
    Case("7", "language model", "language/lstm/local", "alarm_lm_tiny.tsv",
         ("trainer.max_epochs=150", "trainer.max_steps=null"), {"perplexity": 4.58}),
    Case("8", "lists of sentences", "classification/sentences", "msg_topic_train.tsv",
         (*SURE, "task.loss.type=binary_cross_entropy", "trainer.max_epochs=40"),
         {"accuracy": 1.0}),
    Case("9", "numbers beside the text", "classification/docnn", "train_dense_features_tiny.tsv",
         ("train_data.columns={label: 0, text: 2, dense: 3}", "dense.type=fitted", *KIM, *STEADY,
          "optimizer.lr=0.005", "trainer.max_epochs=60"), {"accuracy": 1.0}),
    Case("10", "pairs", "pairs/classification", "pairwise_classification.tsv",
         ("train_data.columns=[label,text1,text2]", *SURE, "trainer.max_epochs=40"),
         {"accuracy": 1.0}),
    Case("11", "ranking", "pairs/ranking", "query_document_pairwise_ranking_tiny.tsv",
         ("train_data.columns={query: 0, positive: 1, negative: 2}", *SURE,
          "trainer.max_epochs=40"), {"ranking_accuracy": 0.5}),
    Case("12", "a number for a text", "regression/docnn", "sts_tiny.tsv",
         ("train_data.columns={text: 7, score: 9}", *STEADY, "optimizer.lr=0.005",
          "trainer.max_epochs=60"), {"pearson": 0.986}),
    Case("13", "questions", "question/drqa", "squad_tiny.tsv",
         (*STEADY, "trainer.max_epochs=40", "trainer.evaluate_every=10 epochs"),
         {"exact_match": 0.552, "f1": 0.567}, prepare=squad),
    Case("14", "trees by a stack (RNNG)", "trees/rnng", "test_rnng.tsv",
         ("train_data.columns={source: 1, target: 2}", *SURE, "trainer.max_epochs=100",
          "trainer.evaluate_every=50 epochs"), {"frame_accuracy": 0.8}),
    Case("15", "trees by an encoder and a decoder", "parsing/top/local",
         "compositional_seq2seq_unit.tsv",
         (*TREES, "model.type=lstm_seq2seq", "model.dim=32", "train_data.batch_size=10",
          "trainer.max_steps=150"), {"frame_accuracy": 0.7}),
    Case("16", "several tasks", "multitask/words", TINY,
         ("ngrams=null", "task.share=[layers]", *(f"docs.model.{word}" for word in SHARED),
          "lm.model.num_layers=1", "lm.model.dim=32", "lm.model.hidden_dim=32", *STEADY,
          "tokenizer.marks=true", "tokenizer.min_count=1", "docs.model.dropout=0",
          "optimizer.lr=0.01", "trainer.max_epochs=null", "trainer.max_steps=200",
          "trainer.evaluate_every=100 steps"),
         {"docs/accuracy": 1.0, "lm/perplexity": 24.32, "docs answers": 1.0}, train=multitask),
    Case("17", "ensemble", "textmill ensemble", TINY,
         (DOCUMENTS, *STEADY, "tokenizer.type=fitted_words", "ngrams=null",
          "optimizer.lr=0.005", "trainer.max_epochs=60"),
         {"accuracy": 1.0, "members differ": 1.0}, train=ensemble),
    Case("18", "distillation", "classification/docnn", "knowledge_distillation_test_tiny.tsv",
         (*KIM, *STEADY, "train_data.columns={text: text, label: label, scores: scores}",
          "task.soft_labels.column=scores", "optimizer.lr=0.005", "trainer.max_epochs=60"),
         {"accuracy": 1.0}, prepare=soft_labels),
    Case("19", "rates, patience, the best epoch", "classification/docnn", TINY,
         (DOCUMENTS, "train_data.batch_size=16", "optimizer.type=adam", "optimizer.lr=0.001",
          "lr_scheduler.type=exponential", "lr_scheduler.warmup_steps=2",
          "lr_scheduler.decay=0.5", "lr_scheduler.period=1", "trainer.accumulate=2",
          "trainer.report_every=1 steps", "trainer.selection.patience=2",
          "trainer.max_epochs=10"), {"rates": 1.0, "test is the best epoch's": 1.0},
         train=rates),
    Case("20", "odd rows", "text_rows", "", (), {"files read": 1.0}, train=odd_rows),
)  # fmt: skip


def measured(case: Case, data: Path) -> list[str]:
    """The row of a case."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        try:
            values = (case.train or trained)(case, data)
        except (TextmillError, OSError, ValueError, LookupError, AttributeError) as error:
            values, failed = {}, f"failed: {str(error).splitlines()[0][:80]}"
        else:
            failed = ""
    reached = [f"{n} {values[n]:.3f}" for n in case.wanted if n in values]
    wanted = [f"{n} {'≤' if n in LOWER else '≥'} {value:g}" for n, value in case.wanted.items()]
    good = all(
        n in values and (values[n] <= value if n in LOWER else values[n] >= value - 5e-4)
        for n, value in case.wanted.items()
    )
    cells = [f"{case.number}: {case.name}", f"`{case.recipe}`"]
    return [*cells, failed or ", ".join(reached), ", ".join(wanted), "yes" if good else "no"]


def main(data: Path, page: Path, *, names: Sequence[str] = ()) -> None:
    """Measures the cases, all or those of some numbers, and writes the table into the page."""
    from benchmarks.results.table import markdown, write

    rows = []
    for case in CASES:
        if not names or case.number in names:
            rows.append(measured(case, data))
            print(" | ".join(rows[-1]), flush=True)
    if not names:
        write(page, "\n".join(markdown(COLUMNS, rows)), begin=BEGIN, end=END)

"""``make results`` measures what is missing, once, and writes its tables."""

import json
import os
import random
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.results import (
    bar,
    few,
    intents,
    measuring,
    papers,
    pretrained,
    references,
    summaries,
    table,
)
from benchmarks.results.__main__ import PAGE, main
from benchmarks.results.jobs import JOBS, NEAR, Figure, Job
from benchmarks.results.ledger import Ledger
from benchmarks.results.linear import Linear
from benchmarks.results.scores import span_f1
from benchmarks.results.splits import SPLITS
from tests.pretrained_checkpoints import save_encoder
from tests.warm_textmill import warm_programs
from textmill.recipes import registries

TABLES = (table, bar, few, intents, references, summaries, pretrained)
WORDS = {"ham": ["lunch", "home", "later"], "spam": ["prize", "free", "win"]}
JOB = Job(
    name="tiny",
    experiment="classification/averaging/local",
    train="sms-spam/train.tsv",
    dev="sms-spam/dev.tsv",
    reading={"columns": {"label": 0, "text": 1}},
    baselines=(Linear(),),
    figures=(Figure("accuracy", "accuracy", NEAR, elsewhere=99.0), Figure("macro_f1", "macro F1")),
    seeds=1,
)
BROKEN = replace(JOB, name="broken", reading={"columns": {"label": 0, "text": 5}}, baselines=())


@pytest.fixture
def data(tmp_path):
    chance = random.Random(1)
    folder = tmp_path / "data" / "sms-spam"
    folder.mkdir(parents=True)
    for name, count in (("train", 60), ("dev", 12)):
        lines = [
            f"{label}\t{' '.join(chance.choices([*words, 'you', f'w{i}'], k=5))}\n"
            for i in range(count // 2)
            for label, words in WORDS.items()
        ]
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder.parent


@pytest.fixture
def made(tmp_path, data, monkeypatch):
    """Runs the command; the ledger's lines, the page and the exit code."""
    warm = warm_programs() / "warm-python"
    python = SimpleNamespace(executable=warm, modules=sys.modules, stderr=sys.stderr)
    monkeypatch.setattr(measuring, "sys", python)  # it trains by textmill's command
    page, out = tmp_path / "page.md", tmp_path / "out"
    page.write_text("".join(f"before\n{each.BEGIN}\nold\n{each.END}\nafter\n" for each in TABLES))

    def run(*words, jobs=(JOB,), ledger="results"):
        code = None
        try:
            main([*words, *(f"--data={data}", f"--out={out}", f"--page={page}")], jobs)
        except SystemExit as error:
            code = error.code
        path = out / f"{ledger}.jsonl"
        lines = path.read_text().splitlines() if path.is_file() else []
        return [json.loads(line) for line in lines], page.read_text(), code

    return run


def test_what_is_missing_is_measured_once_and_a_failure_is_named(made, data):
    lines, page, code = made("--threads", "1", jobs=(BROKEN, JOB))
    assert "textmill train classification/averaging/local" in code
    assert [line["part"] for line in lines] == ["TF-IDF + LinearSVC", "textmill"]
    assert f"| {100 * lines[1]['values']['accuracy']:.2f} (1) |" in page
    assert "| broken: `classification/averaging/local` | accuracy |  | not run |" in page
    assert made("--threads", "1")[0] == lines
    with (data / JOB.train).open("a") as file:
        file.write("ham\tlunch\n")
    more, _, _ = made("--baselines")
    assert [line["part"] for line in more[2:]] == ["TF-IDF + LinearSVC"]
    _, page, code = made(jobs=(replace(JOB, dev="nowhere/dev.tsv"),))
    assert "| accuracy |  | no data |" in page
    assert made("speed")[2] == made("pretrained", "wnut")[2] == 2


def test_linear_models_are_measured_in_halves(made, monkeypatch):
    monkeypatch.setattr(bar, "SPLITS", {"sms-spam": SPLITS["sms-spam"]})
    monkeypatch.setattr(bar, "NUMBERS", {"n": lambda _: [(f"{n % 9}", f"w{n}") for n in range(60)]})
    monkeypatch.setattr(bar, "SIZES", (0,))
    lines, page, _ = made("linear", ledger="linear")
    parts = [bar.RIDGE, bar.TEXTMILL] * 2 + [bar.SVC, bar.LOGISTIC, bar.TEXTMILL] * 2
    assert [line["part"] for line in lines] == parts
    assert "| mean over the sets with labels |" in page
    assert made("linear", ledger="linear")[0] == lines


@pytest.mark.parametrize(("joint", "verdict"), [(89.0, ""), (85.0, "below")])
def test_intents_that_are_below_by_more_than_a_standard_error_are_marked(tmp_path, joint, verdict):
    ledger = Ledger(tmp_path / "intents.jsonl")
    for part, value in zip(intents.PARTS, (88.0, 90.0, joint), strict=True):
        line = {"job": "snips-500-1", "part": part, "key": "", "cpu_s": 2.0, "dev": 400}
        ledger.add({**line, "intents": value, "slots": 50.0, "frames": 40.0})
    cells = [cell.strip() for cell in intents.table(ledger, 1).splitlines()[-1].split("|")]
    assert (cells[7], cells[-2]) == ("1.50", verdict)


def test_few_rows_are_drawn_by_label_measured_once_and_compared(made, monkeypatch):
    monkeypatch.setattr(few, "SETS", {"sms-spam": few.SETS["sms-spam"]})
    monkeypatch.setattr(few, "SIZES", (2,))
    seen = []

    def answers(train, texts, *, seed, folder, part):
        seen.append([label for label, _ in train])
        return ["ham" if part != few.PRETRAINED or n % 4 else "spam" for n in range(len(texts))]

    parts = {name: partial(answers, part=name) for name in few.PARTS}
    monkeypatch.setattr(few, "PARTS", parts)
    lines, page, _ = made("few", "--seeds", "2", ledger="few")
    assert seen == [["ham"] * 2 + ["spam"] * 2] * 6
    accuracy = {line["part"]: line["accuracy"] for line in lines}
    assert accuracy[few.FEW] == 50.0
    assert "| sms-spam | 2 | 2 | 50.00 ± 0.00 |" in page
    assert f"| {50 - accuracy[few.PRETRAINED]:.2f} ± 0.00 |" in page
    assert made("few", "--seeds", "2", ledger="few")[0] == lines


def test_summaries_are_measured_once(made, data, monkeypatch):
    (data / "scitldr").mkdir()
    row = {"source": ["We study signs.", "They suffice here."], "target": ["They suffice."]}
    for part in ("train", "dev"):
        (data / "scitldr" / f"{part}.jsonl").write_text(f"{json.dumps(row)}\n" * 4)
    asked = []

    def train(job, words, run, threads):
        asked.append(job.name)
        run.mkdir(parents=True)
        (run / "run.json").write_text('{"result": {"best": {"step": 1}}}')
        values = {"rouge1": 0.4, "rouge2": 0.2, "rougeL": 0.3}
        line = {"split": "valid", "step": 1, "time": {"elapsed": 2.0}, **values}
        (run / "metrics.jsonl").write_text(json.dumps(line))

    monkeypatch.setattr(measuring, "train", train)
    for _ in range(2):
        _, page, _ = made("summaries", "--seeds", "1")
        assert asked == ["scitldr-lstm", "scitldr-minilm", "scitldr"]
    assert "| the best sentence | 80.00 ± 0.00 | 66.67 ± 0.00 | 80.00 ± 0.00 |  |" in page
    assert "| `summarization/extractive` with MiniLM | 40.00 (1) | 20.00 (1) | 30.00" in page


def reference(number, **more):
    words = {"author": [f"Ann{number},", "A."], "title": [f"On{number}", "maps."]}
    words |= {"journal": ["Journal", "of", "nets,"], "date": [f"{1950 + number % 70}."]}
    words["note"] = ["Draft."]
    pairs = [(word, label) for label, each in words.items() for word in each]
    tokens, tags = map(list, zip(*pairs, strict=True))
    return {"tokens": tokens, "tags": tags, **more}


@pytest.mark.parametrize("real", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_references_are_measured_on_rows_that_train_nothing(made, data, monkeypatch, real):
    monkeypatch.setattr(references, "OF_CORA", 30)
    sets = {
        "cora.train": [reference(n) for n in range(20)],
        "cora.dev": [reference(n) for n in range(20, 25)],
        "flux-cim-cs": [reference(100 + n, fold=n % 10) for n in range(20)],
        "iconip": [reference(200 + n, fold=n % 10) for n in range(10)],
        "anystyle.core": [reference(n) for n in [*range(30), *range(300, 350), 100]],
    }
    (data / "refstrings").mkdir()
    for name, rows in sets.items():
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (data / "refstrings" / f"{name}.jsonl").write_text(text)
    for block in references.blocks(data, data / "made"):
        scored = {references.same_row(row) for rows in block.dev.values() for row in rows}
        assert not scored & {references.same_row(row) for row in block.train}
    if real:
        monkeypatch.setattr(references, "LEAST", 0.1)
        monkeypatch.setattr(references, "EXPERIMENT", "tagging/references/local")
    else:
        monkeypatch.setattr(references, "measure_speed", lambda *_: None)
        monkeypatch.setattr(
            references,
            "of_textmill",
            lambda block, **_: [row["tags"] for rows in block.dev.values() for row in rows],
        )
    lines, page, _ = made("references", "--seeds", "1", ledger="references")
    assert len(lines) == 7 if real else 6
    assert "| cora (20) | cora (5) | words | 100.00 |" in page
    assert "| author | " in page


@pytest.mark.slow
def test_both_sides_of_the_pretrained_are_measured_once(made, data, tmp_path, monkeypatch):
    pytest.importorskip("accelerate")
    train = data / "sms-spam" / "train.tsv"
    train.write_text(train.read_text() * 4)
    model = save_encoder(tmp_path / "bert", "bert", max_position_embeddings=600)
    monkeypatch.setattr(pretrained, "encoder", lambda: model)
    words = ("pretrained", "sms-spam", "--seeds", "1", "--threads", "1")
    lines, page, _ = made(*words, ledger="pretrained")
    assert {line["part"] for line in lines} == {"from nothing", "textmill", "Trainer"}
    assert "| sms-spam: `classification/pretrained` | all | 1 |" in page
    assert made(*words, ledger="pretrained")[0] == lines


def test_spans_count_as_seqeval_counts_them():
    recorded = Path(__file__).parents[1] / "metrics" / "recorded" / "seqeval.json"
    for corpus in json.loads(recorded.read_text("utf-8"))["corpora"]:
        rows = [[row["tags"].split() for row in corpus[side]] for side in ("gold", "predicted")]
        expected = pytest.approx(100 * corpus["values"]["span_f1"])
        assert span_f1(*rows, corpus["scheme"]).value == expected


def test_every_job_is_a_shipped_experiments_and_every_table_has_its_place():
    assert {job.experiment for job in JOBS} <= set(registries.experiments.names())
    assert not [job.name for job in JOBS if "test" in f"{job.train} {job.dev}"]
    assert len({job.name for job in JOBS}) == len(JOBS)
    page = PAGE.read_text(encoding="utf-8")
    assert all(0 < page.index(each.BEGIN) < page.index(each.END) for each in TABLES)


def test_references_of_papers_are_counted_by_characters_letters_and_beginnings() -> None:
    wanted = [
        "Gödel, K. 1931. On  propositions.",
        "Knuth, D. E. 1984. Semi-literate \u201cwork\u201d.",
    ]
    found = ['Knuth, D. E. 1984. Semiliterate "work".', "Gödel, K. 1931. On propositions.", "Table"]
    counted = papers.Found().add(wanted, found)
    assert counted == papers.Found(wanted=2, found=3, exact=1, split=2, spurious=1)


def test_pdftotext_is_split_by_labels_or_else_by_empty_lines(tmp_path, monkeypatch) -> None:
    for number, (below, parts) in enumerate(
        [
            ("[1] A. New-\nton.\n[2] B.\n", ["A. Newton.", "B."]),
            ("\nA. 1.\nC.\n\nB.\n", ["A. 1. C.", "B."]),
        ]
    ):
        program = tmp_path / str(number) / "pdftotext"
        program.parent.mkdir()
        (program.parent / "text").write_text(f"We cite.\nReferences\n{below}")
        program.write_text(f"#!/bin/sh\ncat {program.parent}/text\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        assert papers.by_pdftotext(tmp_path) == parts

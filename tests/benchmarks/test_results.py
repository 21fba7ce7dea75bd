"""``make results`` measures what is missing, once, and says what is not there."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.results.__main__ import PAGE, main
from benchmarks.results.files import Files, divided, find
from benchmarks.results.found import FailedError, Found
from benchmarks.results.jobs import JOBS, NEAR, Figure, Job, Wanted, chosen
from benchmarks.results.ledger import Ledger, key_of
from benchmarks.results.linear import COSTS, Linear
from benchmarks.results.measuring import baseline_key, settings, textmill_key
from benchmarks.results.table import BEGIN, END, Measured, compared, markdown, write
from textmill.recipes import registries

JOB = Job(
    name="tiny",
    experiment="classification/averaging/local",
    train="tiny/train.tsv",
    dev="tiny/dev.tsv",
    reading={"columns": {"label": 0, "text": 1}},
    baselines=(Linear(),),
    figures=(Figure("accuracy", "accuracy", NEAR, elsewhere=99.0), Figure("macro_f1", "macro F1")),
    seeds=1,
)


@pytest.fixture
def data(tmp_path):
    chance = random.Random(1)
    words = {"ham": ["lunch", "home", "later"], "spam": ["prize", "free", "win"]}
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    for name, count in (("train", 40), ("dev", 12)):
        lines = [
            f"{label}\t{' '.join(chance.choices(words[label] + ['you', 'a'], k=5))}\n"
            for label in ["ham", "spam"] * (count // 2)
        ]
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder.parent


@pytest.fixture
def made(tmp_path, data):
    """Runs the command on jobs; the ledger's lines, the page and the exit code."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    def run(*words, jobs=(JOB,)):
        places = ["--data", str(data), "--out", str(tmp_path / "out"), "--page", str(page)]
        code = None
        try:
            main([*words, *places, "--threads", "1"], jobs)
        except SystemExit as error:
            code = error.code
        path = tmp_path / "out" / "results.jsonl"
        lines = path.read_text().splitlines() if path.is_file() else []
        return [json.loads(line) for line in lines], page.read_text(), code

    return run


FAILED = "\nThese measurements failed:\n  "
BROKEN = replace(JOB, name="broken", reading={"columns": {"label": 0, "text": 5}}, baselines=())


def test_what_is_missing_is_measured_once_and_a_failure_is_named(made, data):
    lines, page, code = made(jobs=(BROKEN, JOB))
    assert code.startswith(f"{FAILED}textmill train classification/averaging/local")
    assert "it ended with 2" in code
    assert "| broken: `classification/averaging/local` | accuracy |  | not run |" in page
    assert [(line["job"], line["part"]) for line in lines] == [
        *(("tiny", "TF-IDF + LinearSVC"), ("tiny", "textmill"))
    ]
    fitted, trained = lines
    assert fitted["C"] in COSTS["LinearSVC"]
    assert trained["values"].keys() == {"accuracy", "macro_f1"}
    assert trained["cpu_s"] > 0.5
    assert (trained["resumed"], trained["seed"], trained["threads"]) == (False, 1, 1)
    assert page.startswith(f"before\n{BEGIN}\n\n| data | figure |")
    assert page.endswith(f"{END}\nafter\n")
    assert "Trainings: 1; " in page
    assert f"| {100 * trained['values']['accuracy']:.2f} (1) |" in page

    again, page, code = made()
    assert (again, code) == (lines, None)
    assert made()[1] == page

    with (data / "tiny" / "train.tsv").open("a") as file:
        file.write("ham\tlunch\n")
    same, page, _ = made("--table")
    assert same == lines
    assert "| not run |" in page
    more, _, _ = made("--baselines")
    assert [line["part"] for line in more[2:]] == ["TF-IDF + LinearSVC"]


def test_data_that_are_not_here_are_said(made, capsys):
    lines, page, code = made(jobs=(replace(JOB, dev="nowhere/dev.tsv"),))
    assert (lines, code) == ([], None)
    assert "| tiny: `classification/averaging/local` | accuracy |  | no data |" in page
    assert "Nothing was trained." in page
    assert "tiny: no data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["speed"], "unknown result 'speed'; known: classification, tiny"),
        (["--seeds", "0"], "--threads and --seeds are at least 1"),
    ],
)
def test_what_cannot_be_measured_is_said(made, capsys, words, message):
    _, _, code = made(*words)
    assert code == 2
    assert message in capsys.readouterr().err


# -- keys and the ledger


def test_a_key_is_of_settings_and_bytes_and_not_of_places(tmp_path, data):
    files = find(data / JOB.train, data / JOB.dev, tmp_path)
    moved = Files(*(tmp_path / f"moved-{path.name}" for path in (files.train, files.dev)))
    for old, new in zip((files.train, files.dev), (moved.train, moved.dev), strict=True):
        new.write_bytes(old.read_bytes())
    key = textmill_key(JOB, files, 1)
    assert textmill_key(JOB, moved, 1) == key
    assert baseline_key(Linear(), JOB, moved) == baseline_key(Linear(), JOB, files)
    others = [
        textmill_key(JOB, files, 2),
        textmill_key(replace(JOB, experiment="classification/docnn/local"), files, 1),
        textmill_key(replace(JOB, reading={**JOB.reading, "batch_size": 8}), files, 1),
        textmill_key(JOB, Files(files.dev, files.train), 1),
        baseline_key(Linear(), JOB, files),
        baseline_key(Linear(label="text"), JOB, files),
    ]
    assert len({key, *others}) == 7


def test_what_is_typed_is_the_places_and_the_seed():
    files = Files(Path("a.tsv"), Path("b.tsv"))
    assert settings(JOB, files, 3) == [
        "train_data.path=a.tsv",
        "valid_data.path=b.tsv",
        'train_data.columns={"label": 0, "text": 1}',
        "trainer.seed=3",
    ]


def test_a_line_that_was_cut_off_was_not_written(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    line = {"job": "a", "part": "textmill", "key": key_of({"x": 1}), "values": {}}
    Ledger(path).add(line)
    whole = path.read_text()
    path.write_text(whole + whole[:20])
    ledger = Ledger(path)
    assert len(ledger.lines) == 1
    ledger.add({**line, "values": {"y": 2}})
    assert Ledger(path).find("a", "textmill", line["key"])["values"] == {"y": 2}
    assert Ledger(path).find("a", "textmill", "other") is None


# -- what measures itself


def test_a_job_may_measure_itself_and_fail(made, data):
    class Own:
        name = "own"

        def __init__(self, value):
            self.value = value

        def __repr__(self):
            return f"Own({self.value})"

        def found(self, files, reading):
            if not self.value:
                raise FailedError("own: it ended with an error: no value")
            return Found({"accuracy": self.value, "macro_f1": 0.5}, {}, {"steps": 3})

    bad, good = (replace(JOB, baselines=(), own=Own(value)) for value in (0.0, 0.75))
    lines, _, code = made(jobs=(bad,))
    assert (lines, code) == ([], f"{FAILED}own: it ended with an error: no value")
    lines, page, code = made(jobs=(good,))
    assert code is None
    assert (lines[0]["steps"], lines[0]["threads"], lines[0]["part"]) == (3, 1, "textmill")
    assert "| 75.00 (1) |" in page
    assert made(jobs=(good,))[0] == lines


# -- files


def test_the_tenth_that_is_held_out_is_the_same_whenever(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text("".join(f"{number}\n" for number in range(95)))
    files = divided(path, tmp_path / "parts")
    train, dev = (part.read_text().split() for part in (files.train, files.dev))
    assert len(dev) == 9
    assert sorted(map(int, train + dev)) == list(range(95))
    assert divided(path, tmp_path / "again").fingerprint == files.fingerprint
    assert path.read_text().count("\n") == 95


# -- the table


def measured(*values, baseline=90.0, error=2.0, seeds=5):
    job = replace(JOB, seeds=seeds)
    fitted = {"values": {"accuracy": baseline}, "standard_errors": {"accuracy": error}}
    runs = [{"values": {"accuracy": value}} for value in values]
    return Measured(job, [fitted], runs, "not run")


@pytest.mark.parametrize(
    ("figure", "found", "cells"),
    [
        (JOB.figures[0], measured(0.88), ["90.00 ± 2.00", "88.00 (1 of 5)", "≥ 88.00", "yes"]),
        (
            JOB.figures[0],
            measured(0.86, 0.88, seeds=2),
            ["90.00 ± 2.00", "87.00 ± 1.41 (2)", "≥ 88.00", "no, by 1.00"],
        ),
        (JOB.figures[0], measured(), ["90.00 ± 2.00", "not run", "≥ 88.00", ""]),
        (
            Figure("accuracy", "a", Wanted(errors=2)),
            measured(0.93, seeds=1),
            ["90.00 ± 2.00", "93.00 (1)", "≥ 94.00", "no, by 1.00"],
        ),
        (
            Figure("accuracy", "a", Wanted(1.75, at_most=True), percent=False),
            replace(measured(1.7, seeds=1), baselines=()),
            ["", "1.70 (1)", "≤ 1.75", "yes"],
        ),
        (
            Figure("accuracy", "a", Wanted(at_most=True), percent=False),
            measured(91.5, seeds=1, error=0.0),
            ["90.00", "91.50 (1)", "≤ 90.00", "no, by 1.50"],
        ),
        (
            Figure("accuracy", "a", Wanted(95)),
            replace(measured(0.94, seeds=1), baselines=()),
            ["", "94.00 (1)", "≥ 95.00", "no, by 1.00"],
        ),
        (Figure("accuracy", "a"), measured(0.5, seeds=1), ["90.00 ± 2.00", "50.00 (1)", "", ""]),
    ],
)
def test_a_row_says_what_is_reached(figure, found, cells):
    assert compared(figure, found) == cells
    assert [*markdown("abcd", [cells])][-1] == f"| {' | '.join(cells)} |"


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match=f"wanted the lines {BEGIN} and {END}"):
        write(page, "text")
    assert page.read_text() == "nothing"


def test_the_declared_jobs_are_of_shipped_experiments_and_no_test_part():
    assert {job.experiment for job in JOBS} <= set(registries.experiments.names())
    assert not [job.name for job in JOBS if "test" in f"{job.train} {job.dev}"]
    assert len({job.name for job in JOBS}) == len(JOBS)
    assert chosen(["cora", "language"]) == tuple(
        job for job in JOBS if job.name == "cora" or job.family == "language"
    )
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1

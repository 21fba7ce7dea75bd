"""What the report makes of answered rows: values, confusions, marked texts, drawings, two runs."""

import json
import xml.etree.ElementTree as ET

import pytest
from sacrebleu import BLEU, corpus_bleu
from scipy.stats import binomtest, bootstrap

from tests.runs.made_runs import made_run
from tests.runs.report.pages_of_html import Page
from textmill.cli.main import main
from textmill.metrics import intervals
from textmill.run_folder.record import Record
from textmill.runs.report.compare import sign_test
from textmill.runs.report.page import report_page
from textmill.runs.report.summarize import summarize
from textmill.runs.report.summary import Part


def answered(path, rows, values, /, **facts):
    """A run with these answers to valid_data."""
    facts = {"inputs": ["text"], "targets": ["label"], "rows": len(rows), **facts}
    run = made_run(path, data_summary={"valid_data": facts})
    (run / "predictions").mkdir()
    with (run / "predictions" / "valid-step-00000020.jsonl").open("w") as file:
        file.writelines(json.dumps({"row": n, **row}) + "\n" for n, row in enumerate(rows))
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"split": "valid", "step": 20, **values}) + "\n")
    return run


def label(text, gold, given, score):
    scores = {given: score, "other": 1 - score}
    return {"text": text, "label": gold, "prediction": given, "score": score, "scores": scores}


SPAM = [
    label("win now", "spam", "ham", 0.6),
    label("win cash", "spam", "ham", 0.9),
    label("see you", "ham", "ham", 0.8),
    label("call me", "ham", "ham", 0.7),
    label("at six", "ham", "ham", 0.99),
]


def summary_of(run):
    return summarize(Record.read(run), None, {})


WORDS = {"inputs": ["words"], "targets": ["tags"]}
QUESTION = {"inputs": ["question", "context"], "targets": ["answers"]}
TEXTS = {"inputs": ["source"], "targets": ["target"]}
SLOTS = {"targets": ["label", "slots"]}
KINDS = {
    "label": (SPAM, {}, {"accuracy": 0.6}),
    "several": (
        [
            {"text": "a", "label": "food staff", "prediction": "staff, food", "score": 1.0,
             "scores": {}},
            {"text": "b", "label": "", "prediction": "", "score": 1.0, "scores": {}},
            {"text": "c", "label": "food", "prediction": "food, staff", "score": 1.0, "scores": {}},
        ],
        {"separator": None}, {"accuracy": 2 / 3},
    ),
    "spans": (
        [{"words": "Ann saw New York", "tags": "B-per O B-loc I-loc", "spans": [],
          "prediction": "B-per O O B-loc", "score": 0.5, "scores": [0.9, 0.9, 0.4, 0.6]}],
        WORDS, {"span_f1": 0.5},
    ),
    "tags": (
        [{"words": ["a", "dog"], "tags": "DET NOUN", "prediction": "DET VERB", "score": 0.5,
          "scores": [0.9, 0.6]}],
        WORDS, {"token_accuracy": 0.5},
    ),
    "frame": (
        [{"text": "play it", "label": "Play", "slots": "O B-song", "prediction": "", "score": 0.9,
          "predicted_intent": "Play",
          "predicted_slots": [{"start": 5, "end": 7, "label": "song"}]}],
        SLOTS, {"frame_accuracy": 1.0},
    ),
    "answer": (
        [{"question": "Who?", "context": "It was the Rollo.", "answers": ["Rollo!", "a"],
          "prediction": "the Rollo", "start": 7, "end": 16, "score": 0.3}],
        QUESTION, {"exact_match": 1.0},
    ),
    "parse": (
        [{"source": "a", "target": "f ( x )", "prediction": "f (  x ) "},
         {"source": "b", "target": "g ( x )", "prediction": "f ( x )"}],
        TEXTS, {"exact_match": 0.5},
    ),
    "translation": (
        [{"source": "a", "target": "the cat sat on the mat", "prediction": "the cat sat on a mat"}],
        TEXTS, {"bleu": corpus_bleu(["the cat sat on a mat"], [["the cat sat on the mat"]]).score},
    ),
    "number": (
        [{"text": "x", "label": "3,5", "prediction": 2.5},
         {"text": "y", "label": 4, "prediction": 6}],
        {}, {"mae": 1.5},
    ),
    "a list of one label": (
        [{"text": "a", "label": ["ham"], "prediction": "ham", "score": 0.9,
          "scores": {"ham": 0.9, "spam": 0.1}}],
        {}, {"accuracy": 1.0},
    ),
    "labels with commas": (
        [{"text": "a", "label": "staff|food, drink", "prediction": "food, drink, staff",
          "score": 0.8, "scores": {"food, drink": 0.9, "staff": 0.8}}],
        {"separator": "|"}, {"accuracy": 1.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_answers_say_the_same_as_the_run_and_so_have_an_interval(tmp_path, kind):
    rows, facts, values = KINDS[kind]
    ((name, value),) = values.items()
    measured = summary_of(answered(tmp_path / "a", rows, values, **facts)).measured
    assert (measured.name, measured.value) == (name, value)
    assert measured.low <= value <= measured.high
    # Rows may have weights, or be left out: then the run's own value stands alone.
    other = summary_of(answered(tmp_path / "b", rows, {name: value / 2}, **facts)).measured
    assert (other.value, other.low, other.rivals) == (value / 2, None, ())
    of_some = summary_of(answered(tmp_path / "c", rows, {name: value / 2}, **facts | {"rows": 99}))
    assert of_some.measured.rows == 99, "those of the data, of which some are kept with answers"


def test_the_first_screen_of_a_classifier_and_its_wrong_rows(tmp_path):
    facts = {"linear": {"accuracy": 0.8}}
    run = answered(tmp_path / "run", SPAM, {"accuracy": 0.6, "label/ham/f1": 0.75}, **facts)
    found = summary_of(run)
    assert found.measured.rivals == (("always “ham”", 0.6), ("a linear model of words", 0.8))
    assert [answer.row for answer in found.answers] == [1, 0, 3, 2, 4]
    assert (found.confusion.labels, found.confusion.counts) == (("ham", "spam"), ((3, 0), (2, 0)))
    page = report_page(found)
    texts = Page(page).texts
    assert "95 % interval 23.1 % to 88.2 % (Wilson), 5 rows, the weights of step 20" in texts
    assert page.count('data-pairs="1-0"') == 2, "the rows behind the cell of row 1, column 0"
    assert "2 of 2 wrong answers, the surest first. " in page


def test_texts_are_marked_where_they_differ(tmp_path):
    row = {"source": "x", "target": "a red cat ran", "prediction": "a cat ran off"}
    run = answered(tmp_path / "run", [row], {}, **TEXTS)
    page = report_page(summary_of(run))
    assert page.count('<mark class="differs">') == 2
    assert {"red", "off"} <= {*Page(page).texts}
    rows, facts, values = KINDS["spans"]
    (answer,) = summary_of(answered(tmp_path / "b", rows, values, **facts)).answers
    assert answer.wanted == (Part("Ann", "per"), Part(" saw "), Part("New York", "loc"))
    assert answer.given == (Part("Ann", "per"), Part(" saw New "), Part("York", "loc"))
    assert answer.sure == 0.6, "of the surest wrong tag"


@pytest.mark.parametrize(("right", "rows"), [(0, 3), (7, 9), (500, 501)])
def test_wilsons_interval_is_scipys(right, rows):
    found = binomtest(right, rows).proportion_ci(method="wilson")
    assert intervals.wilson(right, rows) == pytest.approx((found.low, found.high), abs=1e-9)


def test_the_bootstrap_is_scipys_but_for_chance():
    above, below = [0.0, 1.0, 2.0, 2.0, 3.0] * 40, [1.0, 2.0, 2.0, 3.0, 3.0] * 40
    found = bootstrap(
        (above, below), lambda a, b: sum(a) / sum(b), paired=True, method="percentile",
        n_resamples=2000, vectorized=False, rng=0,
    ).confidence_interval  # fmt: skip
    assert intervals.bootstrap(above, below) == pytest.approx((found.low, found.high), abs=0.006)


def test_the_interval_of_bleu_is_sacrebleus_but_for_chance():
    words = [
        "the",
        "cat",
        "sat",
        "on",
        "a",
        "mat",
        "and",
        "saw",
        "two",
        "dogs",
        "in",
        "her",
        "garden",
    ]
    wanted = [" ".join(words[n % 5 : n % 5 + 7]) for n in range(60)]
    given = [text.replace("h" if n % 3 else "e f", "x") for n, text in enumerate(wanted)]
    found = BLEU(force=True).corpus_score(given, [wanted], n_bootstrap=1000)
    value, (low, high) = intervals.bleu(given, wanted)
    assert value == pytest.approx(found.score, abs=1e-9)
    assert (low + high) / 2 == pytest.approx(found._mean, abs=0.5)
    assert (high - low) / 2 == pytest.approx(found._ci, rel=0.15)


def test_two_runs_on_one_page(tmp_path, capsys):
    better = [{**row, "prediction": "spam"} if row["text"] == "win now" else row for row in SPAM]
    first = answered(tmp_path / "one", SPAM, {"accuracy": 0.6})
    second = answered(tmp_path / "two", better, {"accuracy": 0.8})
    target = tmp_path / "both.html"
    assert main(["runs", "compare", str(first), str(second), "--html", str(target)]) == 0
    assert capsys.readouterr().out.endswith(f"\n{target}\n")
    texts = Page(target.read_text()).texts
    assert {"60.0 %", "80.0 %", "Only B is right: 1", "win now"} <= {*texts}
    assert "Only A is right; B answers: 0" not in texts
    for one, other in ((0, 1), (3, 9), (20, 20), (7000, 7300)):
        wanted = binomtest(one, one + other).pvalue
        assert sign_test(one, other) == pytest.approx(wanted, rel=1e-9)


def test_figures_are_written_as_pictures(tmp_path, capsys):
    rows = [label(f"{'word ' * (n % 12 + 1)}", "spam", "spam" if n % 3 else "ham", 0.9)
            for n in range(90)]  # fmt: skip
    values = {"accuracy": 2 / 3, "label/spam/f1": 0.8, "label/ham/f1": 0.0}
    run = answered(tmp_path / "run", rows, values)
    for form in ("png", "svg"):
        words = ["runs", "figures", str(run), "--output", str(tmp_path / form), "--format", form]
        assert main(words) == 0
        paths = sorted((tmp_path / form).iterdir())
        assert sorted(capsys.readouterr().out.split()) == [str(path) for path in paths]
        assert [path.stem for path in paths] == [
            "calibration", "confusion", "labels", "length", "loss",
        ]  # fmt: skip
        for path in paths:
            if form == "svg":
                assert ET.fromstring(path.read_text()).tag.endswith("svg")
            else:
                assert path.read_bytes().startswith(b"\x89PNG")
    empty = made_run(tmp_path / "empty", steps=(10,))
    assert main(["runs", "figures", str(empty), "--output", str(tmp_path / "none")]) == 2
    assert "empty has nothing to draw" in capsys.readouterr().err

"""The linear baselines and their scores: right on small rows, near references on real ones."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks.results import timed
from benchmarks.results.crf import Crf, features, fitted
from benchmarks.results.files import Files
from benchmarks.results.found import FailedError
from benchmarks.results.lead import OneSentence
from benchmarks.results.linear import Linear
from benchmarks.results.scores import accuracy, span_f1, token_accuracy, whole_rows
from benchmarks.results.timed import Timed


def test_the_error_of_single_answers_is_the_binomial_one():
    score = accuracy(["a"] * 400, ["a"] * 360 + ["b"] * 40)
    assert score.value == 90
    assert score.standard_error == pytest.approx(100 * (0.9 * 0.1 / 400) ** 0.5, rel=0.05)
    assert score.standard_error == accuracy(["a"] * 400, ["a"] * 360 + ["b"] * 40).standard_error


def test_words_of_one_row_are_not_independent():
    gold = [["a"] * 10] * 100
    rows_wrong = [["b"] * 10] * 10 + gold[10:]
    words_wrong = [["b", *"a" * 9]] * 100
    together, apart = token_accuracy(gold, rows_wrong), token_accuracy(gold, words_wrong)
    assert together.value == apart.value == 90
    assert together.standard_error == pytest.approx(3, rel=0.05)
    assert apart.standard_error == 0
    assert whole_rows(gold, rows_wrong).value == 90
    assert whole_rows(gold, words_wrong).value == 0


def test_spans_count_as_seqeval_counts_them():
    recorded = Path(__file__).parents[1] / "metrics" / "recorded" / "seqeval.json"
    corpora = json.loads(recorded.read_text("utf-8"))["corpora"]
    assert {corpus["scheme"] for corpus in corpora} == {"bio", "bilou", "io"}
    for corpus in corpora:
        gold, found = (
            [row["tags"].split() for row in corpus[side]] for side in ("gold", "predicted")
        )
        expected = pytest.approx(100 * corpus["values"]["span_f1"])
        assert span_f1(gold, found, corpus["scheme"]).value == expected


def written(path, made):
    path.write_text("".join(f"{row['label']}\t{row['text']}\n" for row in made))
    return path


def test_the_classifier_chooses_its_cost_by_training_rows_alone(tmp_path):
    chance = random.Random(2)
    words = {"ham": ["lunch", "home", "later"], "spam": ["prize", "free", "win"]}
    made = [
        {"text": " ".join(chance.choices(words[label] + ["you", "a"], k=5)), "label": label}
        for label in ["ham", "spam"] * 40
    ]
    train, dev = written(tmp_path / "train.tsv", made[:60]), written(tmp_path / "d.tsv", made[60:])
    found = Linear().found(Files(train, dev), {})
    assert found.values["accuracy"] >= 95
    wrong = [{**row, "label": {"ham": "spam", "spam": "ham"}[row["label"]]} for row in made[60:]]
    files = Files(train, written(tmp_path / "wrong.tsv", wrong))
    other = Linear(score="intents").found(files, {})
    assert other.details == found.details
    assert other.values["intents"] == pytest.approx(100 - found.values["accuracy"])


def test_the_tagger_learns_what_only_a_feature_tells(tmp_path):
    sentences = [["a", "X1"], ["b", "X2"], ["a", "Y3"], ["b", "Y4"]] * 5
    tags = [["o", "after-a"], ["o", "after-b"]] * 10
    tag = fitted(sentences, tags, tmp_path / "crf")
    assert tag(["a", "Z9"]) == ["o", "after-a"]
    assert tag(["b", "Z9"]) == ["o", "after-b"]


def test_the_features_of_a_word_are_its_own_and_those_of_two_on_each_side():
    found = dict(enumerate(features(["In", "May-93", "at", "home", "."])))
    assert {"word=May-93", "lower=may-93", "shape=Xxx-dd", "runs=Xx-d"} <= set(found[1])
    assert {"prefix=May-", "suffix=y-93", "-1:word=In", "+2:word=home", "-2:begin"} <= set(found[1])
    assert not any("word=." in feature for feature in found[1])
    assert {"+1:end", "+2:end", "after home|."} <= set(found[4])


def test_the_baselines_are_near_their_references(shared_data):
    tokens = {"columns": {"words": "tokens", "tags": "tags"}}
    folder = shared_data / "refstrings"
    files = Files(folder / "cora.train.jsonl", folder / "cora.dev.jsonl")
    found = Crf(spans="io").found(files, tokens)
    # On Cora's test part, 150 references, the same features reached 94.00, 68.0 and 88.65.
    for name, there in (("token_accuracy", 94.0), ("whole_sentence", 68.0), ("span_f1", 88.65)):
        error = np.hypot(found.standard_errors[name], found.standard_errors[name] / 3**0.5)
        assert abs(found.values[name] - there) < 2 * error, name


def test_a_sentence_is_scored_by_the_reference_it_is_like(tmp_path):
    dev = tmp_path / "dev.jsonl"
    rows = [
        {"source": ["We study signs.", "They suffice."], "target": ["Losses.", "We study signs."]},
        {"source": ["Nothing alike."], "target": ["Brains learn."]},
    ]
    dev.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows.append({"source": ["Nothing alike.", "Two brain cells learn."], "target": ["It learns."]})
    dev.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = OneSentence().found(Files(dev, dev), {})
    assert found.values == pytest.approx(dict.fromkeys(["rouge1", "rouge2", "rougeL"], 100 / 3))
    assert found.standard_errors["rouge1"] == pytest.approx(100 * 2**0.5 / 3 / 3**0.5, rel=0.1)
    best = OneSentence(best=True).found(Files(dev, dev), {})
    # A word of four, of a stem with one of two; no pair.
    assert best.values["rouge1"] == pytest.approx(100 * (1 + 0 + 1 / 3) / 3)
    assert best.values["rouge2"] == pytest.approx(100 / 3)


def test_a_loop_that_is_timed_measures_the_perplexity(tmp_path, monkeypatch):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be that is the question\n" * 60)
    files = Files(text, text)
    found = Timed("plain", minutes=0.005).found(files, {})
    assert 1 < found.values["perplexity"] < 20
    assert found.details["steps"] > 0
    broken = tmp_path / "language.py"
    broken.write_text("import sys\nsys.exit('no such text')\n")
    monkeypatch.setattr(timed, "SCRIPT", broken)
    with pytest.raises(FailedError, match=r"^language.py --side plain: .* an error: no such text$"):
        Timed("plain").found(files, {})

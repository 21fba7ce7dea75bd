"""Explanations against models whose coefficients are known, and what their parts are."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from textmill.errors import DataError, UserError
from textmill.exported.row_predictor import AnswerOptions, RowPredictor
from textmill.text.explanations import PARTS, PartsLeftOut
from textmill.text.processors.texts import Classified, Estimated

TEXTS = ["free prize now", "call now free", "see you at home", "dinner at home now", "so so good"]
LABELS = ["spam", "spam", "ham", "ham", "ham"]


class Linear(RowPredictor):
    """A linear model of scikit-learn on counts of words."""

    def __init__(self, model, targets):
        super().__init__(["text"])
        self.counts = CountVectorizer(token_pattern=r"\w+")
        self.model = model.fit(self.counts.fit_transform(TEXTS), targets)

    answer_class = Classified

    def answers(self, rows):
        counts = self.counts.transform([row["text"] for row in rows])
        if isinstance(self.model, Ridge):
            return [Estimated(float(number)) for number in self.model.predict(counts)]
        names = self.model.classes_.tolist()
        return [
            Classified(names[int(row.argmax())], row.max(), dict(zip(names, row, strict=True)))
            for row in self.model.predict_proba(counts)
        ]

    def check(self, row):
        if not isinstance(row["text"], str):
            raise DataError("Row 0, column 'text': wanted text.")


class Numbers(Linear):
    answer_class = Estimated


def test_of_a_linear_model_the_weights_are_its_coefficients():
    model = Linear(LogisticRegression(C=5), LABELS)
    text = "Free prize: so, so good now"
    found = model.explain(text, label="spam")
    names = model.counts.vocabulary_
    known = {
        r.text: model.model.coef_[0][names[r.text.lower()]]
        for r in found.reasons
        if r.text.isalpha()
    }
    assert {r.text: r.weight for r in found.reasons if r.text.isalpha()} == pytest.approx(known)
    assert [r.weight for r in found.reasons if not r.text.isalpha()] == pytest.approx([0, 0])
    assert all(text[r.start : r.end] == r.text for r in found.reasons)
    other = model.explain(text, label="ham")
    assert [-r.weight for r in other.reasons] == pytest.approx([r.weight for r in found.reasons])
    scores = found.answer.scores
    odds = sum(r.weight for r in found.reasons) + model.model.intercept_[0]
    assert np.log(scores["spam"] / scores["ham"]) == pytest.approx(odds)


def test_of_a_sum_the_weights_are_what_it_is_made_of():
    model = Numbers(Ridge(alpha=0.1), [1.0, 2, 3, 4, 5])
    found = model.explain("dinner at home")
    names = model.counts.vocabulary_
    wanted = [model.model.coef_[names[word]] for word in ("dinner", "at", "home")]
    assert [r.weight for r in found.reasons] == pytest.approx(wanted)
    assert found.label == ""
    assert found.score == found.answer.number
    with pytest.raises(UserError, match="has no label 'x'"):
        model.explain("dinner", label="x")


def test_it_shows_itself_and_is_plain_data():
    model = Linear(LogisticRegression(C=5), LABELS)
    found = model.explain("free prize at home")
    lines = repr(found).splitlines()
    assert lines[0] == f"{found.label} {found.score:.1%}"
    weights = [float(line.split()[0]) for line in lines[2:]]
    assert [abs(weight) for weight in weights] == sorted(map(abs, weights), reverse=True)
    row = model.with_options(AnswerOptions(explain=True, n_best=1))("free prize at home").row()
    assert [*row["scores"]] == [row["prediction"]] == [found.label]
    assert row["reasons"] == [reason.row() for reason in found.reasons]
    with pytest.raises(UserError, match=r"'eggs' is no label of the model; it has ham, spam\."):
        model.explain("free", label="eggs")


def test_parts_are_words_signs_and_letters_of_scripts_without_spaces():
    def parts(text):
        return [text[start:end] for _, start, end in PartsLeftOut({"t": text}, ["t"]).parts]

    assert parts("Don't panic, e.g. in New-York!!") == [
        "Don't",
        "panic",
        ",",
        "e.g",
        ".",
        "in",
        "New-York",
        "!!",
    ]
    assert parts("大好き movie") == ["大", "好", "き", "movie"]
    assert PartsLeftOut({"t": "so good, so"}, ["t"]).rows[1]["t"] == "good, so"
    with pytest.raises(DataError, match="wants a string with a word in a, b; found none"):
        PartsLeftOut({"a": " ", "b": ["x"]}, ["a", "b"])


@pytest.mark.parametrize(
    ("text", "most"), [("word " * 1234, PARTS), ("w" * 99_999 + " ", 10), ("w " * 450_000, 1)]
)
def test_a_long_text_has_as_many_parts_as_a_model_can_be_asked(text, most):
    left_out = PartsLeftOut({"a": text, "b": text, "c": 3}, ["a", "b", "c"])
    assert len(left_out.parts) <= most + 1
    assert sum(len(row["a"]) + len(row["b"]) for row in left_out.rows) < 5_000_000
    covered = [text[start:end].split() for name, start, end in left_out.parts if name == "a"]
    assert [word for part in covered for word in part] == text.split()


def test_a_row_of_a_stream_without_a_word_is_an_error_of_its_own():
    model = Linear(LogisticRegression(), LABELS).with_options(AnswerOptions(explain=True))
    found = [*model.stream(["free now", " "])]
    assert len(found[0]["reasons"]) == 2
    assert found[1]["error"].startswith("An explanation wants a string with a word")

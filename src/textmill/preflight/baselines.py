"""What a reader compares a model with: the labels' counts, and a linear model of words."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from typing import Any

from textmill.config.ingredient import DATA
from textmill.config.planning.session import Session
from textmill.preflight.data_preview import LOOKED_AT, rows_at_hand
from textmill.preflight.load_data import all_data
from textmill.text.columns.labels import LabelColumn, LabelsColumn
from textmill.text.columns.numbers import NumberColumn, number_in
from textmill.text.processors.column_processor import ColumnsText

LEAST_ROWS = 100
"""Of fewer training rows nothing is compared."""
MOST_CHARACTERS = 4_000_000
"""Of training texts: a linear model of more would take over three seconds."""
MOST_DECISIONS = 400_000
"""Training rows times labels, for the same reason."""
MOST_LABELS = 1000
"""Labels whose rows are counted on record."""

Rows = Sequence[Mapping[str, Any]]


def comparable(session: Session, *, solved: bool) -> dict[str, dict[str, Any]]:
    """Facts of each data set: its columns, its rows of each label, what a linear model gets on it.

    A run that is itself such a model (``solved``) is not compared with one.
    """
    return {
        name: _facts(own, inner, solved=solved) if own.has("task") else {}
        for name, (own, inner) in all_data(session).items()
    }


def _facts(session: Session, name: str, *, solved: bool) -> dict[str, Any]:
    text = session.get("task").text
    facts: dict[str, Any] = {"inputs": [*text.input_columns], "targets": [*text.target_columns]}
    rows = rows_at_hand(session.get(name), text.columns)
    target = next(iter(text.targets.values()), None) if isinstance(text, ColumnsText) else None
    if isinstance(target, LabelColumn | LabelsColumn):
        looked = islice(rows, LOOKED_AT)
        counts = Counter(label for row in looked for label in target.names(row[target.name]))
        facts["labels"] = dict(counts.most_common(MOST_LABELS))
    if isinstance(target, LabelsColumn):
        facts["separator"] = target.labels.separator
    is_compared = name != DATA[0] and session.has(DATA[0]) and not solved
    if is_compared and text.kind in ("classification", "regression"):
        train = rows_at_hand(session.get(DATA[0]), text.columns)
        facts["linear"] = _linear(text.input_columns, target, train, rows)
    return facts


def _linear(inputs: Sequence[str], target: object, train: Rows, rows: Rows) -> dict[str, float]:
    """The value of a linear model of words, by tf-idf; {} if it would take long."""
    if not LEAST_ROWS <= len(train) <= MOST_DECISIONS or find_spec("sklearn") is None:
        return {}
    texts, others = ([" ".join(str(r[n]) for n in inputs) for r in each] for each in (train, rows))
    if sum(map(len, texts)) > MOST_CHARACTERS:
        return {}
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MultiLabelBinarizer
    from sklearn.svm import LinearSVC

    words = TfidfVectorizer(sublinear_tf=True)
    with warnings.catch_warnings(), suppress(ValueError):  # no words, one label
        warnings.simplefilter("ignore")
        vectors, unknown = words.fit_transform(texts), words.transform(others)
        if isinstance(target, NumberColumn):
            gold, wanted = (
                [number_in(r[target.name], target.name, n) for n, r in enumerate(each)]
                for each in (train, rows)
            )
            found = Ridge(solver="sparse_cg", random_state=0).fit(vectors, gold).predict(unknown)
            return {"mae": float(abs(found - wanted).mean())}
        if isinstance(target, LabelColumn | LabelsColumn):
            binary = MultiLabelBinarizer()
            names = [target.names(row[target.name]) for row in train]
            right = [target.names(row[target.name]) for row in rows]
            if len({name for each in names for name in each}) * len(train) > MOST_DECISIONS:
                return {}
            model = OneVsRestClassifier(LinearSVC(random_state=0))
            if isinstance(target, LabelColumn):
                model = model.estimator.fit(vectors, [name for (name,) in names])
                answers = [[name] for name in model.predict(unknown)]
            else:
                model.fit(vectors, binary.fit_transform(names))
                answers = binary.inverse_transform(model.predict(unknown))
            pairs = zip(answers, right, strict=True)
            return {"accuracy": sum({*a} == {*b} for a, b in pairs) / len(right)}
    return {}

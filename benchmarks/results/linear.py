"""The linear baseline of classification: TF-IDF of words and characters, and LinearSVC."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.results.files import Files, rows
from benchmarks.results.found import Found
from benchmarks.results.scores import accuracy, found_of

COSTS = (0.1, 0.3, 1.0, 3.0, 10.0)
FOLDS = 5


@dataclass(frozen=True)
class Linear:
    """TF-IDF of 1-2-grams of words and of 2-5-grams of characters; LinearSVC, one against the rest.

    The features of several columns stand beside each other. The cost C is the one of `COSTS` with
    the best accuracy in five folds of the TRAINING rows (stratified, shuffled by the seed 0); the
    dev rows only score.
    """

    texts: tuple[str, ...] = ("text",)
    """The columns of text."""
    label: str = "label"
    """The column of the label."""
    score: str = "accuracy"
    """What weft's task calls the share of right labels."""

    @property
    def name(self) -> str:
        return "TF-IDF + LinearSVC"

    def found(self, files: Files, reading: Mapping[str, Any]) -> Found:
        """The accuracy on dev rows; and the cost that was chosen."""
        train, dev = rows(files.train, reading), rows(files.dev, reading)
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.svm import LinearSVC

        blocks: tuple[list[Any], list[Any]] = ([], [])
        for column in self.texts:
            for options in (
                {"ngram_range": (1, 2), "token_pattern": r"\S+"},
                {"ngram_range": (2, 5), "analyzer": "char"},
            ):
                features = TfidfVectorizer(sublinear_tf=True, **options)
                blocks[0].append(features.fit_transform([row[column] for row in train]))
                blocks[1].append(features.transform([row[column] for row in dev]))
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        search = GridSearchCV(LinearSVC(random_state=0), {"C": list(COSTS)}, cv=folds)
        search.fit(hstack(blocks[0]).tocsr(), [row[self.label] for row in train])
        answers = search.predict(hstack(blocks[1]).tocsr()).tolist()
        right = accuracy([row[self.label] for row in dev], answers)
        return found_of({self.score: right}, C=search.best_params_["C"])

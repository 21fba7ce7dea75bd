"""The linear baseline of classification: TF-IDF of words and characters, and LinearSVC."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.results.files import Files, rows
from benchmarks.results.found import Found
from benchmarks.results.scores import accuracy, found_of

COSTS = (0.1, 0.3, 1.0, 3.0, 10.0)
FOLDS = 5
WORDS: Sequence[Mapping[str, Any]] = ({"ngram_range": (1, 2), "token_pattern": r"\S+"},)
BOTH = (*WORDS, {"ngram_range": (2, 5), "analyzer": "char"})


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
    """What textmill's task calls the share of right labels."""

    @property
    def name(self) -> str:
        return "TF-IDF + LinearSVC"

    def found(self, files: Files, reading: Mapping[str, Any]) -> Found:
        """The accuracy on dev rows; and the cost that was chosen."""
        train, dev = rows(files.train, reading), rows(files.dev, reading)
        texts = [[[row[column] for row in part] for column in self.texts] for part in (train, dev)]
        from sklearn.svm import LinearSVC

        fitted, transform = features(texts[0], BOTH)
        labels = [row[self.label] for row in train]
        cost = best_cost(fitted, labels)
        answers = (
            LinearSVC(random_state=0, C=cost)
            .fit(fitted, labels)
            .predict(transform(texts[1]))
            .tolist()
        )
        right = accuracy([row[self.label] for row in dev], answers)
        return found_of({self.score: right}, C=cost)


def features(
    columns: Sequence[Sequence[str]], kinds: Sequence[Mapping[str, Any]]
) -> tuple[Any, Callable[[Sequence[Sequence[str]]], Any]]:
    """TF-IDF of columns of training texts, beside each other; and what makes it of other texts."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    both = [
        (TfidfVectorizer(sublinear_tf=True, **kind), i)
        for i in range(len(columns))
        for kind in kinds
    ]
    fitted = hstack([made.fit_transform(columns[i]) for made, i in both]).tocsr()
    return fitted, lambda others: hstack([made.transform(others[i]) for made, i in both]).tocsr()


def best_cost(fitted: Any, labels: Sequence[str]) -> float:
    """The cost with the best accuracy in folds of the training rows."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import LinearSVC

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(LinearSVC(random_state=0), {"C": list(COSTS)}, cv=folds, refit=False)
    chosen: float = search.fit(fitted, labels).best_params_["C"]
    return chosen


def chosen_model(
    fitted: Any, targets: Sequence[str], *, numbers: bool
) -> tuple[Any, Sequence[Any]]:
    """A linear model with the setting that is best in folds, and what it is to be fitted to.

    Of numbers it is a ridge regression, whose alpha has the least squared error.
    """
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.svm import LinearSVC

    if not numbers:
        return LinearSVC(random_state=0, C=best_cost(fitted, targets)), targets
    known = [*map(float, targets)]
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(
        Ridge(), {"alpha": list(COSTS)}, cv=folds, refit=False, scoring="neg_mean_squared_error"
    )
    return Ridge(**search.fit(fitted, known).best_params_), known

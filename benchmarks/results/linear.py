"""The linear baseline of classification: TF-IDF of words and characters, and LinearSVC."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.results.files import Files, rows
from benchmarks.results.found import Found
from benchmarks.results.scores import accuracy, found_of

COSTS: Mapping[str, Sequence[float]] = {
    "LinearSVC": (0.1, 0.3, 1.0, 3.0, 10.0),
    "LogisticRegression": (1.0, 10.0, 100.0),
    "Ridge": (0.1, 0.3, 1.0, 3.0, 10.0),
}
"""The values of C, of Ridge those of alpha, by the model."""
FOLDS = 5
BOTH: Sequence[Mapping[str, Any]] = (
    {"ngram_range": (1, 2), "token_pattern": r"\S+"},
    {"ngram_range": (2, 5), "analyzer": "char"},
)


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
        fitted, transform = features(texts[0], BOTH)
        labels = [row[self.label] for row in train]
        model = chosen_model(self.name.rpartition(" ")[2], fitted, labels)
        answers = model.predict(transform(texts[1])).tolist()
        right = accuracy([row[self.label] for row in dev], answers)
        return found_of({self.score: right}, C=model.C)


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


def chosen_model(name: str, fitted: Any, targets: Sequence[str]) -> Any:
    """A linear model with the setting that is best in folds, fitted to all rows.

    Of labels it is the one with the best accuracy, of numbers with the least squared error.
    Logistic regression is liblinear's, one label against the rest: of 2,000 rows of top-en with 60
    intents it takes 1.5 seconds and has 85.5 and 86.3 % with C of 10 and 100, where the multinomial
    one takes 12 seconds and has 85.4 and 85.9.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    folds: Any = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    models = {
        "LinearSVC": (LinearSVC(random_state=0), "C"),
        "LogisticRegression": (
            OneVsRestClassifier(LogisticRegression(solver="liblinear", random_state=0)),
            "estimator__C",
        ),
        "Ridge": (Ridge(), "alpha"),
    }
    model, setting = models[name]
    known: Sequence[Any] = targets
    options: dict[str, Any] = {"cv": folds}
    if name == "Ridge":
        known = [*map(float, targets)]
        options = {
            "cv": KFold(FOLDS, shuffle=True, random_state=0),
            "scoring": "neg_mean_squared_error",
        }
    search = GridSearchCV(model, {setting: list(COSTS[name])}, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # A label of fewer rows than there are folds is in some of them only.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.filterwarnings("ignore", "Label not .* is present in all", UserWarning)
        return search.fit(fitted, known).best_estimator_

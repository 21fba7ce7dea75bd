"""Classification: one label a row or several, by counts that are exact in any order."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.metrics.metric import (
    Count,
    HigherIsBetter,
    MetricError,
    aligned,
    distinct_labels,
    nan_without,
    share_error,
    share_of,
)
from textmill.text.features.tag_spans import MARKS, Scheme, tag_spans

T = TypeVar("T")


class ConfusionCounts(NamedTuple):
    """How often something was right, was predicted, and was to be found.

    Something that is neither predicted nor to be found has no precision, recall or F1: NaN. Of what
    does occur, a precision without predictions and a recall without anything to find are 0, as in
    scikit-learn, seqeval and PyText.
    """

    right: Count
    predicted: Count
    expected: Count

    @property
    def occurs(self) -> bool:
        return self.predicted + self.expected > 0

    @property
    def precision(self) -> float:
        return self._share(self.predicted)

    @property
    def recall(self) -> float:
        return self._share(self.expected)

    @property
    def f1(self) -> float:
        """``2 * right / (predicted + expected)``, the harmonic mean of precision and recall."""
        return 2 * self._share(self.predicted + self.expected)

    @property
    def f1_error(self) -> float:
        """The standard error of F1; 0 of what does not occur.

        What was predicted or expected, each thing once, is right or not: of so many :math:`n` a
        share :math:`p` is right, and :math:`F_1 = 2p / (1 + p)`. So the error is that of a share
        times :math:`2 / (1 + p)^2`, as if each were right by itself.
        """
        count = self.predicted + self.expected - self.right
        share = share_of(self.right, count)
        return 2 / (1 + share) ** 2 * share_error(share, count)

    def shares(self) -> dict[str, float]:
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}

    def values(self) -> dict[str, float]:
        return {**self.shares(), "support": float(self.expected)}

    def _share(self, of: Count) -> float:
        return share_of(self.right, of) if self.occurs else math.nan


def micro(tallies: Iterable[ConfusionCounts]) -> ConfusionCounts:
    """All of them as one: each prediction counts alike, so frequent labels weigh more."""
    columns = list(zip(*tallies, strict=True)) or [()] * 3
    right, predicted, expected = (sum(column) for column in columns)
    return ConfusionCounts(right, predicted, expected)


def macro(tallies: Iterable[ConfusionCounts]) -> dict[str, float]:
    """The plain means of precision, recall and F1 over those that occur; NaN where none does."""
    found = [tally.shares() for tally in tallies if tally.occurs]
    return {
        name: math.fsum(each[name] for each in found) / len(found) if found else math.nan
        for name in ("precision", "recall", "f1")
    }


def label_values(tallies: Mapping[str, ConfusionCounts]) -> dict[str, float]:
    """The values of each label: ``label/<name>/precision``, ``/recall``, ``/f1``, ``/support``."""
    return {
        f"label/{label}/{name}": value
        for label, tally in tallies.items()
        for name, value in tally.values().items()
    }


class LabelCounts:
    """How often each label was right, was predicted, and was to be found."""

    def __init__(self) -> None:
        self.right, self.predicted, self.expected = (defaultdict[str, Count](int) for _ in range(3))

    def add(
        self,
        expected: Iterable[T],
        predicted: Iterable[T],
        label: Callable[[T], str],
        weight: Count = 1,
    ) -> None:
        """Adds things that have labels: those to be found, and those that were predicted.

        One is right if it is among both; of equal ones, as many as both have.
        """
        gold, given = Counter(expected), Counter(predicted)
        parts = ((self.expected, gold), (self.predicted, given), (self.right, gold & given))
        for counts, things in parts:
            for thing, times in things.items():
                counts[label(thing)] += times * weight

    def tallies(self, labels: Iterable[str] = ()) -> dict[str, ConfusionCounts]:
        """The counts of each label: ``labels`` first, then others in alphabetical order."""
        others = sorted({*self.predicted, *self.expected})
        return {
            label: ConfusionCounts(self.right[label], self.predicted[label], self.expected[label])
            for label in (*labels, *others)
        }


class Classification(HigherIsBetter):
    """One label a row, from gold and predicted label names.

    Values: ``accuracy``; ``macro_precision``, ``macro_recall`` and ``macro_f1``, the plain means
    over the labels that occur in gold or prediction; ``micro_f1``, the accuracy by another name;
    ``mcc``, the correlation coefficient of Matthews for any number of classes (Gorodkin 2004; 0
    where all rows have one gold or one predicted label); and for each label
    ``label/<name>/precision``, ``/recall``, ``/f1`` and ``/support``, NaN (support: 0) for a label
    that occurs neither in gold nor in prediction. All are those of scikit-learn.

    Only ``labels`` can be predicted. A gold label outside of them, such as one that training has
    not seen, is a row that no prediction gets right: it counts in accuracy and ``mcc``, against
    the precision of what was predicted, and as a label of its own, whose precision, recall and F1
    are 0. None is a row without a label, which is wrong, too, and the label of no mean.
    ``precision``, ``recall`` and ``f1`` are those of the ``positive`` label.
    """

    def __init__(self, labels: Sequence[str], *, positive: str | None = None) -> None:
        self.labels, self.positive = distinct_labels(self, labels), positive
        if positive is not None and positive not in self.labels:
            raise MetricError(
                f"The positive label must be one of {', '.join(self.labels)}, but is {positive!r}."
            )
        self._pairs = defaultdict[tuple[str | None, str], Count](int)

    @override
    def update(self, gold: Sequence[str | None], predicted: Sequence[str]) -> None:
        """Adds rows: the right label of each, and the one of ``labels`` that it was given."""
        pairs, known = list(aligned(self, gold, predicted)), set(self.labels)
        for row, (_, given) in enumerate(pairs):
            if given not in known:
                raise MetricError(
                    f"The label predicted for row {row + 1} of {len(gold)} must be one of the "
                    f"{len(self.labels)} labels of the metric, but is {given!r}."
                )
        for pair, times in Counter(pairs).items():
            self._pairs[pair] += times * self.weight

    @override
    def compute(self) -> dict[str, float]:
        tallies = self.tallies()
        everything = micro(tallies.values())
        rows = everything.predicted
        accuracy = share_of(everything.right, rows)
        means = macro(tallies.values())
        of_one = {} if self.positive is None else tallies[self.positive].shares()
        values = {
            "accuracy": accuracy,
            **{f"macro_{name}": mean for name, mean in means.items()},
            "micro_f1": accuracy,
            "mcc": self._correlation([*tallies.values()]),
            **of_one,
            **label_values(tallies),
        }
        return nan_without(rows, values)

    @override
    def errors(self) -> dict[str, float]:
        tallies = self.tallies()
        everything = micro(tallies.values())
        rows = everything.predicted
        error = share_error(share_of(everything.right, rows), rows)
        of_one = {} if self.positive is None else {"f1": tallies[self.positive].f1_error}
        return {"accuracy": error, "micro_f1": error, **of_one}

    def tallies(self) -> dict[str, ConfusionCounts]:
        """The counts of each label: the declared ones first, then those only in gold."""
        counts = LabelCounts()
        for (gold, predicted), n in self._pairs.items():
            counts.predicted[predicted] += n
            if gold is not None:
                counts.expected[gold] += n
                counts.right[gold] += n * (gold == predicted)
        return counts.tallies(self.labels)

    def confusion(self) -> NDArray[Any]:
        """How often each gold label was given each label: ``[len(labels) + 1, len(labels)]``.

        The last row holds the gold labels outside of ``labels``.
        """
        places = {label: i for i, label in enumerate(self.labels)}
        whole = all(isinstance(n, int) for n in self._pairs.values())
        matrix = np.zeros((len(places) + 1, len(places)), np.int64 if whole else np.float64)
        for (gold, predicted), n in self._pairs.items():
            row = len(places) if gold is None else places.get(gold, len(places))
            matrix[row, places[predicted]] += n if whole else float(n)
        return matrix

    def _correlation(self, tallies: Sequence[ConfusionCounts]) -> float:
        # Gorodkin 2004, equation 8, in whole numbers: with C the confusion matrix,
        # covariance(X, Y) = trace(C) * sum(C) - sum_k predicted_k * gold_k, and so on.
        rows = sum(t.predicted for t in tallies)
        other = rows - sum(t.expected for t in tallies)  # without a label
        both = sum(t.right for t in tallies) * rows - sum(t.predicted * t.expected for t in tallies)
        predicted = rows**2 - sum(t.predicted**2 for t in tallies)
        gold = rows**2 - sum(t.expected**2 for t in tallies) - other**2
        return float(both) / math.sqrt(predicted * gold) if predicted and gold else 0.0


class MultiLabel(HigherIsBetter):
    """A set of labels a row, from gold and predicted label names.

    Values: ``accuracy``, the share of rows whose set is wholly right; ``micro_precision``,
    ``micro_recall`` and ``micro_f1`` over all labels of all rows; ``macro_precision``,
    ``macro_recall`` and ``macro_f1``, the plain means over the labels that occur; and for each
    label the values that :class:`Classification` has. Only ``labels`` can be predicted. A gold
    label outside of them is one that is not found: its row is wrong, it counts against the micro
    recall, and as a label of its own, whose precision, recall and F1 are 0.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = distinct_labels(self, labels)
        self._counts = LabelCounts()
        self._rows: Count = 0
        self._right: Count = 0

    @override
    def update(self, gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> None:
        """Adds rows: the right labels of each, and those of ``labels`` that it was given."""
        known, rows = set(self.labels), list(aligned(self, gold, predicted))
        for row, (right, given) in enumerate(rows):
            if isinstance(right, str) or isinstance(given, str):
                raise MetricError(
                    f"MultiLabel needs the labels of row {row + 1} of {len(gold)} as a collection, "
                    f"but was given the string {(right if isinstance(right, str) else given)!r}."
                )
            unknown = [label for label in given if label not in known]
            if unknown:
                raise MetricError(
                    f"The labels predicted for row {row + 1} of {len(gold)} must be among the "
                    f"{len(self.labels)} labels of the metric, but there is {unknown[0]!r}."
                )
        for right, given in rows:
            self._counts.add(set(right), set(given), str, self.weight)
            self._right += (set(right) == set(given)) * self.weight
        self._rows += len(rows) * self.weight

    @override
    def compute(self) -> dict[str, float]:
        tallies = self.tallies()
        values = {
            "accuracy": share_of(self._right, self._rows),
            **{f"micro_{name}": share for name, share in micro(tallies.values()).shares().items()},
            **{f"macro_{name}": mean for name, mean in macro(tallies.values()).items()},
            **label_values(tallies),
        }
        return nan_without(self._rows, values)

    @override
    def errors(self) -> dict[str, float]:
        return {
            "accuracy": share_error(share_of(self._right, self._rows), self._rows),
            "micro_f1": micro(self.tallies().values()).f1_error,
        }

    def tallies(self) -> dict[str, ConfusionCounts]:
        return self._counts.tallies(self.labels)


class Spans(HigherIsBetter):
    """Spans found in tagged sentences; one is right if its kind and both its ends are.

    Values: ``span_precision``, ``span_recall`` and ``span_f1`` over all spans (micro, as
    ``conlleval`` and seqeval print); ``span_macro_f1``, the mean over the kinds that occur;
    ``token_accuracy``, the share of equal tags; ``whole_sentence``, the share of sentences with all
    tags equal; and, unless ``kinds`` is None, for each of them and each other kind that occurs
    ``label/<kind>/precision``, ``/recall``, ``/f1``, ``/support``, NaN (support: 0) for one that
    occurs nowhere. If no sentence has a span, the values of spans are NaN. Sentences stay apart.
    """

    def __init__(self, scheme: Scheme = "bio", *, kinds: Sequence[str] | None = None) -> None:
        if scheme not in MARKS:
            raise MetricError(
                f"The scheme of tags is one of {', '.join(MARKS)}, but is {scheme!r}."
            )
        self.scheme, self.kinds = scheme, tuple(dict.fromkeys(kinds or ()))
        self._of_kinds = kinds is not None
        self._counts, self._equal = LabelCounts(), defaultdict[str, Count](int)

    @override
    def update(self, gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
        """Adds sentences: the right tags of each, one a token, and as many that it was given."""
        rows, spans = list(aligned(self, gold, predicted)), []
        for row, (right, given) in enumerate(rows):
            if len(right) != len(given):
                raise MetricError(
                    f"Sentence {row + 1} of {len(gold)} has {len(right)} right tags, "
                    f"but {len(given)} predicted ones."
                )
            try:
                spans.append((tag_spans(right, self.scheme), tag_spans(given, self.scheme)))
            except ValueError as error:
                raise MetricError(f"{error}") from None
        for expected, found in spans:
            self._counts.add(expected, found, attrgetter("kind"), self.weight)
        for right, given in rows:
            equal = sum(a == b for a, b in zip(right, given, strict=True))
            counts = {
                "right_tokens": equal,
                "tokens": len(right),
                "right_sentences": int(equal == len(right)),
                "sentences": 1,
            }
            for name, count in counts.items():
                self._equal[name] += count * self.weight

    @override
    def compute(self) -> dict[str, float]:
        tallies = self.tallies()
        everything, equal = micro(tallies.values()), self._equal
        values = {
            **{f"span_{name}": share for name, share in everything.shares().items()},
            "span_macro_f1": macro(tallies.values())["f1"],
            **nan_without(
                equal["tokens"],
                {"token_accuracy": share_of(equal["right_tokens"], equal["tokens"])},
            ),
            "whole_sentence": share_of(equal["right_sentences"], equal["sentences"]),
            **(label_values(tallies) if self._of_kinds else {}),
        }
        return nan_without(equal["sentences"], values)

    @override
    def errors(self) -> dict[str, float]:
        equal = self._equal
        tokens, sentences = equal["tokens"], equal["sentences"]
        return {
            "span_f1": micro(self.tallies().values()).f1_error,
            "token_accuracy": share_error(share_of(equal["right_tokens"], tokens), tokens),
            "whole_sentence": share_error(share_of(equal["right_sentences"], sentences), sentences),
        }

    def tallies(self) -> dict[str, ConfusionCounts]:
        """The counts of each kind: the declared ones first, others in alphabetical order."""
        return self._counts.tallies(self.kinds)

"""Several labels a row, or none: rows that are wholly right; precision, recall, F1 of labels."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import final

from typing_extensions import override

from weft.metrics.checks import aligned, distinct_labels, nan_without
from weft.metrics.metric import Direction, MetricError
from weft.metrics.streaming import Counted
from weft.metrics.tallies import Tally, macro, micro, tally_table

__all__ = ["MultiLabel"]

_UNSEEN = "unseen"  # how often there was each gold label outside of the label set, by its name


@final
class MultiLabel(Counted):
    """A set of labels a row, from gold and predicted label names.

    Values: ``accuracy``, the share of rows whose set is wholly right; ``micro_precision``,
    ``micro_recall`` and ``micro_f1`` over all labels of all rows; ``macro_precision``,
    ``macro_recall`` and ``macro_f1``, the plain means over the labels that occur; and for each
    label ``label/<name>/precision``, ``/recall``, ``/f1`` and ``/support``, NaN (support: 0) for a
    label that occurs neither in gold nor in prediction. A gold label outside of ``labels``, such as
    one that training has not seen, is one that is not found: its row is wrong, it counts against
    the micro recall, and in the macro means as a label of its own, whose values are 0.

    Args:
        labels: Every label that can be predicted.

    Raises:
        MetricError: No label, or one twice.

    Example:
        >>> metric = MultiLabel(["sport", "world"])
        >>> metric.update([{"sport"}, {"sport", "world"}, set()], [{"sport"}, {"world"}, set()])
        >>> values = metric.compute()
        >>> round(values["accuracy"], 3), values["micro_f1"], values["label/sport/recall"]
        (0.667, 0.8, 0.5)
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = distinct_labels(self, labels)
        self._index = {label: str(i) for i, label in enumerate(self.labels)}
        super().__init__({"labels": list(self.labels)})

    @override
    def update(self, gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> None:
        """Adds rows.

        Args:
            gold: The right labels of each row.
            predicted: The labels given to each row, among ``labels``.

        Raises:
            MetricError: The lengths differ, a row is a bare string, or a prediction is no label;
                nothing was added then.
        """
        groups = ("right", "predicted", "expected", "rows", _UNSEEN)
        counts: dict[str, Counter[str]] = {group: Counter() for group in groups}
        for row, (right, given) in enumerate(aligned(self, gold, predicted)):
            if isinstance(right, str) or isinstance(given, str):
                raise MetricError(
                    f"MultiLabel needs the labels of row {row + 1} of {len(gold)} as a collection, "
                    f"but was given the string {(right if isinstance(right, str) else given)!r}."
                )
            unknown = [label for label in given if label not in self._index]
            if unknown:
                raise MetricError(
                    f"The labels predicted for row {row + 1} of {len(gold)} must be among the "
                    f"{len(self.labels)} labels of the metric, but there is {unknown[0]!r}."
                )
            to_find, found = set(right), set(given)
            for label in to_find:
                known = self._index.get(label)
                counts[_UNSEEN if known is None else "expected"][known or label] += 1
            counts["predicted"].update(self._index[label] for label in found)
            counts["right"].update(self._index[label] for label in to_find & found)
            counts["rows"].update(all=1, right=int(to_find == found))
        self.add(counts)

    @override
    def compute(self) -> dict[str, float]:
        tallies, rows = self.tallies(), self.counts("rows")
        every = [*tallies.values(), *(Tally(0, 0, n) for n in self.counts(_UNSEEN).values())]
        everything, means = micro(every), macro(every)
        values = {
            "accuracy": rows["right"] / max(rows["all"], 1),
            **{f"micro_{name}": everything.values()[name] for name in means},
            **{f"macro_{name}": mean for name, mean in means.items()},
        }
        for label, tally in tallies.items():
            values |= {f"label/{label}/{name}": value for name, value in tally.values().items()}
        return nan_without(rows["all"], values)

    def tallies(self) -> dict[str, Tally]:
        """What was counted of each label."""
        right, predicted, expected = map(self.counts, ("right", "predicted", "expected"))
        return {
            label: Tally(right[i], predicted[i], expected[i]) for label, i in self._index.items()
        }

    def table(self) -> str:
        """Precision, recall, F1 and support by label, as text."""
        return tally_table(self.tallies())

    @override
    def directions(self) -> Mapping[str, Direction]:
        return dict.fromkeys(self.compute(), "higher")

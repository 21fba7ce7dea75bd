"""Spans of a tagged sentence, such as named entities: precision, recall and F1 as CoNLL counts."""

from collections import Counter
from collections.abc import Sequence
from typing import final

from typing_extensions import override

from textmill.metrics.checks import aligned, nan_without, share_error
from textmill.metrics.classification import (
    ConfusionCounts,
    LabelCounted,
    label_values,
    macro,
    micro,
)
from textmill.metrics.metric import MetricError
from textmill.text.features.tag_spans import MARKS, Scheme, Span, tag_spans


def read_spans(tags: Sequence[str], scheme: Scheme = "bio") -> list[Span]:
    """As :func:`textmill.text.features.tag_spans.tag_spans`.

    Raises:
        MetricError: A tag is neither ``O`` nor one of the scheme.
    """
    try:
        return tag_spans(tags, scheme)
    except ValueError as error:
        raise MetricError(f"{error}") from None


@final
class Spans(LabelCounted):
    """Spans found in tagged sentences; one is right if its kind and both its ends are.

    Values: ``span_precision``, ``span_recall`` and ``span_f1`` over all spans (micro, as
    ``conlleval`` and seqeval print); ``span_macro_f1``, the mean over the kinds that occur;
    ``token_accuracy``, the share of equal tags; ``whole_sentence``, the share of sentences with all
    tags equal; and with ``kinds`` for each kind ``label/<kind>/precision``, ``/recall``, ``/f1``,
    ``/support``, NaN (support: 0) for a declared one that occurs nowhere. If no sentence has a
    span, the values of spans are NaN. Tags are read by ``read_spans``; sentences stay apart.

    Args:
        scheme: How tags mark spans.
        kinds: The kinds that have values of their own before any sentence; others have them once
            they occur. None: no kind has.

    Example:
        >>> metric = Spans(kinds=["PER"])
        >>> metric.update([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]])
        >>> values = metric.compute()
        >>> values["span_f1"], values["token_accuracy"], values["label/PER/f1"]
        (0.5, 0.75, 0.0)
    """

    def __init__(self, scheme: Scheme = "bio", *, kinds: Sequence[str] | None = None) -> None:
        if scheme not in MARKS:
            raise MetricError(
                f"The scheme of tags is one of {', '.join(MARKS)}, but is {scheme!r}."
            )
        self.scheme, self.kinds = scheme, tuple(dict.fromkeys(kinds or ()))
        self._of_kinds = kinds is not None
        super().__init__()

    @override
    def update(self, gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
        """Adds sentences: the right tags of each, one a token, and as many that it was given.

        Raises:
            MetricError: The numbers of sentences or of tags in one differ, or a tag is none of the
                scheme; nothing was added then.
        """
        counts: dict[str, Counter[str]] = {
            group: Counter() for group in ("right", "predicted", "expected", "equal")
        }
        for row, (right, given) in enumerate(aligned(self, gold, predicted)):
            if len(right) != len(given):
                raise MetricError(
                    f"Sentence {row + 1} of {len(gold)} has {len(right)} right tags, "
                    f"but {len(given)} predicted ones."
                )
            to_find, found = read_spans(right, self.scheme), read_spans(given, self.scheme)
            counts["expected"].update(span.kind for span in to_find)
            counts["predicted"].update(span.kind for span in found)
            counts["right"].update(span.kind for span in set(to_find) & set(found))
            equal = sum(a == b for a, b in zip(right, given, strict=True))
            counts["equal"].update(
                right_tokens=equal,
                tokens=len(right),
                right_sentences=int(equal == len(right)),
                sentences=1,
            )
        self.add(counts)

    @override
    def compute(self) -> dict[str, float]:
        tallies = self.tallies()
        everything, equal = micro(tallies.values()), self.counts("equal")
        values = {
            **{f"span_{name}": share for name, share in everything.shares().items()},
            "span_macro_f1": macro(tallies.values())["f1"],
            **nan_without(
                equal["tokens"],
                {"token_accuracy": equal["right_tokens"] / max(equal["tokens"], 1)},
            ),
            "whole_sentence": equal["right_sentences"] / max(equal["sentences"], 1),
            **(label_values(tallies) if self._of_kinds else {}),
        }
        return nan_without(equal["sentences"], values)

    @override
    def errors(self) -> dict[str, float]:
        """Those of ``span_f1``, ``token_accuracy`` and ``whole_sentence``."""
        equal = self.counts("equal")
        tokens, sentences = equal["tokens"], equal["sentences"]
        return {
            "span_f1": micro(self.tallies().values()).f1_error,
            "token_accuracy": share_error(equal["right_tokens"] / max(tokens, 1), tokens),
            "whole_sentence": share_error(equal["right_sentences"] / max(sentences, 1), sentences),
        }

    @override
    def tallies(self) -> dict[str, ConfusionCounts]:
        """What was counted of each kind, the declared ones first, others in alphabetical order."""
        others = sorted({*self.counts("predicted"), *self.counts("expected")})
        return self._tallies({kind: kind for kind in (*self.kinds, *others)})

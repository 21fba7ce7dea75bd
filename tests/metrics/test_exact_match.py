import pytest

from textmill.metrics.accumulators import ExactMatch
from textmill.metrics.metric import MetricError


def test_white_space_alone_is_ignored() -> None:
    metric = ExactMatch.Config().build()
    metric.update([" a\tb\n", "ab", "A b", "a b."], [["a b"]] * 4)
    assert metric.compute() == {"exact_match": 0.25}


def test_any_reference_will_do_and_an_empty_one_too() -> None:
    metric = ExactMatch.Config().build()
    metric.update(["b", ""], [["a", "b"], ["a", " "]])
    assert metric.compute() == {"exact_match": 1.0}


@pytest.mark.parametrize(("right", "found"), [([], "none"), ("ab", "the string 'ab'")])
def test_a_text_without_a_list_of_references_adds_nothing(
    right: list[str] | str, found: str
) -> None:
    metric = ExactMatch.Config().build()
    with pytest.raises(MetricError) as error:
        metric.update(["a", "b"], [["a"], right])
    assert str(error.value) == (
        "ExactMatch needs a list of one or more references for each text, "
        f"but text 2 of 2 has {found}."
    )
    assert repr(metric.compute()) == repr(ExactMatch.Config().build().compute())

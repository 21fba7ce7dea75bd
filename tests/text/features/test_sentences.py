"""Sentences end where a reader says so; what one shares with a summary is as rouge-score counts."""

import pytest

from textmill.errors import DataError
from textmill.metrics.rouge import Rouge
from textmill.text.cells import ListCell
from textmill.text.features.sentences import overlap, read_sentences, sentence_places

CASES = {
    "plain": ["It rains.", "Is it late?", "Yes!"],
    "abbreviations": ["See e.g. Fig. 2 of J. R. Doe et al. in Sec. 3.", "It is new."],
    "numbers": ["It has 3.5 points.", "5 are left."],
    "quotes": ['He said "stop."', "(It did.)", "\u201cWhy?\u201d", "So."],
    "no full stop": ["It rains.", "It pours"],
    "dots": ["Well...", "No."],
    "other letters": [
        "\u041a\u043e\u0442 \u0441\u043f\u0438\u0442.",
        "\u0410 \u043f\u0451\u0441?",
        "\u00c9t\u00e9.",
    ],
    "words that look like others": ["He said no.", "Then A b.", "C d."],
    "small letters go on": ["The file a.txt is. it is there."],
}


@pytest.mark.parametrize("name", CASES)
def test_a_text_is_cut_where_sentences_end(name):
    text = "  " + "  ".join(CASES[name]) + " \n"
    assert [text[start:end] for start, end in sentence_places(text)] == CASES[name]


def test_chinese_ends_without_white_space():
    text = "\u732b\u5728\u7761\u89c9\u3002\u72d7\u53eb\u4e86\uff01"
    assert read_sentences(text, "source", 0).texts == [text[:5], text[5:]]
    assert overlap(text[:5], [text[:5]]) > 0


def test_a_text_of_full_stops_is_read_once():
    """Quadratic ways took minutes of these."""
    for text in ("." * 200_000, "A. " * 50_000, " " * 200_000, "\n" * 200_000, "?'" * 100_000):
        assert len(sentence_places(text)) <= 1


def test_an_empty_line_ends_a_sentence():
    text = "A title\n\nIt rains. It\npours."
    assert read_sentences(text, "source", 0).texts == ["A title", "It rains.", "It\npours."]


@pytest.mark.parametrize("value", ["", " \n ", [], [" "]])
def test_without_words_there_is_none(value):
    assert read_sentences(value, "source", 0).texts == []


def test_a_list_is_taken_as_it_is():
    for value in (["One. Two.", "", "three"], ListCell(["One. Two.", "", "three"])):
        found = read_sentences(value, "source", 0)
        assert found.texts == ["One. Two.", "three"]
        assert found.text == "One. Two.  three"


@pytest.mark.parametrize("value", [7, None, ["a", 7], b"a", "\ud800"])
def test_other_values_are_refused_with_their_place(value):
    with pytest.raises(DataError, match=r"^Row 3, column 'source'"):
        read_sentences(value, "source", 3)


def test_an_overlap_is_the_mean_of_rouge_1_and_2():
    references = ["A model that learns to rank.", "We rank, with a model, and a model learns."]
    for sentence in ("We propose a model that learns.", "Rank!", "", "a model that learns to rank"):
        wanted = []
        for reference in references:
            metric = Rouge.Config(kinds=("rouge1", "rouge2")).build()
            metric.update([sentence], [[reference]])
            wanted.append(sum(metric.compute().values()) / 2)
        assert overlap(sentence, references) == pytest.approx(max(wanted))
    assert overlap("It rains.", []) == 0.0

"""Questions and answers in their contexts: words and characters agree, what does not is named."""

import pytest

from textmill.errors import DataError, UserError
from textmill.text.features.passages import read_passages
from textmill.text.features.spelling import Characters
from textmill.text.processors import question_answering as question
from textmill.text.processors.question_answering import QuestionText
from textmill.text.tokenizers.word_tokenizer import FittedWords

CONTEXT = "Rollo, a Viking, led the Normans (in 911)."
ROWS = [
    {
        "question": "Who led the Normans?", "context": CONTEXT,
        "answers": '["Rollo", "a Viking", "Rollo"]', "answer_starts": "[0, 7, 0]",
    },
    {"question": "Why?", "context": CONTEXT, "answers": [], "answer_starts": []},
    {"question": "", "context": ["In", "911,"], "answers": ["11"], "answer_starts": [4]},
    {"question": "a b c d e f", "context": "", "answers": "[]", "answer_starts": "[]"},
]  # fmt: skip
WORDS = FittedWords.Config(columns=("question", "context"), split="punctuation")
CHARACTERS = Characters("RoleVik", length=6, column="context")


def made(**settings):
    return QuestionText.of(WORDS.build(train_data=ROWS), **settings)


def row(**changes):
    return {**ROWS[0], **changes}


def test_answers_become_the_words_that_cover_them():
    text = made()
    encoded = text.encode(ROWS, with_targets=True)
    words = [text.tokenizer.words(context) for context in (CONTEXT, "In 911,")]
    assert words[0][:5] == ["rollo", ",", "a", "viking", ","]
    assert encoded["context"].lengths.tolist() == [len(words[0])] * 2 + [len(words[1]), 0]
    assert [answers.tolist() for answers in encoded["answers"]] == [[0, 0, 2, 3], [], [1, 1], []]
    assert encoded["matches"][0].tolist() == [0, 0, 0, 0, 0, 3, 3, 3, 0, 0, 0, 0, 0]
    assert encoded["matches"].lengths.tolist() == encoded["context"].lengths.tolist()
    assert text.off_tokens(ROWS) == (1, 4, 2)


def test_an_answer_is_a_part_of_the_context_as_it_is_written():
    text = made()
    first, none = text.decode([(2, 3, 0.5, 0.25), (-1, -1, 0.75, 0.75)])
    answer = text.completed(first, ROWS[0])
    assert (str(answer), answer.start, answer.end, answer.score) == ("a Viking", 7, 15, 0.5)
    assert CONTEXT[answer.start : answer.end] == answer.text
    answer = text.completed(none, ROWS[0])
    assert (answer.text, answer.start, answer.end, answer.no_answer) == ("", None, None, 0.75)
    assert text.completed(text.decode([(1, 1, 1, 0)])[0], ROWS[2]).start == 3


def test_few_contexts_are_held_in_a_check(monkeypatch):
    text, read = made(), []

    def counted(tokenizer, texts):
        read.append([*texts])
        return read_passages(tokenizer, texts)

    monkeypatch.setattr(question, "read_passages", counted)
    monkeypatch.setattr(question, "CHUNK", 4)
    contexts = [f"Rollo led {name}." for name in "abcd"] + ["nobody asked"]
    rows = [row(context=contexts[n % 4], answers=["led"], answer_starts=[6]) for n in range(10)]
    rows += [row(context=contexts[4], answers=[], answer_starts=[])]
    rows[6] = row(context=contexts[2], answers=["Roll", "led"], answer_starts=[0, 6])
    rows[5] = row(context=contexts[1], answers=["ollo"], answer_starts=[1])
    assert text.off_tokens(rows) == (2, 11, 5)
    assert read == [contexts[:4], contexts[:4], [*contexts[:2], contexts[4]]]
    assert text.off_tokens(rows[10:]) == (0, 0, -1)


def test_a_long_question_is_cut_with_its_characters():
    text = made(max_question_length=4, characters=CHARACTERS)
    whole = text.encode(ROWS, with_targets=False)
    assert whole.over_length.tolist() == [0, 3]
    cut = text.encode(ROWS, with_targets=False, truncate=True)
    assert cut["question"].lengths.tolist() == [4, 2, 0, 4]
    assert cut["question_characters"].lengths.tolist() == [24, 12, 0, 24]
    assert cut["context_characters"] == whole["context_characters"]
    assert not len(cut.over_length)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": "Rollo"}, "column 'answers': wanted a list of texts, or one as JSON, found"),
        ({"answers": [3]}, r"column 'answers': wanted a list of texts, .* found \[3\]"),
        ({"answers": None}, "column 'answers': wanted a list of texts, .* found None"),
        ({"answer_starts": '["0", 7, 0]'}, "column 'answer_starts': wanted a list of numbers"),
        ({"answer_starts": [0, 7]}, "has 3 texts in 'answers', but 2 numbers in 'answer_starts'"),
        ({"answer_starts": [0, 8, 0]}, "column 'answer_starts': 'a Viking' is not at 8 of"),
        ({"answers": ["Bob"], "answer_starts": [-1]}, "column 'answer_starts': 'Bob' is not at -1"),
        ({"answers": [" "], "answer_starts": [6]}, "column 'answers': an answer is empty"),
        ({"context": 3}, "column 'context': wanted text or a list of words, found int"),
        ({"question": b"?"}, "column 'question': wanted text or a list of words, found bytes"),
    ],
)
def test_a_bad_row_is_named(changes, message):
    with pytest.raises(DataError, match=r"^Row 1[ ,]") as error:
        made().encode([ROWS[0], row(**changes)], with_targets=True)
    assert error.match(message)


def test_answers_as_hugging_face_nests_them_are_those_of_two_columns():
    nested = []
    for one, (texts, starts) in zip(
        ROWS,
        [(["Rollo", "a Viking", "Rollo"], [0, 7, 0]), ([], []), (["11"], [4]), ([], [])],
        strict=True,
    ):
        both = {"text": texts, "answer_start": starts}
        nested.append({"question": one["question"], "context": one["context"], "answers": both})
    text = made()
    one, two = (text.encode(rows, with_targets=True) for rows in (ROWS, nested))
    assert one.keys() == two.keys()
    for role in one:
        assert [row.tolist() for row in one[role]] == [row.tolist() for row in two[role]]
    assert text.off_tokens(nested) == text.off_tokens(ROWS)


def test_characters_of_another_column_and_columns_of_one_name_are_refused():
    with pytest.raises(UserError, match=r"are of 'words': set characters.column=context"):
        made(characters=Characters("a", column="words"))
    with pytest.raises(UserError, match="must differ, but 'question' is there twice"):
        made(context="question")

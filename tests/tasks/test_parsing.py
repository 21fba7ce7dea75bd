"""Parsing: what counts as right, and as a tree; and what a target that is none does."""

import pytest

from tests.tasks.test_conformance import Data
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.inference.export.folder import refuse_unsupported
from textmill.models import Transformer
from textmill.tasks import Translated, evaluate
from textmill.tasks.generation import SemanticParsing
from textmill.text.tokenizers.tokenizer import UNKNOWN
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

CALL = "[IN:CALL call [SL:PERSON mom ] ]"
ROWS = [
    {"source": "call mom", "target": CALL}, {"source": "ring mom", "target": CALL},
    {"source": "phone", "target": CALL}, {"source": "mom", "target": CALL},
]  # fmt: skip
ANSWERS = {
    "call mom": " [IN:CALL  call [SL:PERSON mom ] ]",  # right: spaces do not count
    "ring mom": "[IN:CALL ring [SL:PERSON dad ] ]",  # the frame of other words as long
    "phone": "[IN:CALL call mom ]",
    "mom": "[IN:CALL call [SL:PERSON mom",
}


class Canned(SemanticParsing):
    """Answers what ``ANSWERS`` says."""

    def generate(self, source, source_lengths):
        sources = iter(ROWS)  # the tokenizer knows none of these words: answers by place
        return [Translated(ANSWERS[next(sources)["source"]], -1.0) for _ in source]


def values(task):
    return evaluate(task, task.batches(Data(ROWS, batch_size=9), train=False, seed=1)).values


def test_a_parse_is_right_as_a_whole_or_in_its_parts(make_task):
    found = values(make_task(Canned, trees=True))
    assert found["exact_match"] == 0.25
    assert found["frame_accuracy"] == 0.5
    assert found["intent_accuracy"] == 0.75
    assert found["invalid_trees"] == 0.25
    assert found["bracket/overall_f1"] == pytest.approx(2 * 5 / (8 + 6))  # of 8 predicted are 6


def test_forms_that_are_no_trees_are_matched_only(make_task):
    found = values(make_task(Canned))
    assert found["exact_match"] == 0.25
    assert sorted(found) == ["accuracy", "exact_match", "loss", "perplexity"]


@pytest.mark.parametrize("train", [True, False])
def test_a_target_that_is_no_tree_is_named_before_step_1(make_task, train):
    rows = [*ROWS[:2], {"source": "mom", "target": "[SL:PERSON mom ]"}]
    with pytest.raises(DataError) as caught:
        make_task(trees=True, kind=SemanticParsing).batches(Data(rows), train=train, seed=1)
    assert str(caught.value).startswith("Row 2, column 'target': A tree is written [IN:LABEL words")
    make_task(kind=SemanticParsing).batches(Data(rows), train=train, seed=1)


def test_a_form_may_be_many_times_as_long_as_its_sentence(make_task):
    assert make_task(SemanticParsing).config.decoding.max_length_a == 8


class Unsure(SemanticParsing):
    """Calls the two unknown words of a sentence; its second choice has one more."""

    def generate(self, source, source_lengths):
        one = f"[IN:CALL call [SL:PERSON {UNKNOWN} {UNKNOWN} ] ]"
        two = f"[IN:CALL {UNKNOWN} {UNKNOWN} {UNKNOWN} ]"
        return [Translated(one, -1.0, (Translated(two, -2.0),)) for _ in source]


@pytest.fixture
def unsure():
    words = ("[IN:CALL", "[SL:PERSON", "]", "call")
    tokenizer = WordTokenizer.Config(words=words, lowercase=False, marks=True).build()
    sizes = {"dim": 8, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    module = Transformer.Config(**sizes, max_length=64).build(tokenizer=tokenizer)
    config = Unsure.Config(trees=True, copy_unknown=True)
    return config.build(module=module, tokenizer=tokenizer)


def test_unknown_words_are_those_of_the_sentence_in_their_order(unsure):
    rows = [
        {"source": f"call {name}", "target": f"[IN:CALL call [SL:PERSON {name} ] ]"}
        for name in ("Ann Lee", "Bo Li")
    ]
    evaluation = evaluate(unsure, unsure.batches(Data(rows), train=False, seed=1))
    assert evaluation.values["exact_match"] == evaluation.values["frame_accuracy"] == 1
    parse = Predictor(unsure)
    answers = parse(["call Bo Li", "call Ann Lee"])
    assert [answer.text for answer in answers] == [rows[1]["target"], rows[0]["target"]]
    assert answers[0].alternatives[0].text == f"[IN:CALL Bo Li {UNKNOWN} ]"
    assert parse({"source": ["call", "Bo Li"]}) == answers[0]
    assert parse("call call call").text == f"[IN:CALL call [SL:PERSON {UNKNOWN} {UNKNOWN} ] ]"


def test_unknown_words_are_copied_by_a_tokenizer_of_words_only(make_task):
    message = r"^task.copy_unknown needs a tokenizer of words, but this one is a Multilingual"
    with pytest.raises(UserError, match=message):
        make_task(SemanticParsing, copy_unknown=True)


def test_answers_of_code_of_its_own_are_not_exported(make_task, unsure):
    with pytest.raises(UserError) as caught:
        refuse_unsupported(unsure, "ctranslate2")
    assert "  Unsure answers by code of its own\n" in str(caught.value)
    refuse_unsupported(make_task(SemanticParsing), "ctranslate2")

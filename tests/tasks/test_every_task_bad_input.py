"""What holds for every task: bad rows have one outcome, named by row and column; counts add up."""

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import textmill
from tests.tasks.rows import evaluated
from tests.tasks.test_extractive_summarization import folder as encoder_folder
from textmill.errors import DataError
from textmill.inference import Predictor
from textmill.preflight.load_data import read_all
from textmill.recipes import registries

WORDS = "tokenizer.type=fitted_words"
MARKED = (WORDS, "tokenizer.marks=true", "tokenizer.columns=[source, target]")


@dataclass(frozen=True)
class Case:
    """A task with three or more good rows, by an experiment's tiny variant."""

    experiment: str
    columns: tuple[str, ...]
    """Of the rows; the text that is asked about is the first."""
    rows: tuple[tuple[Any, ...], ...]
    ask: int
    """How many of the columns a prediction needs, from the first on."""
    words: tuple[str, ...] = ()
    wrong: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    """A value that a target cannot have, and what is said of it."""
    empty: str = ""
    """What is said of an empty text in prediction; empty: it is answered."""
    every: bool = True
    """Whether an evaluation has an answer to every row."""
    optional: frozenset[str] = frozenset()
    """Columns that lines of a file may lack."""
    most: tuple[str, ...] = ("task.max_length=3",)
    """Settings with which a text has three tokens at most."""
    long: str | None = ""
    """What is said of a text of five in prediction; empty: it is answered by the first three; None:
    by all of it, which is read in parts."""
    fits: bool = True
    """Whether something of the task is fitted on its training data, which it reads then."""
    elsewhere: tuple[str, str, str] = ("", "", "")
    """The names of another task's labels, how they are given, and what is said of row 0."""

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def asked(self, text: str, column: str = "") -> dict[str, Any]:
        row = dict(list(self.dicts()[0].items())[: self.ask])
        return {**row, column or self.columns[0]: text}


NO_LABEL = r"^Row 1, column 'label': 'eggs' is no label. The 2 labels are "
NO_NUMBER = r"^Row 1, column 'score': wanted a number, found 'eggs'"
LABELS = "labels.names=[PlayMusic, BookRestaurant]"
TOO_LONG = r"^Row 0, column 'source': has \d+ tokens; the model takes at most 4"
SOURCE = ("task.max_source_length=4",)
TEXTS = (("a dog ran", "run ( dog )"), ("a cat sat", "sit ( cat )"), ("it ran", "run ( it )"))
LINES = (("set my alarm now",), ("wake me up at noon",), ("snooze it again",)) * 20
CASES = {
    "document_classification": Case(
        "classification/docnn/local",
        ("text", "label"),
        (("see you", "ham"), ("win cash", "spam"), ("late", "ham")),
        1,
        (WORDS,),
        {"label": ("eggs", NO_LABEL)},
        elsewhere=(
            LABELS, "ham", r"^Row 0, column 'label': 'ham' is no label. The 2 labels are 'P",
        ),
    ),
    "document_regression": Case(
        "regression/docnn/local", ("text", "score"),
        (("bad", "1"), ("so good", "5"), ("fair", "3")), 1, wrong={"score": ("eggs", NO_NUMBER)},
    ),
    "pair_classification": Case(
        "pairs/classification/local", ("text1", "text2", "label"),
        (("a dog", "an animal", "yes"), ("a cat", "a car", "no"), ("red", "a colour", "yes")), 2,
        wrong={"label": ("eggs", NO_LABEL)},
        elsewhere=(LABELS, "yes", r"^Row 0, column 'label': 'yes' is no label"),
    ),
    "pair_regression": Case(
        "pairs/regression/local", ("text1", "text2", "score"),
        (("a dog", "an animal", "4"), ("a cat", "a car", "1"), ("red", "a colour", "3")), 2,
        wrong={"score": ("eggs", NO_NUMBER)},
    ),
    "query_document_ranking": Case(
        "pairs/ranking/local", ("query", "positive", "negative"),
        (("who", "a dog", "red"), ("what", "a cat", "blue"), ("how", "so", "pink")), 2,
        wrong={"negative": (7, r"^Row 1, column 'negative': wanted text, found 7 \(int\)")},
    ),
    "shift_reduce_parsing": Case(
        "trees/rnng/local",
        ("source", "target"),
        (
            ("call Ann now", "[IN:CALL call [SL:WHO Ann ] now ]"),
            ("stop", "[IN:STOP stop ]"),
            ("call Bob", "[IN:CALL call [SL:WHO Bob ] ]"),
        ),
        1,
        ("tokenizer.min_count=1",),
        wrong={"target": ("[IN:STOP stop", r"^Row 1, column 'target': A tree is written ")},
        long=r"^1 of 1 rows have more than 3 tokens of 'source': rows 0 \(from 0\)",
    ),
    "text_embedding": Case(
        "embedding/similarity/local", ("text1", "text2", "score"),
        (("a dog", "an animal", "4"), ("a cat", "a car", "1"), ("red", "a colour", "3")), 1,
        wrong={"score": ("eggs", NO_NUMBER)},
    ),
    "tree_tagging": Case(
        "trees/bilstm/local",
        ("source", "target"),
        (
            ("call Ann now", "[IN:CALL call [SL:WHO Ann ] now ]"),
            ("stop", "[IN:STOP stop ]"),
            ("call Bob", "[IN:CALL call [SL:WHO Bob ] ]"),
        ),
        1,
        ("tokenizer.min_count=1",),
        wrong={"target": ("[IN:STOP stop", r"^Row 1, column 'target': A tree is written ")},
    ),
    "word_tagging": Case(
        "tagging/bilstm/local",
        ("words", "tags"),
        (
            ("Ann met Bob", "B-per O B-per"), ("in Rome", "O B-loc"),
            ("Bob met Ann", "B-per O B-per"),
        ),
        1,
        ("tokenizer.min_count=1",),
        wrong={
            "tags": (
                "O eggs",
                r"^Row 1, column 'tags': 'eggs' at 1 is no label. The 3 labels are 'B-per', ",
            )
        },
        long=r"^1 of 1 rows have more than 3 tokens of 'words': rows 0 \(from 0\)",
        elsewhere=(LABELS, "B-per", r"^Row 0, column 'tags': 'B-per' at 0 is no label"),
    ),
    "intent_slots": Case(
        "joint/bilstm/local",
        ("text", "label", "slots"),
        (
            ("wake me at 8", "wake", "O O O B-time"), ("play hurt", "play", "O B-song"),
            ("up", "wake", "O"),
        ),
        1,
        ("tokenizer.min_count=1",),
        wrong={
            "label": ("eggs", NO_LABEL),
            "slots": (
                "O B-eggs",
                r"^Row 1, column 'slots': 'eggs' is no slot. The 2 slots are 'time', 'song'.",
            ),
        },
        optional=frozenset({"slots"}),
        elsewhere=("slots.names=[city]", "B-time", r"^Row 0, column 'slots': 'time' is no slot"),
    ),
    "language_modeling": Case(
        "language/transformer/local", ("text",), LINES, 1, (WORDS, "tokenizer.marks=true"),
        most=("model.max_length=4", "task.block=4"),
        long=r"^Row 0, column 'text': has 5 tokens, but the model goes on with at most 3",
    ),
    "mask_predict_parsing": Case(
        "parsing/mask-predict/local", ("source", "target"), TEXTS, 1,
        ("task.trees=false", "train_data.columns=[source, target]", "tokenizer.min_count=1"),
        {"target": (7, r"^Row 1, column 'target': is not text, or holds half")}, most=SOURCE,
        long=TOO_LONG,
    ),
    "masked_language_modeling": Case(
        "bert/pretraining/local",
        ("text",),
        LINES,
        1,
        every=False,  # those alone of which a word was masked
        empty=r"^Row 0, column 'text': has no \[MASK\], so there is nothing to fill in",
        most=("model.encoder.max_length=3", "task.block=3"),
        long=r"^Row 0, column 'text': has ",
    ),
    "semantic_parsing": Case(
        "parsing/cogs/local", ("source", "target"), TEXTS, 1,
        wrong={"target": (7, r"^Row 1, column 'target': is not text, or holds half")}, most=SOURCE,
        long=TOO_LONG,
    ),
    "summarization": Case(
        "summarization/scitldr/local", ("source", "target"), TEXTS, 1,
        (*MARKED, "train_data.lists=[]"),
        {"target": (7, r"^Row 1, column 'target': is not text, or holds half")}, most=SOURCE,
        long=TOO_LONG,
    ),
    "extractive_summarization": Case(
        "summarization/extractive",
        ("source", "target"),
        (
            ("The cat sat. Dogs bark.", "Dogs bark."), ("Films are rare.", "Rare films."),
            ("The moon", "A moon."),
        ),
        1,
        ("model.encoder.path=ENCODER", "task.max_length=30", "train_data.lists=[]"),
        {"target": (7, r"^Row 1, column 'target': wanted a summary, found 7")},
        most=(),
        long=None,
        fits=False,
    ),
    "translation": Case(
        "translation/demo", ("source", "target"), TEXTS, 1,
        ("train_data.type=text_pairs", "valid_data.type=text_pairs", *MARKED),
        {"target": (7, r"^Row 1, column 'target': is not text, or holds half")}, most=SOURCE,
        long=TOO_LONG,
    ),
    "question_answering": Case(
        "question/drqa/local",
        ("context", "question", "id", "answers", "answer_starts"),
        (
            ("a dog ran home", "who ran", "1", '["a dog"]', "[0]"),
            ("the cat sat", "what sat", "2", '["the cat"]', "[0]"),
            ("it is in Rome", "where", "3", '["Rome"]', "[9]"),
        ),
        2,
        wrong={"answer_starts": ("[5]", r"^Row 1, .*'answers?")},
        most=("task.max_length=3", "task.stride=2"),
        long=None,
    ),
}  # fmt: skip
CASES["contrastive_classification"] = dataclasses.replace(
    CASES["document_classification"], words=(WORDS, "task.type=contrastive_classification")
)


@pytest.fixture(params=CASES, scope="module")
def case(request) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def task(case, tmp_path_factory):
    """The task on a file of its good rows, for tests that leave it as it is."""
    return made(case, tmp_path_factory.mktemp("rows"))


@pytest.fixture
def make(case, tmp_path):
    """Makes the task on a file of rows; the good ones by default."""
    return functools.partial(made, case, tmp_path)


def made(case, folder, *words: str, rows: Any = None):
    if set(case.columns) == {"text"}:
        path = folder / "rows.txt"
        path.write_bytes(b"".join(as_line(row["text"]) for row in rows or case.dicts()))
    else:
        path = folder / "rows.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows or case.dicts()))
        columns = f"train_data.columns=[{', '.join(case.columns)}]"
        words = (columns, *words)
    paths = [f"{name}_data.path={path}" for name in ("train", "valid")]
    own = [
        word.replace("ENCODER", str(encoder_folder())) if "ENCODER" in word else word
        for word in case.words
    ]
    return textmill.create_task(case.experiment, [*paths, *own, *words])


def as_line(text: str | bytes) -> bytes:
    return (text.encode() if isinstance(text, str) else text) + b"\n"


def test_the_suite_has_every_task():
    known = registries.tasks
    shipped = {name for name in known.names() if known.get(name).__module__.startswith("textmill.")}
    of_others = {"ensemble", "multitask"}  # which are made of other tasks, and read as those do
    assert {*CASES} == shipped - of_others


def test_good_rows_count_all(case, task):
    rows = case.dicts()
    assert {*case.columns[: case.ask]} >= {*task.text.input_columns}
    found = evaluated(task, rows)
    assert len(found.rows) == len(rows) or not case.every
    assert math.isfinite(found.values["loss"])


def test_a_row_without_a_column_is_named_by_row_and_column(case, task):
    for name in task.text.columns:
        rows = case.dicts()
        del rows[1][name]
        error = rf"^Row 1 has no column '{name}'; its columns: "
        with pytest.raises(DataError, match=error):
            evaluated(task, rows)
        with pytest.raises(DataError, match=error):
            task.batches(rows, train=True, seed=1)


def test_a_line_without_a_column_is_named_by_file_line_and_column(case, task, make):
    if set(case.columns) == {"text"}:
        pytest.skip("each line of a text file is a row of its one column")
    if not case.fits:
        pytest.skip("nothing is fitted on its rows")
    for name in {*task.text.columns} - case.optional:
        rows = case.dicts()
        del rows[1][name]
        error = rf"^1 of 3 rows is bad.*\n.*rows.jsonl:2: no key '{name}'; the keys"
        with pytest.raises(DataError, match=error):
            make(rows=rows)


def test_a_file_of_bad_rows_only_ends_it_however_many_are_allowed(case, make):
    if not case.fits:
        pytest.skip("nothing is fitted on its rows")
    rows = [{"text": b"\xff"} if set(case.columns) == {"text"} else {"other": "x"}] * 3
    with pytest.raises(DataError, match=r"rows.\w+: wanted rows of .*, found 3 bad rows and no"):
        make("train_data.max_bad_rows=9", rows=rows)


def test_a_target_that_cannot_be_is_named_by_row_and_column(case, task, make):
    """In an evaluation an unseen label is an error only by a setting."""
    task = make("task.unseen_labels=error") if getattr(task, "counts_unseen", False) else task
    for name, (value, error) in case.wrong.items():
        rows = case.dicts()
        rows[1][name] = value
        with pytest.raises(DataError, match=error):
            evaluated(task, rows)
        with pytest.raises(DataError, match=error):
            task.batches(rows, train=True, seed=1)


def test_a_value_that_is_no_text_is_named_by_row_and_column(case, task):
    predictor, name = Predictor(task), case.columns[0]
    for value in (7, None, b"x", {"a": 1}, "\ud800"):
        rows = [case.asked("a [MASK]"), {**case.asked("a"), name: value}]
        with pytest.raises(DataError, match=rf"Row 1, column '{name}'"):
            predictor(rows)


def test_an_empty_text_is_a_bad_row_of_a_file(case, make, monkeypatch):
    if not case.fits:
        pytest.skip("nothing is fitted on its rows")
    if set(case.columns) == {"text"}:
        pytest.skip("an empty line of a text file is the end of a paragraph")
    counts = []

    def counted(session, folder):
        read_all(session, folder)
        counts.append(session.get("train_data").count)

    monkeypatch.setattr("textmill.runs.python_api.read_all", counted)
    for name in case.columns[: case.ask]:
        rows = case.dicts()
        rows[1][name] = " \t "
        with pytest.raises(
            DataError, match=rf"^1 of 3 rows is bad.*\n.*rows.jsonl:2: column '{name}' is empty"
        ):
            make(rows=rows)
        counts.clear()
        make("train_data.max_bad_rows=1", rows=rows)  # without it
        assert [(count.good, count.bad, count.total) for count in counts] == [(2, 1, 3)]


def test_an_empty_text_has_an_answer_or_an_error_in_prediction(case, task):
    predictor = Predictor(task)
    for text, name in itertools.product(("", " \t\n "), case.columns[: case.ask]):
        row = case.asked(text, name)
        if case.empty:
            with pytest.raises(DataError, match=case.empty):
                predictor([row])
            continue
        (answer,) = predictor([row])
        found = task.answer_row(answer)
        assert isinstance(found["prediction"], str | float | list)
        assert math.isfinite(found.get("score", 0.0))
        if name == "context":  # nothing in it can be an answer
            assert (found["prediction"], found["start"], found["end"]) == ("", None, None)


def test_one_longer_than_the_model_takes_is_cut_or_refused(case, make):
    task = make(*case.most)
    long = case.asked("a b c d e")
    if case.long is None:
        task.check(long)
        (answer,) = task.predict([long])
        assert str(answer) in long[case.columns[0]]
        return
    if case.long:
        with pytest.raises(DataError, match=case.long):
            task.predict([long])
        with pytest.raises(DataError):
            task.check(long)
        return
    task.check(long)
    rows = [task.answer_row(a) for a in task.predict([long, case.asked("a b c")])]
    if "predicted_intent" in rows[0]:  # the frame has its whole text
        rows = [{k: v for k, v in row.items() if k != "prediction"} for row in rows]
    assert rows[0] == rows[1]


def test_rows_that_are_too_long_are_left_out_and_counted_or_an_error(case, make):
    if len(case.rows) != 3 or case.long is None:
        pytest.skip("its texts are read in parts")
    rows = case.dicts()
    rows[1][case.columns[0]] = "a b c d e"
    for name in {*rows[1]} & {"tags", "slots"}:
        rows[1][name] = "O O O O O"
    if "[IN:" in str(rows[1].get("target")):
        rows[1]["target"] = "[IN:STOP a b c d e ]"
    task = make(*case.most, "task.over_length=skip")
    over = task.text.encode(rows, with_targets=True).over_length.tolist()
    assert 1 in over
    found = evaluated(task, rows)
    assert len(found.rows) == 3 - len(over)
    note = f"{len(over)} of 3 rows left out: more than "
    assert any(said.startswith(note) for said in found.details.values())
    assert any(said.startswith(note) for said in task.notes)
    listed = ", ".join(map(str, over))
    with pytest.raises(DataError, match=rf"^{len(over)} of 3 rows have .*: rows {listed} \(from 0"):
        evaluated(make(*case.most, "task.over_length=error"), rows)


def test_the_labels_of_another_task_are_refused_at_the_first_row(case, make):
    words, _, error = case.elsewhere
    if not words:
        pytest.skip("a task without labels")
    task = make(words)
    with pytest.raises(DataError, match=error):
        task.batches(case.dicts(), train=True, seed=1)


def test_a_class_without_an_example_spoils_no_value(case, task, make):
    if not case.elsewhere[0]:
        pytest.skip("a task without labels")
    labels = list(dict.fromkeys(task.text.ingredients["labels"]))
    found = evaluated(make(f"labels.names={json.dumps([*labels, 'B-eggs'])}"), case.dicts())
    assert len(found.rows) == 3
    spoilt = [name for name, value in found.values.items() if not math.isfinite(value)]
    assert all("eggs" in name or name.startswith("label/") for name in spoilt), spoilt


UNREADABLE = {
    "score": ("n/a", "found 'n/a'"),
    "tags": ("O", "has 2 words in 'words', but 1 tags in 'tags'"),
    "target": ("[IN:STOP stop", "A tree is written"),
    "answer_starts": ("[5]", "'the cat' is not at 5 of 'context', where 'at sat' is"),
}
"""A target that only its task knows to be none, with what is said."""


def test_a_line_whose_target_cannot_be_read_is_a_bad_row(case, make):
    name = next((name for name in UNREADABLE if name in case.wrong), None)
    if name is None or case.wrong[name][0] == 7:
        pytest.skip("its targets are any texts, or are known when they are fitted")
    rows, (value, said) = case.dicts(), UNREADABLE[name]
    rows[1][name] = value
    with pytest.raises(DataError, match=rf"^1 of 3 rows is bad(.|\n)*rows.jsonl:2: .*{said}"):
        make(rows=rows)
    task = make("train_data.max_bad_rows=1", "valid_data.max_bad_rows=1", rows=rows)
    assert len(evaluated(task, [rows[0], rows[2]]).rows) == 2

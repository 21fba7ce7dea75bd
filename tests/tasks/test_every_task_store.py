"""What every task encodes is kept and found again, number for number, and errors name its rows."""

import json

import numpy as np
import pytest

import textmill
from textmill.data.store import tokens
from textmill.data.store.tokens import encode_chunks, encoded_rows
from textmill.errors import DataError
from textmill.recipes import registries
from textmill.tasks import evaluate

MARK = "ab" * 32
WORDS = "tokenizer.type=fitted_words"
PHRASES = ("dictionary.type=phrases", "dictionary.path={folder}/names.tsv")
EXPERIMENTS = {
    "classification/docnn/local": (WORDS, "dense.type=fitted", *PHRASES),
    "classification/sentences/local": ("tokenizer.min_count=1",),
    "joint/context/local": ("tokenizer.min_count=1",),
    "tagging/turns/local": ("train_data.group_by=null", "tokenizer.min_count=1"),
    "regression/docnn/local": (), "embedding/similarity/local": (),
    "pairs/classification/local": (), "pairs/regression/local": (), "pairs/ranking/local": (),
    "similarity/ngrams/local": (),
    "tagging/bilstm/local": (*PHRASES, "dictionary.column=words", "tokenizer.min_count=1"),
    "joint/bilstm/local": ("tokenizer.min_count=1",),
    "trees/bilstm/local": ("tokenizer.min_count=1",),
    "trees/rnng/local": ("tokenizer.min_count=1",), "language/lstm/local": (),
    "bert/pretraining/local": (), "question/drqa/local": (),
}  # fmt: skip
TEXTS = ["Ann met Bob", "so good", "New York is far away", "late", "Ann is late"] * 4


def rows():
    """Rows with a column of each name that an experiment reads."""
    for number, text in enumerate(TEXTS):
        words = text.split()
        yield {
            **dict.fromkeys(("text", "words", "text1", "query", "context"), text),
            **dict.fromkeys(("text2", "positive", "question"), words[0]), "id": str(number),
            "negative": words[-1], "label": "odd" if number % 2 else "even",
            "turns": ["so", text], "score": str(number / 2),
            "source": text, "target": f"[IN:A {text} ]",
            "dense": f"[{number}, 0.25]",
            "tags": " ".join("B-per" if word in ("Ann", "Bob") else "O" for word in words),
            "slots": " ".join("B-per" if word in ("Ann", "Bob") else "O" for word in words),
            "answers": json.dumps([words[0]]), "answer_starts": "[0]",
        }  # fmt: skip


@pytest.fixture(params=EXPERIMENTS)
def task(request, tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "LEAST_CHARACTERS", 0)
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "names.tsv").write_text("city\tnew york\nperson\tann\n")
    words, path = EXPERIMENTS[request.param], tmp_path / "rows.jsonl"
    if request.param.startswith(("language", "bert")):
        path = path.with_suffix(".txt")
        path.write_text("".join(f"{text}\n" for text in TEXTS))
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows()))
        words = (f"train_data.columns=[{', '.join(next(rows()))}]", *words)
    words = [word.format(folder=tmp_path) for word in words]
    return textmill.create_task(
        request.param, [f"train_data.path={path}", f"valid_data.path={path}", *words]
    )


def test_all_tasks_of_typed_columns_are_here():
    known = registries.experiments
    shipped = [name for name in known.names() if known.get(name).__module__.startswith("textmill.")]
    shipped = [name for name in shipped if not name.endswith("/pretrained")]  # the same tasks
    families = {name.partition("/")[0] for name in shipped}
    families -= {"ner", "parsing", "summarization", "translation"}  # tagging, and source and target
    families.remove("multitask")  # of other tasks
    assert {name.partition("/")[0] for name in EXPERIMENTS} == families


def test_what_is_kept_is_what_encoding_gives(task, tmp_path):
    data = list(rows())
    wanted = task.text.encode(data, with_targets=True)
    assert {*task.text.arrays} == {*wanted}
    for _ in range(2):  # made, and then found
        found = encoded_rows(task.text, data, MARK)
        assert {*found} == {*wanted}
        for name, column in wanted.items():
            assert found[name] == column, name
            assert not found[name].values.flags.owndata, f"{name} is not mapped"
    assert len(list((tmp_path / "cache" / "tokens").glob("*/manifest.json"))) == 1


def test_batches_of_what_is_kept_are_the_same(task, monkeypatch):
    class Kept(list):
        def fingerprint(self):
            return MARK

    data = list(rows())
    plain = evaluate(task, task.batches(data, train=False, seed=1))
    Kept.__module__ = "textmill.made"
    for _ in range(2):
        kept = evaluate(task, task.batches(Kept(data), train=False, seed=1))
        assert kept.values == pytest.approx(plain.values, nan_ok=True, abs=0)
        assert kept.rows == plain.rows
    monkeypatch.setattr(
        type(task.text), "encode", lambda *a, **k: pytest.fail("all rows are encoded again")
    )
    with pytest.raises(pytest.fail.Exception):  # the 64 rows that are compared
        task.batches(Kept(data), train=False, seed=1)


def test_a_bad_row_far_behind_is_named_by_its_number(task, monkeypatch):
    monkeypatch.setattr(tokens, "CHUNK_ROWS", 4)
    data = list(rows())
    name = task.text.input_columns[0]
    data[13] = {**data[13], name: "\ud800"}
    with pytest.raises(DataError, match=rf"^Row 13, column '{name}'"):
        encoded_rows(task.text, data, MARK)


@pytest.mark.parametrize("task", ["classification/docnn/local"], indirect=True)
def test_workers_give_the_same(task, monkeypatch):
    text, data = task.text, list(rows())
    wanted = text.encode(data, with_targets=True)
    monkeypatch.setattr(type(text), "encode", lambda *a, **k: pytest.fail("encoded here"))
    (found,) = encode_chunks(text, [data], workers=1)
    assert all(found[name] == wanted[name] for name in wanted)
    assert found["dense"].values.dtype == np.float32

"""Word tagging as users train it: every experiment's small form, real files, and loading a run."""

import json
import shutil

import pytest

import textmill
from textmill.errors import DataError

SENTENCES = [
    ("Ann met Bob Ray .", "B-per O B-per I-per O"),
    ("Rome fell .", "B-loc O O"),
    ("Nobody met Ann in Rome .", "O O B-per O B-loc O"),
    ("Bob fell in Rome .", "B-per O O B-loc O"),
]


@pytest.fixture
def files(tmp_path):
    rows = [
        "".join(
            f"{word}\t_\t{tag}\n" for word, tag in zip(words.split(), tags.split(), strict=True)
        )
        for words, tags in SENTENCES
    ]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conll").write_text("\n".join(rows), encoding="utf-8")
    return tmp_path


def settings(folder, *more):
    return [
        f"train_data.path={folder / 'train.conll'}",
        f"valid_data.path={folder / 'dev.conll'}",
        "reporters.console=false",
        "reporters.html=false",
        "trainer.evaluate_every=100 steps",
        *more,
    ]


def test_a_run_is_loaded_and_answers_by_label_name_without_its_files(files):
    words = settings(
        files, "trainer.max_steps=40", "optimizer.lr=0.05", "lr_scheduler.type=constant",
        "tokenizer.min_count=1", "model.dropout=0",
    )  # fmt: skip
    run = textmill.train("tagging/ner/local", words, run_dir=files / "run")
    rows = [
        json.loads(line)
        for path in sorted((run.folder / "predictions").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    shutil.rmtree(files / "run" / "predictions")
    for name in ("train", "dev"):
        (files / f"{name}.conll").unlink()
    predictor = textmill.load(files / "run")
    last = {row["row"]: row for row in rows}
    assert [last[i]["prediction"] for i in range(4)] == [tags for _, tags in SENTENCES]
    for place, (text, _) in enumerate(SENTENCES):
        assert predictor.answer_row(predictor(text))["prediction"] == last[place]["prediction"]
    (span,) = predictor({"words": ["Nobody", "met", "Bob", "Ray"]}).spans
    assert (span.kind, span.text, span.start, span.end) == ("per", "Bob Ray", 11, 18)
    found = list(predictor.stream([{"words": "Ann"}, {"words": 3}, {"words": ""}]))
    assert found[0]["prediction"] == "B-per"
    assert found[0]["spans"][0]["text"] == "Ann"
    assert found[1]["error"].startswith("column 'words': wanted text or a list of words")
    assert found[2]["prediction"] == ""


def test_a_tag_of_the_dev_file_that_training_did_not_have_stops_before_step_1(files):
    (files / "dev.conll").write_text("Ann _ B-org\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev\.conll:1: column 'tags': 'B-org' at 0 is no label"):
        textmill.train("tagging/ner/local", settings(files), run_dir=files / "run")


def test_real_references_are_learned_from(shared_data, tmp_path):
    folder = shared_data / "refstrings"
    words = [
        f"train_data.path={folder / 'cora.train.jsonl'}",
        f"valid_data.path={folder / 'cora.dev.jsonl'}",
        "train_data.columns={words: tokens, tags: tags}",
        "reporters.console=false",
        "reporters.html=false",
        "trainer.evaluate_every=100 steps",
        "model.dropout=0",
        "optimizer.lr=0.02",
        "trainer.max_steps=30",  # three epochs of 300 references
    ]
    run = textmill.train("tagging/bilstm-crf/local", words, run_dir=tmp_path / "run")
    lines = (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    last = [line for line in map(json.loads, lines) if line["split"] == "valid"][-1]
    assert last["token_accuracy"] > 0.45  # one label for all words: 0.32

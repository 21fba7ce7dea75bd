"""Parsing as users train it: small forms, PyText's trees by heart, real forms, and loading."""

import json

import textmill

QUIET = ("reporters.console=false", "reporters.html=false")
FORMS = (
    "Emma ran .\trun . agent ( x _ 1 , Emma )\n"
    "A dog ran .\tdog ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )\n"
)


def train(name, path, *settings, valid=None):
    words = [f"train_data.path={path}", f"valid_data.path={valid or path}", *QUIET, *settings]
    return textmill.run_experiment(name, "train_and_evaluate", "run", words)


def test_forms_are_learned_by_heart_and_answered_to_the_letter(tmp_path):
    (tmp_path / "forms.tsv").write_text(FORMS, encoding="utf-8")
    more = ("trainer.max_steps=60", "trainer.evaluate_every=60 steps", "model.dropout=0")
    run = train("parsing/cogs/local", "forms.tsv", "optimizer.lr=0.01", *more)
    assert run.evaluations["valid_data"].values["exact_match"] == 1
    (tmp_path / "forms.tsv").unlink()
    parse = textmill.load("run")
    for line in FORMS.splitlines():
        sentence, form = line.split("\t")
        assert parse(sentence).text == form
    (file,) = (tmp_path / "run" / "predictions").iterdir()
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [row["prediction"] for row in rows] == [row["target"] for row in rows]


def test_steps_on_real_forms_lower_the_loss_and_answer_every_row(shared_data, tmp_path):
    for name, rows in (("train", 1000), ("dev", 10)):
        path = shared_data / "cogs" / f"{name}.tsv"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:rows]
        (tmp_path / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    more = ("optimizer.lr=0.01", "trainer.max_steps=30", "trainer.evaluate_every=30 steps")
    run = train("parsing/cogs/local", "train.tsv", *more, valid="dev.tsv")
    found = run.evaluations["valid_data"]
    assert found.values["perplexity"] < 12  # of the 500 words, alike, more than 500
    assert found.values["accuracy"] > 0.4
    assert len(found.rows) == 10
    assert all(" ".join(row["prediction"].split()) == row["prediction"] for row in found.rows)


def test_the_trees_that_pytexts_parser_over_a_stack_learns_by_heart(shared_data):
    # PyText after 150 epochs: 80 % of the frames, F1 95.12.
    path = shared_data / "pytext-tiny" / "test_rnng.tsv"
    more = ("train_data.batch_size=5", "tokenizer.min_count=1", "optimizer.lr=0.01")
    more = (*more, "model.dropout=0", "model.word_dropout=0", "model.dim=64")
    more = (*more, "model.embedding.dim=32", "model.encoder.hidden_dim=32")
    more = (*more, "trainer.max_steps=80", "trainer.evaluate_every=80 steps")
    run = train("trees/rnng/local", path, *more)
    values = run.evaluations["valid_data"].values
    assert values["frame_accuracy"] >= 0.8
    assert values["bracket/overall_f1"] >= 0.9512
    assert values["invalid_trees"] == 0
    sentence, _, tree = path.read_text(encoding="utf-8").splitlines()[0].split("\t")
    assert textmill.load("run")(sentence).tree == tree

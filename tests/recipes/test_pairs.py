"""Experiments of pairs: real data, the ceilings of PyText's small files, and loading again."""

import json
import statistics

import textmill

TINY = "pytext-tiny/{}.tsv"


def run(name, train, columns, *settings, mode="train_and_evaluate", valid=None):
    overrides = [
        f"train_data.path={train}", f"valid_data.path={valid or train}",
        f"train_data.columns={json.dumps(columns)}", *settings,
    ]  # fmt: skip
    return textmill.run_experiment(name, mode, "run", overrides)


LEARN = ("lr_scheduler.type=constant", "model.dropout=0.0", "optimizer.lr=0.02")


def test_pairs_are_learned_by_heart(shared_data):
    path = shared_data / TINY.format("pairwise_classification")
    columns = ["label", "text1", "text2"]
    more = (*LEARN, "tokenizer.min_count=1", "trainer.max_steps=25")
    found = run("pairs/classification/local", path, columns, *more).evaluations["valid_data"]
    assert found.values["accuracy"] == 1
    predictor = textmill.load("run")
    pair = {"text1": "A man is smoking.", "text2": "A man is skating."}
    assert predictor(pair).label == "false"
    assert set(predictor(pair).scores) == {"true", "false"}


def test_ngrams_tell_how_alike_texts_are_better_than_the_words_they_share(shared_data, tmp_path):
    lines = (shared_data / "snli-small" / "train.tsv").read_text(encoding="utf-8").splitlines()
    numbers = {"contradiction": 0, "neutral": 2.5, "entailment": 5}
    rows = [(a, b, numbers[label]) for label, a, b in (line.split("\t") for line in lines)]
    for name, part in (("train", rows[:1500]), ("dev", rows[1500:2300])):
        text = "".join(f"{a}\t{b}\t{number}\n" for a, b, number in part)
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    columns = ["text1", "text2", "score"]
    found = run("similarity/ngrams", "train.tsv", columns, valid="dev.tsv")
    words = [(set(a.split()), set(b.split())) for a, b, _ in rows[1500:2300]]
    shared = [len(a & b) / len(b) for a, b in words]
    simple = statistics.correlation(shared, [number for _, _, number in rows[1500:2300]])
    assert found.evaluations["valid_data"].values["pearson"] > simple + 0.1
    alike = [{"text1": "A man eats.", "text2": other} for other in ("A man eats.", "No dogs.")]
    answers = textmill.load("run")(alike)
    assert answers[0].number > answers[1].number + 1

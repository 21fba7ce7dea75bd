"""Documents on real tiny files: sizes, losses and ceilings that PyText's users had."""

import json
import math
from pathlib import Path

import pytest

import textmill

KIM = ("tokenizer.type=fitted_words", "ngrams=null", "model.encoder.widths=[3, 4]")
FAST = ("optimizer.lr=0.005", "lr_scheduler.type=constant", "lr_scheduler.warmup_steps=0")


def documents(folder):
    """Settings of the data: it is evaluated on what it is trained on."""
    path = folder / "train_data_tiny.tsv"
    words = ["train_data.columns={label: 0, text: 2}", "reporters.console=false"]
    return [f"train_data.path={path}", f"valid_data.path={path}", *words]


@pytest.fixture
def tiny(shared_data):
    return shared_data / "pytext-tiny"


def test_the_network_of_kim_begins_at_the_loss_of_chance_and_learns_all_rows(tiny, tmp_path):
    words = [
        *documents(tiny), *KIM, *FAST, "trainer.max_epochs=25", "trainer.evaluate_every=5 epochs",
    ]  # fmt: skip
    folder = textmill.train("classification/docnn", words, run_dir=tmp_path / "run").folder
    module = textmill.load(folder).task.module
    assert sum(p.numel() for p in module.parameters()) == 76_507, "as many as PyText's"
    lines = [json.loads(x) for x in (folder / "metrics.jsonl").read_text().splitlines()]
    first = next(line for line in lines if line["split"] == "train")
    assert first["loss"] == pytest.approx(math.log(7), abs=0.5)
    last = [line for line in lines if line["split"] == "valid"][-1]
    assert last["accuracy"] == 1.0
    assert last["loss"] < 0.05
    names = {name.split("/", 1)[1].rsplit("/", 1)[0] for name in last if name.startswith("label/")}
    assert len(names) == 7


def test_a_run_begins_with_the_vectors_of_a_file_and_is_loaded_without_it(tiny, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text((tiny / "test_embed.raw").read_text())
    embedding = ["model.embedding.dim=5", f"model.embedding.vectors={vectors}"]
    words = [*documents(tiny), *KIM, *embedding, "model.embedding.frozen=true"]
    run = textmill.train("classification/docnn/local", words, run_dir=tmp_path / "run")
    line = f"Word vectors of {vectors}: 4 of 47 words have one of its 10 vectors (8.5 %)."
    assert line in (run.folder / "log.txt").read_text()
    vectors.unlink()
    task = textmill.load(run.folder).task
    number = task.text.ingredients["tokenizer"].numbers["is"]
    found = task.module.text.embedding.tokens.weight[number].tolist()
    assert found == pytest.approx([0.17873, -0.10689, 0.069695, -0.20678, 0.037157])


def test_the_example_trains_on_real_messages(shared_data, tmp_path):
    example = Path(__file__).parents[2] / "examples" / "sms_spam.py"
    data = shared_data / "sms-spam"
    words = [f"train_data.path={data / 'dev.tsv'}", f"valid_data.path={data / 'dev.tsv'}"]
    words += ["reporters.console=false", "trainer.max_steps=50", "tokenizer.vocab_size=1000"]
    words += ["model.encoder.hidden_dim=8", "model.embedding.dim=32", "task.max_length=64"]
    words += [f"tokenizer.cache_dir={tmp_path}", "lr_scheduler.warmup_steps=5", "optimizer.lr=0.01"]
    run = textmill.train(example, words, run_dir=tmp_path / "run")
    values = json.loads((run.folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert values["accuracy"] > 0.9
    assert values["roc_auc"] > 0.9
    assert textmill.load(run.folder)("see you at home").label == "ham"

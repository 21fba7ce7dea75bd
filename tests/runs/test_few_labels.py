"""``classification/few``: a classifier from a few rows, without data to validate on."""

import pytest

import textmill
from tests.pretrained_checkpoints import save_encoder
from textmill.runs.export import export

LABELLED = {
    "cat": ["the cat sat", "a cat sleeps on the mat", "cats are rare"],
    "dog": ["dogs bark", "the dog barks at the moon", "a dog ran"],
}


@pytest.fixture
def words(tmp_path):
    save_encoder(tmp_path / "encoder", "bert")
    rows = [f"{label}\t{text}\n" for label, texts in LABELLED.items() for text in texts]
    (tmp_path / "few.tsv").write_text("".join(rows))
    return [
        f"model.encoder.path={tmp_path / 'encoder'}",
        *(f"train_data.path={tmp_path / 'few.tsv'}", "valid_data=null", "task.max_length=30"),
        *("lr_scheduler.type=constant", "reporters.console=false", "reporters.html=false"),
    ]


def weights_of(run):
    return (run / "checkpoints/step-00000004/model.safetensors").read_bytes()


def test_it_goes_on_bitwise_has_its_last_weights_and_is_exported(words, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    for run, steps in ((whole, 4), (part, 2)):
        textmill.train("classification/few", [*words, f"trainer.max_steps={steps}"], run_dir=run)
    textmill.train(part, ["trainer.max_steps=4"])
    assert weights_of(part) == weights_of(whole)
    found = textmill.load(part)
    texts = [text for texts in LABELLED.values() for text in texts]
    assert found.checkpoint == "step-00000004"
    assert found(texts)[0].scores.keys() == LABELLED.keys()
    export(part, "onnx")  # which compares it


def test_a_few_steps_tell_the_labels_apart(words, tmp_path):
    more = ["trainer.max_steps=60", "model.dropout=0"]
    run = textmill.train("classification/few", [*words, *more], run_dir=tmp_path / "run")
    for label, texts in LABELLED.items():
        assert {answer.label for answer in textmill.load(run.folder)(texts)} == {label}

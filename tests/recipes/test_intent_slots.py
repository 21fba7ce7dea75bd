"""Experiments of intents and slots: the ceiling of PyText's small file, and steps on SNIPS."""

import pytest

import textmill


@pytest.mark.parametrize("name", ["bilstm", "bilstm-crf", "transformer"])
def test_all_slots_that_words_can_have_are_learned(name, shared_data):
    path = shared_data / "pytext-tiny" / "train_data_tiny_weights.tsv"
    settings = [
        f"train_data.path={path}", f"valid_data.path={path}",
        "train_data.columns=[label,slots,text]", "slots.format=spans", "tokenizer.min_count=1",
        "model.dropout=0", "lr_scheduler.type=constant", "optimizer.lr=0.02",
        "trainer.max_steps=50", "trainer.evaluate_every=25 steps",
    ]  # fmt: skip
    run = textmill.run_experiment(f"joint/{name}/local", "train_and_evaluate", "run", settings)
    values = run.evaluations["valid_data"].values
    assert values["intent_accuracy"] == 1
    assert values["frame_accuracy"] == pytest.approx(0.9)  # "8:15" ends within "Tuesday's"
    assert values["slot_f1"] == pytest.approx(10 / 11)
    answer = textmill.load("run")({"text": "what is the weather tomorrow"})
    assert str(answer) == "[weather/find what is the [weather/noun weather ] [datetime tomorrow ] ]"

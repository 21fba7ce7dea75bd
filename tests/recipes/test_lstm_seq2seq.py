"""The recurrent encoder-decoder, trained by the experiments of the Transformer."""

import pytest

import textmill

AS_PYTEXT_S = (
    "model.bidirectional=false", "model.attention=dot", "model.input_feeding=true",
    "model.tie=none",
)  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [pytest.param((), id="own"), pytest.param(AS_PYTEXT_S, id="pytext", marks=pytest.mark.slow)],
)
def test_the_small_trees_of_pytext_are_learned_by_heart(shared_data, settings):
    """PyText's reaches a frame accuracy of 0.7 in 150 epochs, and decodes one row at a time."""
    path = shared_data / "pytext-tiny" / "compositional_seq2seq_unit.tsv"
    words = [
        f"train_data.path={path}", f"valid_data.path={path}", "train_data.columns=[source,target]",
        "train_data.batch_size=10", "tokenizer.min_count=1", "model.type=lstm_seq2seq",
        "model.dim=32", "model.dropout=0", *settings, "optimizer.lr=0.01",
        "lr_scheduler.type=constant", "trainer.max_steps=150", "trainer.evaluate_every=150 steps",
        "reporters.console=false", "reporters.html=false",
    ]  # fmt: skip
    run = textmill.run_experiment("parsing/top/local", "train_and_evaluate", "run", words)
    values = run.evaluations["valid_data"].values
    assert values["frame_accuracy"] >= 0.9
    assert values["bracket/overall_f1"] >= 0.9
    sentence, tree = path.read_text(encoding="utf-8").splitlines()[0].split("\t")
    found = textmill.load("run")(sentence).text
    assert found == tree.strip()

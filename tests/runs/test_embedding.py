"""Runs that make vectors of texts: trained, gone on with, embedded and exported."""

import json
import shutil
from pathlib import Path

import textmill
from tests.pretrained_checkpoints import save_encoder

ROWS = "the cat sat\tthe cat\ndogs bark\tthe moon\nfilms are rare\tthe films\n"
QUIET = ("reporters.console=false", "reporters.html=false", "lr_scheduler.type=constant")


def sentence_encoder(folder: Path, pooling: str = "cls") -> Path:
    """A small random encoder, as sentence-transformers lays it out."""
    save_encoder(folder, "bert")
    kinds = ("Transformer", "Pooling")
    modules = [{"type": f"sentence_transformers.models.{kind}"} for kind in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": pooling}))
    return folder


def trained(folder: Path, *words: str, steps: int = 2) -> Path:
    rows, run = folder / "rows.tsv", folder / "run"
    rows.write_text(ROWS * 8)
    data = (f"train_data.path={rows}", f"valid_data.path={rows}", "task.max_length=30")
    settings = [*data, *QUIET, f"trainer.max_steps={steps}", *words]
    textmill.train("embedding/pretrained", overrides=settings, run_dir=run)
    return run


def test_a_run_goes_on_with_the_pooling_of_a_folder_that_is_gone(tmp_path: Path) -> None:
    parts = tmp_path / "whole", tmp_path / "part"
    encoders = [sentence_encoder(part / "encoder") for part in parts]
    words = [f"model.encoder.path={path}" for path in encoders]
    whole, part = (
        trained(folder, word, steps=steps)
        for folder, word, steps in zip(parts, words, (4, 2), strict=True)
    )
    config = (part / "config.yaml").read_text().partition("built:")[2]
    assert "type: first" in config
    assert "normalize: false" in config
    shutil.rmtree(encoders[1])
    textmill.train(part, overrides=["trainer.max_steps=4"])
    weights = "checkpoints/step-00000004/model.safetensors"
    assert (part / weights).read_bytes() == (whole / weights).read_bytes()


def test_negatives_are_those_of_a_micro_batch(tmp_path: Path) -> None:
    path = sentence_encoder(tmp_path / "encoder", "mean")
    word = f"model.encoder.path={path}"
    losses = []
    for batches in (1, 4):
        (tmp_path / str(batches)).mkdir()
        more = (f"trainer.accumulate={batches}", f"train_data.batch_size={24 // batches}")
        run = trained(tmp_path / str(batches), word, *more, steps=1)
        line = (run / "metrics.jsonl").read_text().splitlines()[0]
        losses.append(json.loads(line)["loss"])
    assert losses[1] < losses[0] - 0.5  # of fewer texts the right one is found more easily

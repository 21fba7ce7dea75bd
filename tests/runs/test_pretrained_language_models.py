"""Runs that fine-tune a pretrained decoder: begun from a folder, and whole by themselves."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import textmill
from tests.pretrained_checkpoints import LANGUAGE_MODELS, TEXTS, save_language_model
from tests.runs.pretrained_runs import answers, quick, train_from
from textmill.errors import UserError
from textmill.runs.export import export

ASKED = ["the cat", "dogs bark at", ""]


def trained(family: str, folder: Path, *more: str) -> Path:
    words = [f"model.path={save_language_model(folder / family, family)}", "task.block=16", *more]
    rows = "\n".join(TEXTS * 4) + "\n"
    return train_from(folder, "language/pretrained", rows, *words, suffix="txt")


@pytest.mark.parametrize("family", quick(LANGUAGE_MODELS, "gpt2"))
def test_a_run_answers_without_what_it_began_with(tmp_path: Path, family: str) -> None:
    run = trained(family, tmp_path)
    before = answers(run, ASKED)
    assert f"model_type: {family}" in (run / "config.yaml").read_text().partition("built:")[2]
    shutil.rmtree(tmp_path / family)
    assert answers(Path(shutil.move(run, tmp_path / "moved")), ASKED) == before


def test_what_draws_its_answers_is_exported_with_the_likeliest(tmp_path: Path) -> None:
    """To CTranslate2, which cannot draw as textmill does."""
    run = trained("gpt2", tmp_path, "task.decoding.top_k=5", "task.decoding.seed=3")
    with pytest.raises(UserError, match=r"sample is True\n.* the likeliest .* --greedy"):
        export(run, "ctranslate2")
    made = export(run, "ctranslate2", greedy=True)  # which compares it
    predictor = textmill.load(run)
    config = predictor.task.config
    predictor.task.config = replace(config, decoding=config.decoding.likeliest())
    found = textmill.exported.load(made.folder, device="cpu", threads=1)(ASKED)
    assert [one.text for one in found] == [one.text for one in predictor(ASKED)]
    plain = trained("gpt2", tmp_path / "plain", "task.decoding.sample=false")
    with pytest.raises(UserError, match="answers are not drawn: leave greedy out"):
        export(plain, "ctranslate2", greedy=True)

"""Runs that fine-tune a pretrained encoder: every task with every family, from a folder."""

import json
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
import transformers
from safetensors.torch import load_file

import textmill
from tests.pretrained_checkpoints import ENCODERS, save_encoder
from tests.runs.pretrained_runs import answers as answers_to
from tests.runs.pretrained_runs import settings_for
from textmill.errors import UserError
from textmill.models.lora import merged, own_weights
from textmill.preflight.check import check
from textmill.runs.export import export
from textmill.runtime.pretrained import find_pretrained

WORDS = "the O\ncat B-animal\nsat O\n\ndogs B-animal\nbark O\n\n"
ROWS = {
    "classification": "good\tthe cat sat on the mat\nbad\tdogs bark at the moon\n",
    "embedding": "the cat sat\tthe cat\ndogs bark\tthe moon\n",
    "extractive": '{"source": ["the cat sat", "dogs bark"], "target": ["the cat"]}\n',
    "joint": "a\tthe cat sat\tO B-x O\nb\tdogs bark\tB-y O\n",
    "ner": WORDS,
    "pairs": "yes\tthe cat sat\tthe cat\nno\tdogs bark\tthe moon\n",
    "question": '{"id": "a", "question": "who sat", "context": "the cat sat", "answers": '
    '["the cat"], "answer_starts": [0]}\n',
    "ranking": "the cat sat\tthe cat\tdogs bark\nmoon\tthe moon\tfilms are rare\n",
    "regression": "1.5\tthe cat sat\n0.3\tdogs bark\n",
    "similarity": "the cat sat\tthe cat\t4.5\ndogs bark\tthe moon\t0.5\n",
    "tagging": WORDS,
    "trees": "x\tthe cat sat\t[IN:A the [SL:B cat ] sat ]\nx\tdogs bark\t[IN:C dogs bark ]\n",
}
ASKED: dict[str, Any] = {
    "question": {"question": "who barks", "context": "dogs bark at unbelievable mats " * 3},
    "pairs": {"text1": "the cat", "text2": "the dogs"},
    "similarity": {"text1": "the cat", "text2": "the dogs"},
    "ranking": {"query": "moon", "positive": "the moon"},
}
SUFFIXES = {"extractive": "jsonl", "ner": "conll", "question": "jsonl", "tagging": "conll"}
PAIRS = ("pairs", "similarity")
EXPERIMENTS = {"extractive": "summarization/extractive"}
"""Where it is not ``task/pretrained``."""
QUESTION = ("task.stride=12", "task.max_question_length=8")


def words_of(task: str, folder: Path, *, steps: int = 2) -> list[str]:
    """The settings of a few steps on rows of a task."""
    suffix = SUFFIXES.get(task, "tsv")
    return [
        *settings_for(folder, ROWS[task] * 8, suffix=suffix, steps=steps),
        f"model.encoder.path={folder / 'encoder'}",
        f"task.max_length={18 if task in PAIRS else 24 if task == 'question' else 30}",
        *(QUESTION if task == "question" else ()),
    ]


def trained(task: str, family: str, folder: Path, *more: str, **steps: int) -> Path:
    save_encoder(folder / "encoder", family)
    words = [*words_of(task, folder, **steps), *more]
    run = folder / "run"
    experiment = EXPERIMENTS.get(task, f"{task}/pretrained")
    textmill.run_experiment(experiment, "train", str(run), words)
    return run


def answers(run: Path, task: str) -> list[str]:
    texts = ("the cat sat", "dogs bark at unbelievable mats")
    return answers_to(run, [ASKED.get(task, text) for text in texts])


def weights_of(run: Path) -> bytes:
    return (run / "checkpoints/step-00000004/model.safetensors").read_bytes()


def test_a_run_answers_without_what_it_began_with(tmp_path: Path) -> None:
    run = trained("classification", "bert", tmp_path)
    before = answers(run, "classification")
    config = (run / "config.yaml").read_text()
    assert "model_type: bert" in config.partition("built:")[2]
    shutil.rmtree(tmp_path / "encoder")
    moved = shutil.move(run, tmp_path / "moved")
    assert answers(Path(moved), "classification") == before


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_text_that_is_cut_keeps_its_closing_mark(family: str, tmp_path: Path) -> None:
    run = trained("classification", family, tmp_path, "task.max_length=9")
    made = str(tmp_path / "encoder/tokenizer.json")
    library = transformers.PreTrainedTokenizerFast(tokenizer_file=made)
    rows = [{"text": "the " * number} for number in range(1, 12)]
    wanted = library([row["text"] for row in rows], truncation=True, max_length=9)["input_ids"]
    text = textmill.load(run).task.text
    found = text.encode(rows, with_targets=False, truncate=True)["text"]
    assert [ids.tolist() for ids in found] == wanted


def test_adapters_that_are_held_still_are_refused(tmp_path: Path) -> None:
    still = "model.encoder.lora.rank=2", 'optimizer.freeze=["text.encoder.*"]'
    with pytest.raises(UserError, match=r"optimizer\.freeze holds the adapters of lora still"):
        trained("classification", "bert", tmp_path, *still)


@pytest.mark.parametrize(
    "task", ["classification", pytest.param("tagging", marks=pytest.mark.slow)]
)
def test_a_run_goes_on_bitwise_without_the_folder(task: str, tmp_path: Path) -> None:
    whole = trained(task, "bert", tmp_path / "whole", steps=4)
    part = trained(task, "bert", tmp_path / "part", steps=2)
    shutil.rmtree(tmp_path / "part/encoder")
    textmill.train(part, overrides=["trainer.max_steps=4"])
    assert weights_of(part) == weights_of(whole)
    again = words_of(task, tmp_path / "part", steps=6)  # the same command, of another length
    textmill.train(f"{task}/pretrained", overrides=again, run_dir=part)
    assert check(part, ["trainer.max_steps=8"]).problems == []
    with pytest.raises(UserError, match=f"There is no folder {tmp_path / 'part/encoder'}"):
        textmill.train(f"{task}/pretrained", overrides=again, run_dir=tmp_path / "another")


def test_a_classifier_by_the_first_token_begins_as_that_of_transformers(tmp_path: Path) -> None:
    more = "model.pooling.type=pooler", "optimizer.lr=1e-30"
    run = trained("classification", "bert", tmp_path, *more, steps=1)
    oracle: Any = transformers.AutoModel.from_pretrained(tmp_path / "encoder").eval()
    task = textmill.load(run).task
    ids = task.text.encode([{"text": "the cat"}], with_targets=False)["text"][0]
    given = torch.from_numpy(ids).long()[None]
    with torch.no_grad():
        found = task.module.get_submodule("text")(given, torch.tensor([len(ids)]))
        torch.testing.assert_close(found, oracle(given).pooler_output, atol=1e-5, rtol=0)


def test_a_run_keeps_the_commit_of_a_name_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def snapshot_download(name: str, *, revision: str | None, allow_patterns: Any) -> str:
        asked.append(revision)
        return str(tmp_path / "hub/snapshots/c0ffee")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    save_encoder(tmp_path / "hub/snapshots/c0ffee", "bert")
    words = [*words_of("classification", tmp_path), "model.encoder.path=owner/bert"]
    run = tmp_path / "run"
    textmill.train("classification/pretrained", overrides=words, run_dir=run)
    assert asked == [None], "once: config, tokenizer and weights are of one commit"
    assert json.loads((run / "run.json").read_text())["pretrained"] == {"owner/bert": "c0ffee"}
    textmill.train(run, overrides=["trainer.max_steps=4"])
    assert asked == [None]
    assert json.loads((run / "run.json").read_text())["pretrained"] == {"owner/bert": "c0ffee"}
    shutil.rmtree(run / "checkpoints")  # as of a run that was stopped before it saved anything
    textmill.train(run, overrides=["trainer.max_steps=5"])
    assert asked == [None, "c0ffee"]


def test_a_name_that_cannot_be_reached_is_refused_with_the_alternative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    wanted = "bert is no folder here, and the Hugging Face hub does not give it: .* Name a folder"
    with pytest.raises(UserError, match=wanted):
        find_pretrained("google-bert/bert")


@pytest.mark.network
def test_a_name_on_the_hub_gives_a_commit() -> None:
    found = find_pretrained("sentence-transformers/all-MiniLM-L6-v2")
    assert found.commit is not None
    again = find_pretrained(found.name, revision=found.commit)
    assert (again.path, again.config()["model_type"]) == (found.path, "bert")
    found.check_weights()


def test_a_run_learns_by_adapters_alone(tmp_path: Path) -> None:
    lora = "model.encoder.lora.rank=2", "model.encoder.lora.dropout=0.1"
    whole = trained("classification", "bert", tmp_path / "whole", *lora, steps=4)
    part = trained("classification", "bert", tmp_path / "part", *lora, steps=2)
    textmill.train(part, overrides=["trainer.max_steps=4"])
    assert weights_of(part) == weights_of(whole)
    base = load_file(tmp_path / "whole/encoder/model.safetensors")
    module = textmill.load(whole).task.module
    kept = own_weights(module.get_submodule("text.encoder.model"))
    assert all(torch.equal(kept[name], base[name]) for name in kept)
    assert any(weight.abs().sum() for n, weight in module.state_dict().items() if "lora_B" in n)
    predictor = textmill.load(whole)
    before = predictor("dogs bark").scores
    predictor.task.module = merged(predictor.task.module)
    assert predictor("dogs bark").scores == pytest.approx(before, abs=1e-5)


@pytest.mark.slow
def test_an_export_has_adapters_merged(tmp_path: Path) -> None:
    run = trained("tagging", "bert", tmp_path, "model.encoder.lora.rank=2")
    before = answers(run, "tagging")
    export(run, "onnx")  # which compares it
    assert b"lora_" not in (run / "export/onnx/graph/model.onnx").read_bytes()
    assert answers(run, "tagging") == before


@pytest.mark.slow
@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("task", ROWS)
def test_every_family_under_every_task(task: str, family: str, tmp_path: Path) -> None:
    run = trained(task, family, tmp_path)
    before = answers(run, task)
    for form in ("onnx", "huggingface"):
        export(run, form, out=tmp_path / form)  # which compares the rows of valid_data
    assert answers(run, task) == before

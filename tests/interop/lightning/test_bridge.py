"""Tasks of textmill under Lightning's Trainer: accumulation, schedules, resuming, saving."""

import json
import sys
from pathlib import Path

import lightning
import pytest
import torch
from torch.utils.data import DataLoader

import textmill
from tests.recipes.local_data import TEXTS, write_data
from textmill import Recipe, like
from textmill.errors import MissingExtraError, NonFiniteError, UserError
from textmill.interop.lightning import as_datamodule, as_module, as_trainer
from textmill.models import fast
from textmill.models.fast import Fast
from textmill.recipes import registries

NAME = "classification/docnn/local"
TRANSFORMER = "classification/transformer/local"
QUIET = ["reporters.console=false", "reporters.html=false"]
# Three batches an epoch, the last of two rows.
WORDS = [
    "trainer.max_epochs=3", "trainer.max_steps=null", "train_data.batch_size=3",
    "train_data.max_tokens=null",
]  # fmt: skip
WORDS += QUIET
SILENT = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
pytestmark = pytest.mark.filterwarnings("ignore::Warning:(lightning|pytorch_lightning)")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(NAME)
    return tmp_path


def trained(words=(), *, name=NAME, trainer=None, **arguments):
    data = as_datamodule(name, [*WORDS, *words])
    module = as_module(data)
    if trainer is None:
        trainer = as_trainer(data, enable_checkpointing=False, **SILENT, **arguments)
    trainer.fit(module, data)
    return data, module, trainer


def by_textmill(words=(), *, name=NAME):
    return textmill.train(name, [*WORDS, *words], run_dir="run")


def weights(of, checkpoint="last"):
    if isinstance(of, str):
        return textmill.load(of, checkpoint=checkpoint).task.module.state_dict()
    return {k: v.clone() for k, v in of.task.module.state_dict().items()}


def different(one, two):
    assert one.keys() == two.keys()
    return [key for key in one if not torch.equal(one[key], two[key])]


SETTINGS = {
    "plain": [],
    "accumulated": ["trainer.accumulate=2"],
    "clipped": ["trainer.clip_norm=0.01"],
    "not clipped": ["trainer.clip_norm=null"],
    "scheduled": ["lr_scheduler.type=cosine", "lr_scheduler.warmup_steps=3"],
    "plateau": ["lr_scheduler.type=plateau", "lr_scheduler.patience=1", "optimizer.lr=1"],
    "adafactor": ["optimizer.type=adafactor", "trainer.evaluate_every=2 steps"],
    "muon": ["optimizer.type=muon"],
    "computed again": ["trainer.activation_checkpointing=true"],
    "bf16": ["trainer.precision=bf16"],
}


QUICK = ("accumulated", "plateau")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SETTINGS]
)
def test_each_setting_does_what_it_does_in_textmills_loop(name):
    words = SETTINGS[name]
    recipe = TRANSFORMER if name in ("muon", "computed again", "bf16") else NAME
    write_data(recipe)
    data, _, trainer = trained(words, name=recipe)
    run = by_textmill(words, name=recipe)
    assert different(weights("run"), weights(data)) == []
    assert trainer.global_step == run.result["steps"]


def test_the_trainers_own_number_of_batches_and_clipping_are_taken():
    trainer = lightning.Trainer(
        max_epochs=3, accumulate_grad_batches=2, gradient_clip_val=1e-3, enable_checkpointing=False,
        **SILENT,
    )  # fmt: skip
    data, _, _ = trained(trainer=trainer)
    by_textmill(["trainer.accumulate=2", "trainer.clip_norm=1e-3"])
    for one, two in zip(weights("run").values(), weights(data).values(), strict=True):
        assert torch.allclose(one, two, atol=1e-5)


def test_lightning_goes_on_from_its_own_checkpoint_in_the_middle_of_an_epoch():
    whole, _, _ = trained()
    data = as_datamodule(NAME, WORDS)
    keep = lightning.pytorch.callbacks.ModelCheckpoint(every_n_train_steps=1, save_top_k=-1)
    trainer = as_trainer(data, callbacks=[keep], **SILENT)
    trainer.fit(as_module(data), data)
    assert different(weights(whole), weights(data)) == []
    for step in (4, 6):
        data = as_datamodule(NAME, WORDS)
        trainer = as_trainer(data, enable_checkpointing=False, **SILENT)
        (path,) = Path(keep.dirpath).glob(f"*step={step}.ckpt")
        trainer.fit(as_module(data), data, ckpt_path=path)
        assert trainer.global_step == 9
        assert different(weights(whole), weights(data)) == []


def test_an_epoch_that_is_cut_goes_on_where_it_was_left():
    data, _, _ = trained(limit_train_batches=2)  # epochs of 2, 1, 2 batches
    by_textmill(["trainer.max_steps=5", "trainer.max_epochs=null"])
    assert different(weights("run"), weights(data)) == []


def test_what_was_trained_is_saved_as_a_run(capsys):
    data, module, trainer = trained()
    assert module.save_run("saved").name == "saved"
    predictor = textmill.load("saved")
    assert different(weights(data), weights("saved", "best")) == []
    answers = [predictor(text) for text in TEXTS]
    rows = [{"text": text} for text in TEXTS]
    again = trainer.predict(module, DataLoader(rows, batch_size=1, collate_fn=list))
    assert [row for batch in again for row in batch] == [*map(predictor.answer_row, answers)]
    together = module(rows)
    assert [answer.label for answer in together] == [answer.label for answer in answers]
    (values,) = trainer.validate(module, data, verbose=False)
    found = textmill.run_experiment("saved", "evaluate").evaluations["valid_data"].values
    assert values == pytest.approx({f"valid/{name}": value for name, value in found.items()})
    info = json.loads((module.save_run("again") / "run.json").read_text())
    assert (info["finished"], info["result"]) == (True, {"steps": 9, "epochs": 3})
    with pytest.raises(UserError, match="saved exists already"):
        module.save_run("saved")


@pytest.mark.parametrize(
    "steps", [3, pytest.param(4, marks=pytest.mark.slow)]
)  # 4 is the end of an epoch
def test_textmills_loop_goes_on_with_what_lightning_began(steps):
    _, module, _ = trained(max_steps=steps)
    module.save_run("saved")
    assert textmill.train("saved").result["steps"] == 9
    by_textmill()
    assert different(weights("run"), weights("saved")) == []


def test_the_best_weights_are_kept_and_patience_stops():
    data = as_datamodule(NAME, [*WORDS, "trainer.selection.patience=1", "optimizer.lr=1e-9"])
    trainer = as_trainer(data, **SILENT)
    module = as_module(data)
    trainer.fit(module, data)
    assert trainer.current_epoch == 2
    assert trainer.checkpoint_callback.monitor == "valid/accuracy"
    (values,) = trainer.validate(module, data, ckpt_path="best", verbose=False)
    assert values["valid/accuracy"] == pytest.approx(trainer.checkpoint_callback.best_model_score)


def test_test_data_is_tested_where_there_is_some():
    made = registries.experiments.get(NAME)().ingredients
    recipe = Recipe("With a test part.", **{**made, "test_data": like("valid_data")})
    data = as_datamodule(recipe, WORDS)
    trainer, module = as_trainer(data, enable_checkpointing=False, **SILENT), as_module(data)
    (tested,) = trainer.test(module, data, verbose=False)
    (valid,) = trainer.validate(module, data, verbose=False)
    assert tested["test/loss"] == valid["valid/loss"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["trainer.ema=0.9"], "the callback EMAWeightAveraging"),
        (["trainer.on_nonfinite=skip"], "set it to stop"),
        (["trainer.evaluate_every=5 min"], "val_check_interval"),
        (["trainer.accumulate=4"], r"accumulate is 4.*accumulate_grad_batches=1"),
    ],
)
def test_what_lightnings_loop_has_not_is_refused(words, told):
    more = {"accumulate_grad_batches": 1} if "accumulate" in words[0] else {}
    with pytest.raises(UserError, match=told):
        trained(words, **more)


def test_an_optimizer_of_several_gradients_is_refused(monkeypatch):
    monkeypatch.setattr(torch.optim.Optimizer, "gradient_of_step", None, raising=False)
    with pytest.raises(UserError, match="needs several gradients in a step"):
        as_module(as_datamodule(NAME, WORDS))


def test_several_processes_are_refused(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="textmill train --nproc 2"):
        as_datamodule(NAME)


def test_a_loss_that_is_no_number_stops_the_fit():
    with pytest.raises(NonFiniteError, match=r"Lower optimizer\.lr"):
        trained(
            [
                *("optimizer.type=sgd", "optimizer.lr=1e30", "trainer.clip_norm=null"),
                "trainer.fast.linear=torch",
            ]
        )
    assert fast.now() == Fast()  # of the failed fit nothing is left in the process


def test_other_things_are_told_what_belongs_there():
    run = by_textmill()
    with pytest.raises(UserError, match="is a run, which textmill trains on"):
        as_datamodule(run.folder)
    with pytest.raises(UserError, match="found a Linear"):
        as_module(torch.nn.Linear(1, 1))
    with pytest.raises(UserError, match=r"as_trainer takes what as_datamodule.* found a str"):
        as_trainer(NAME)
    data = as_datamodule(NAME, WORDS)
    trainer = as_trainer(data, enable_checkpointing=False, **SILENT)
    with pytest.raises(UserError, match="as_datamodule"):
        trainer.validate(as_module(data), [[1]], verbose=False)


def test_without_lightning_the_extra_is_named(monkeypatch):
    for name in ("lightning", "lightning.pytorch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"textmill\[lightning\]"):
        _ = textmill.interop.lightning.as_module

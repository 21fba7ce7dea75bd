import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.interop.project import FILES, write_project
from tests.runs.tiny import metrics_of
from tests.warm_textmill import warm_programs
from textmill.errors import RunStoppedError, UserError
from textmill.interop.hydra.config import ConfigError
from textmill.interop.hydra.run import importable, older_name
from textmill.run_folder.folder import RunFolder
from textmill.runtime.jsonl_log import read_lines


def weights(run):
    return load_file(next(run.folder.glob("checkpoints/step-*/model.safetensors")))


def same(first, second):
    return first.keys() == second.keys() and all(map(torch.equal, first.values(), second.values()))


def by_hand(project, epochs):
    """The same training as a person writes it who knows Lightning alone."""
    from lightning.pytorch import Trainer, seed_everything

    with importable(project), older_name():
        from src.datamodules.toy_datamodule import ToyDataModule
        from src.models.components.net import Net
        from src.models.toy_module import ToyModule

        seed_everything(7, workers=True, verbose=False)
        data = ToyDataModule(train_batch_size=8)
        module = ToyModule(model=Net(hidden=6), lr=2e-2)
        trainer = Trainer(
            accelerator="cpu", max_epochs=epochs, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(module, datamodule=data)
    return module.state_dict()


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")
@pytest.mark.filterwarnings("ignore:The .srun. command")  # Lightning's own, like the one above
def test_weights_are_those_of_a_fit_by_hand(train, project):
    run = train("trainer.max_epochs=3")
    assert same(weights(run), by_hand(project, 3))
    assert run.result["steps"] == 12
    assert run.result["test"].keys() == {"loss", "acc"}


def test_a_run_folder_is_whats_expected_and_holds_no_pickle(train):
    run = train("callbacks=default", "trainer.max_epochs=2")
    assert run.folder.parent == Path("runs/toy")
    names = {p.relative_to(run.folder).as_posix() for p in run.folder.rglob("*") if p.is_file()}
    assert names >= {
        "run.json", "config.yaml", "metrics.jsonl", "log.txt", "report.html",
        "code/src/models/toy_module.py", "code/src/models/components/net.py",
        "checkpoints/last.ckpt/model.safetensors", "checkpoints/epoch_001.ckpt/state.json",
        "checkpoints/step-00000008/optimizer.safetensors",
    }  # fmt: skip
    assert not [n for n in names if n.endswith((".pt", ".pth", ".pkl", ".bin"))]
    info = RunFolder(run.folder).info
    assert info["selected_by"] == {"metric": "loss", "better": "lower"}
    assert info["result"]["best"]["step"] == 8
    assert info["result"]["best"]["loss"] == run.result["test"]["loss"]  # the same rows
    settings = (run.folder / "config.yaml").read_text()
    assert "_target_: src.models.toy_module.ToyModule" in settings
    assert "${" not in settings
    splits = {line["split"] for line in metrics_of(run.folder)}
    assert splits == {"train", "valid", "test"}


def test_the_same_command_shows_a_finished_run_and_another_key_is_another_run(train, caplog):
    caplog.set_level("INFO", "textmill")
    first = train("trainer.max_epochs=1")
    again = train("trainer.max_epochs=1")
    assert again.result == first.result
    assert "This run is finished" in caplog.text
    assert train("trainer.max_epochs=1", "+datamodule.rows=16").folder != first.folder
    assert train("trainer.max_epochs=1", again=True).folder.name == f"{first.folder.name}-2"


def test_code_that_is_reached_is_in_the_key(train, project):
    first = train("trainer.max_epochs=1")
    net = project / "src/models/components/net.py"
    net.write_text(net.read_text().replace("nn.ReLU", "nn.Tanh"))
    assert train("trainer.max_epochs=1").folder != first.folder


def test_a_greater_length_goes_on_and_a_smaller_one_is_refused(train):
    whole = train("trainer.max_epochs=4", run_dir="whole")
    run = train("trainer.max_epochs=2")
    longer = train("trainer.max_epochs=4")
    assert longer.folder == run.folder
    assert longer.result["steps"] == 16
    assert same(weights(longer), weights(whole))
    with pytest.raises(UserError, match="is longer already"):
        train("trainer.max_epochs=2")


STOPPING = """
import signal
from lightning.pytorch import Callback

class Stops(Callback):
    def __init__(self, at, by="SIGINT"):
        self.at, self.by = at, by

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if trainer.global_step == self.at and not open("stopped", "a").tell():
            open("stopped", "a").write("once")
            signal.raise_signal(getattr(signal, self.by))
"""

WITH_STOP = ["callbacks=default", "+callbacks.stop._target_=src.stops.Stops"]


@pytest.mark.parametrize(
    "limit", ["trainer.max_epochs=4", pytest.param("+trainer.max_steps=14", marks=pytest.mark.slow)]
)
def test_a_run_that_is_stopped_goes_on_from_the_end_of_an_epoch(train, project, limit):
    (project / "src/stops.py").write_text(STOPPING)
    words = [*WITH_STOP, "+callbacks.stop.at=10", limit]
    (project / "stopped").write_text("never")
    whole = train(*words, run_dir="whole")
    (project / "stopped").unlink()
    with pytest.raises(RunStoppedError, match=r"goes on from step 8, the end of") as stopped:
        train(*words)
    assert stopped.value.exit_code == 128 + signal.SIGINT
    gone_on = train(*words)
    assert same(weights(gone_on), weights(whole))
    assert gone_on.result == whole.result
    assert metrics_of(gone_on.folder) == metrics_of(whole.folder)


def test_a_killed_process_goes_on_by_the_same_command(train, project):
    """Of a process that is gone without a word."""
    (project / "src/stops.py").write_text(STOPPING)
    words = [*WITH_STOP, "+callbacks.stop.at=6", "+callbacks.stop.by=SIGKILL"]
    command = [warm_programs() / "textmill", "train", "--hydra", "configs/", "train.yaml", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "Going on from step 4" in done.stderr
    folder = Path(done.stdout.split("run: ")[1].strip())
    whole = train(*words, run_dir="whole")
    assert same(load_file(folder / "checkpoints/step-00000016/model.safetensors"), weights(whole))
    saved = json.loads((folder / "run.json").read_text())
    assert saved["finished"]
    assert len(saved["starts"]) == 2


@pytest.mark.slow
def test_of_two_processes_of_a_strategy_one_writes_and_says_what_came_of_it(project):
    words = ["trainer.max_epochs=2", "trainer.devices=2", "+trainer.strategy=ddp"]
    command = [
        sys.executable, "-m", "textmill", "train", "--hydra", "configs/", "train.yaml", *words,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("run: ") == done.stderr.count("Run folder: ") == 1
    folder = RunFolder(Path(done.stdout.split("run: ")[1].strip()))
    assert folder.info["finished"]
    assert folder.result["steps"] == 4
    steps = [line["step"] for line in read_lines(folder.path / "metrics.jsonl") if "lr" in line]
    assert steps == sorted(set(steps))


def test_early_stopping_is_remembered(train):
    words = ["callbacks=default", "+callbacks.early_stopping.min_delta=10"]
    words += ["callbacks.early_stopping.patience=1", "trainer.max_epochs=9"]
    run = train(*words)
    assert run.result["epochs"] == 2
    info = RunFolder(run.folder).info
    RunFolder(run.folder).write_info(finished=False, result=None)  # as if killed before the end
    assert train(*words).result == info["result"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("trainer=cpux", "Could not find 'trainer/cpux'"),
        ("model.lrr=1", "Could not override 'model.lrr'"),
        ("model.lr=${paths.dta}", "Interpolation key 'paths.dta' not found\n  full_key: model.lr"),
        ("model._target_=sre.models.x.Y", "model._target_=sre.models.x.Y: ModuleNotFoundError"),
        ("datamodule._target_=src.models.toy_module.ToyModule", "argument 'train_batch_size'"),
        ("~model", "no section model with a _target_"),
    ],
)
def test_a_wrong_word_leaves_nothing(train, project, word, said):
    with pytest.raises(ConfigError, match=r"nothing was run") as error:
        train(word)
    assert said in str(error.value)
    assert not (project / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+trainer.fooo=1"], "unexpected keyword argument 'fooo'"),
        (["+model.optimizer=1"], "not callable"),
        *(
            pytest.param(*words, marks=pytest.mark.slow)
            for words in (
                (["+ckpt_path=none.ckpt"], "none.ckpt: there is no such checkpoint"),
                (["callbacks=default", "callbacks.early_stopping.mode=up"], "EarlyStopping"),
            )
        ),
    ],
)
def test_a_start_that_fails_does_not_hinder_the_next(train, project, words, said):
    with pytest.raises(Exception, match=said):
        train("trainer.max_epochs=2", *words)
    built = "model.optimizer" in words[0]
    assert bool([*project.glob("runs/toy/*")]) is built, "what cannot be built leaves nothing"
    assert train("trainer.max_epochs=1").result["steps"] == 4
    if built:  # in the same folder, too, with another length
        (folder,) = [
            p.parent
            for p in project.glob("runs/toy/*/run.json")
            if not RunFolder(p.parent).finished
        ]
        with pytest.raises(Exception, match=said):
            train("trainer.max_epochs=3", *words)
        assert RunFolder(folder).info["length"]["max_epochs"] == 3


def test_a_value_that_callbacks_monitor_and_nobody_logs_is_named(train):
    with pytest.raises(UserError, match=r"^Lightning cannot train this: .*val/los.*val/loss"):
        train("callbacks=default", "callbacks.early_stopping.monitor=val/los")


SILENT = FILES["src/models/toy_module.py"].replace(
    "        self.log(", "        (lambda *_, **__: 0)("
)


def test_a_mended_module_takes_the_folder_of_a_run_that_was_refused(train, project, caplog):
    caplog.set_level("INFO", "textmill")
    write_project(project, toy_module=SILENT)
    words = ["callbacks=default", "trainer.max_epochs=1"]
    with pytest.raises(UserError, match="val/loss"):
        train(*words, run_dir="run")
    assert "val/loss" in RunFolder(Path("run")).info["failed"]
    unloaded()
    write_project(project)
    assert train(*words, run_dir="run").folder == Path("run")
    assert "run: the run that began here saved nothing, and gives way." in caplog.messages


def unloaded():
    """Forgets the project's modules, as another process has none of them."""
    for name in [name for name in sys.modules if name.split(".")[0] == "src"]:
        del sys.modules[name]


def test_what_is_no_data_is_refused_by_its_key_before_the_first_step(train, project):
    (project / "src/odd.py").write_text(
        "from lightning.pytorch import Callback\nclass Odd(Callback):\n"
        "    def state_dict(self):\n        return {'seen': {1, 2}}\n"
    )
    with pytest.raises(Exception, match=r"callbacks\.Odd\.seen' is a set, which is not saved"):
        train("+callbacks.odd._target_=src.odd.Odd")
    assert not [*project.glob("runs/toy/*/checkpoints/step*")]


def test_a_partial_optimizer_of_the_config_is_used_and_described(train):
    run = train(
        "+model.optimizer._target_=torch.optim.SGD", "+model.optimizer._partial_=true",
        "+model.optimizer.momentum=0.9", "trainer.max_epochs=1",
    )  # fmt: skip
    state = json.loads((run.folder / "checkpoints/step-00000004/state.json").read_text())
    kept = state["parts"]["trainer"]["hyper_parameters"]["optimizer"]
    assert "torch.optim.sgd.SGD" in kept

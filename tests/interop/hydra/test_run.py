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
from tests.warm_textmill import warm_programs
from textmill.errors import MissingExtraError, RunStoppedError, UserError
from textmill.interop.hydra.config import ConfigError
from textmill.interop.hydra.targets import importable
from textmill.interop.lightning.older_names import older_names
from textmill.run_folder.folder import RunFolder
from textmill.runtime.jsonl_log import read_lines


def weights(run):
    return load_file(next(run.folder.glob("checkpoints/step-*/model.safetensors")))


def lines(run):
    """Without what the clock decides."""
    found = [*read_lines(run.folder / "metrics.jsonl")]
    return [{k: v for k, v in line.items() if k != "time"} for line in found]


def same(first, second):
    return first.keys() == second.keys() and all(map(torch.equal, first.values(), second.values()))


def by_hand(project, epochs):
    """The same training as a person writes it who knows Lightning alone."""
    from lightning.pytorch import Trainer, seed_everything

    with importable(project), older_names():
        from src.datamodules.toy_datamodule import ToyDataModule
        from src.models.components.net import Net
        from src.models.toy_module import ToyModule

        seed_everything(7, workers=True, verbose=False)
        data = ToyDataModule(train_batch_size=8)
        module = ToyModule(model=Net(hidden=6), lr=2e-2)
        trainer = Trainer(
            accelerator="cpu",
            max_epochs=epochs,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
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
        "run.json",
        "config.yaml",
        "metrics.jsonl",
        "log.txt",
        "report.html",
        "code/src/models/toy_module.py",
        "code/src/models/components/net.py",
        "checkpoints/last.ckpt/model.safetensors",
        "checkpoints/epoch_001.ckpt/state.json",
        "checkpoints/step-00000008/optimizer.safetensors",
    }
    assert not [n for n in names if n.endswith((".pt", ".pth", ".pkl", ".bin"))]
    info = RunFolder(run.folder).info
    assert info["selected_by"] == {"metric": "loss", "better": "lower"}
    assert info["result"]["best"]["step"] == 8
    assert info["result"]["best"]["loss"] == run.result["test"]["loss"]  # the same rows
    settings = (run.folder / "config.yaml").read_text()
    assert "_target_: src.models.toy_module.ToyModule" in settings
    assert "${" not in settings
    splits = {line["split"] for line in lines(run)}
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


def test_another_length_is_refused_and_extended(train):
    whole = train("trainer.max_epochs=4", run_dir="whole")
    run = train("trainer.max_epochs=2")
    with pytest.raises(UserError, match="exists with another length"):
        train("trainer.max_epochs=4")
    longer = train("trainer.max_epochs=4", extend=True)
    assert longer.folder == run.folder
    assert longer.result["steps"] == 16
    assert same(weights(longer), weights(whole))


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


@pytest.mark.parametrize("limit", ["trainer.max_epochs=4", "+trainer.max_steps=14"])
@pytest.mark.parametrize("at", [1, 10])
def test_a_run_that_is_stopped_in_an_epoch_goes_on_bit_for_bit(train, project, limit, at):
    (project / "src/stops.py").write_text(STOPPING)
    words = [*WITH_STOP, f"+callbacks.stop.at={at}", limit]
    (project / "stopped").write_text("never")
    whole = train(*words, run_dir="whole")
    (project / "stopped").unlink()
    with pytest.raises(RunStoppedError, match=f"at step {at + 1}; everything is sav") as stopped:
        train(*words)
    assert stopped.value.exit_code == 128 + signal.SIGINT
    gone_on = train(*words)
    assert same(weights(gone_on), weights(whole))
    assert gone_on.result == whole.result
    assert [n for n in lines(gone_on) if not averaged(n)] == [
        n for n in lines(whole) if not averaged(n)
    ]


def averaged(line):
    """Means over an epoch: of one that was interrupted, over the rest of it."""
    return line["split"] == "train" and "loss_epoch" in line


ENDLESS = """
from src.datamodules.toy_datamodule import ToyDataModule
from torch.utils.data import DataLoader, IterableDataset

class Rows(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

class Streaming(ToyDataModule):
    def train_dataloader(self):
        return DataLoader(Rows(self.set), 8)
"""


def test_data_without_a_length_go_on_from_the_end_of_an_epoch(train, project):
    (project / "src/stops.py").write_text(STOPPING)
    (project / "src/streams.py").write_text(ENDLESS)
    words = [*WITH_STOP, "+callbacks.stop.at=6", "datamodule._target_=src.streams.Streaming"]
    with pytest.raises(RunStoppedError, match="goes on from step 4, where it was saved last"):
        train(*words)
    gone_on = train(*words)
    whole = train(*words, run_dir="whole")
    assert same(weights(gone_on), weights(whole))
    epochs = [(line["step"], line["epoch"]) for line in lines(whole) if line["split"] == "valid"]
    assert epochs == [(4, 1.0), (8, 2.0), (12, 3.0), (16, 4.0)]
    assert {line["epoch"] for line in lines(whole) if line["split"] == "test"} <= {4.0}


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


KILLING = """
import os, signal
from lightning.pytorch import Callback

class Kills(Callback):
    def __init__(self):
        self.calls = 0

    def moment(self, *args):
        self.calls += 1
        left = open("moments").read().split()
        if left and self.calls == int(left[0]):
            open("moments", "w").write(" ".join(left[1:]))
            os.kill(os.getpid(), signal.SIGKILL)

    on_train_batch_start = on_train_batch_end = on_validation_batch_end = moment
    on_save_checkpoint = on_train_epoch_end = on_train_end = on_test_batch_end = moment
"""


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_at_many_moments_it_ends_as_if_it_had_not_been(train, project):
    (project / "src/kills.py").write_text(KILLING)
    words = ["callbacks=default", "+callbacks.kill._target_=src.kills.Kills"]
    moments = project / "moments"
    moments.write_text("")
    whole = train(*words, run_dir="whole")
    moments.write_text("2 7 14 17 5 21")
    command = [
        sys.executable,
        "-m",
        "textmill",
        "train",
        "--hydra",
        "configs/",
        "train.yaml",
        *words,
    ]
    code, starts = -signal.SIGKILL, 0
    while code == -signal.SIGKILL:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        code, starts = done.returncode, starts + 1
    assert code == 0, done.stderr
    assert starts == 7
    folder = Path(done.stdout.split("run: ")[1].strip())
    found = load_file(folder / "checkpoints/step-00000016/model.safetensors")
    assert same(found, weights(whole))
    written = [*read_lines(folder / "metrics.jsonl")]
    assert [{k: v for k, v in n.items() if k != "time"} for n in written] == lines(whole)


@pytest.mark.slow
def test_of_two_processes_of_a_strategy_one_writes_and_says_what_came_of_it(project):
    words = ["trainer.max_epochs=2", "trainer.devices=2", "+trainer.strategy=ddp"]
    command = [
        sys.executable,
        "-m",
        "textmill",
        "train",
        "--hydra",
        "configs/",
        "train.yaml",
        *words,
    ]
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


def test_problems_are_told_with_file_and_key_before_anything_is_built(train, project):
    (project / "configs/model/toy.yaml").write_text(
        "_target_: src.models.toy_module.ToyModul\nlr: ${paths.data_dri}\nmodel:\n"
        "  _target_: src.models.components.net.Net\n  hiden: 3\n"
    )
    with pytest.raises(ConfigError) as error:
        train()
    assert "configs/model/toy.yaml:2:5: model.lr: ${paths.data_dri}: there is no" in str(
        error.value
    )
    assert "Did you mean 'paths.data_dir'?" in str(error.value)
    with pytest.raises(ConfigError) as error:
        train("model.lr=0.1")
    assert str(error.value).startswith("2 problems in the config train; nothing was run.")
    said = "configs/model/toy.yaml:1:11: model._target_: src.models.toy_module has no 'ToyModul'."
    assert f"{said} Did you mean 'ToyModule'?" in str(error.value)
    assert "configs/model/toy.yaml:5:10: model.model.hiden: " in str(error.value)
    assert "Did you mean 'hidden'? It takes: hidden=8, dropout=0.2." in str(error.value)
    assert not (project / "runs").exists()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("trainer=cpux", "there is no config 'trainer/cpux': the group trainer has cpu."),
        ("model.lrr=1", "Did you mean 'model.lr'?"),
        ("model.lr", "Wanted name=value; +name=value adds a setting, ~name leaves one out."),
        ("callbacks=null", "(default). To leave it out: ~callbacks"),
        ("trainer=5", "command line: trainer=5: trainer: wanted one of the group's configs (cpu)"),
        ("model.lr=???", "model.lr is ???, which is to be given"),
        ("trainer._target_=pytorch_lightning.Trainr", "Did you mean 'Trainer'?"),
        ("model._target_=sre.models.x.Y", "there is no module 'sre'"),
        ("datamodule._target_=src.models.toy_module.ToyModule", "needs model"),
    ],
)
def test_a_wrong_word_is_told_with_what_there_is(train, word, said):
    with pytest.raises(ConfigError, match=r"nothing was run") as error:
        train(word)
    assert said in str(error.value)


def test_the_nearest_name_is_of_the_configs_that_are_chosen(train, project):
    (project / "configs/model/other.yaml").write_text("lrate: 1\nlearning: 2\n")
    with pytest.raises(ConfigError) as error:
        train("model.lrat=1")
    assert "Did you mean 'model.lr'?" in str(error.value)
    with pytest.raises(ConfigError) as error:
        train("model=other", "model.lrat=1")
    assert "Did you mean 'model.lrate'?" in str(error.value)


def test_an_accelerator_that_is_not_here_and_a_file_that_is_no_python_are_told(train, project):
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match=r"trainer\.accelerator: there is no cuda here"):
            train("trainer.accelerator=cuda")
        gpu = project / "configs/trainer/gpu.yaml"
        gpu.write_text("defaults:\n  - cpu\n\naccelerator: cuda\n")
        with pytest.raises(ConfigError, match=r"trainer/gpu\.yaml:4:14: trainer\.accelerator"):
            train("trainer=gpu")
    (project / "src/models/toy_module.py").write_text("x = 1\ndef y(:\n")
    with pytest.raises(ConfigError, match=r"failed \(.*toy_module\.py:2\): SyntaxError"):
        train()
    assert not (project / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+trainer.fooo=1"], "has no 'fooo'"),
        (["+ckpt_path=none.ckpt"], "none.ckpt: there is no such checkpoint"),
        (
            ["trainer.resume_from_checkpoint=configs/train.yaml"],
            "train.yaml is a file, as Lightning",
        ),
        (["trainer.accelerator=cpux"], "trainer cannot be built: .*accelerator"),
        (["+trainer.precision=17"], "trainer cannot be built: .*17"),
        (["trainer.max_epochs=-7"], "trainer cannot be built: .*max_epochs"),
        (["+model.optimizer=1"], "not callable"),
        (["+trainer.val_check_interval=1000"], "val_check_interval"),
        (
            ["callbacks=default", "callbacks.early_stopping.mode=up"],
            "early_stopping cannot be built",
        ),
    ],
)
def test_a_start_that_fails_does_not_hinder_the_next(train, project, words, said):
    with pytest.raises(Exception, match=said):
        train("trainer.max_epochs=2", *words)
    built = "model.optimizer" in words[0] or "val_check" in words[0]
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


def test_a_value_that_callbacks_monitor_and_nobody_logs_is_named_with_what_to_do(train):
    with pytest.raises(UserError) as error:
        train("callbacks=default", "callbacks.early_stopping.monitor=val/los")
    assert str(error.value).startswith(
        "callbacks monitor val/los, which the module does not log. In its validation_step: "
        "self.log('val/los', ...); a loss may be returned instead. Or leave the callbacks out: "
        "~callbacks. It logs: "
    )
    assert "val/loss" in str(error.value)


def test_another_refusal_of_a_callback_is_no_fault_of_the_project(train):
    with pytest.raises(UserError, match=r"^Lightning cannot train this: Early stopping .*train/x"):
        train("callbacks=default", "callbacks.early_stopping.monitor=train/x")


SILENT = FILES["src/models/toy_module.py"].replace(
    "        self.log(", "        (lambda *_, **__: 0)("
)


def test_a_mended_module_takes_the_folder_of_a_run_that_was_refused(train, project, caplog):
    """And what validation_step returns is the loss that the template's callbacks monitor."""
    caplog.set_level("INFO", "textmill")
    write_project(project, toy_module=SILENT)
    words = ["callbacks=default", "trainer.max_epochs=3"]
    with pytest.raises(UserError, match=r"which the module does not log\..*It logs: nothing\."):
        train(*words, run_dir="run")
    assert RunFolder(Path("run")).info["failed"].startswith("callbacks monitor val/loss")
    unloaded()
    returned = SILENT.replace('self.step(batch, "val")', 'return self.step(batch, "val")')
    write_project(project, toy_module=returned)
    run = train(*words, run_dir="run")
    assert run.folder == Path("run")
    assert "run: the run that began here saved nothing, and gives way." in caplog.messages
    valid = [line["loss"] for line in lines(run) if line["split"] == "valid"]
    assert len(valid) == len(set(valid)) == 3
    assert run.result["best"]["loss"] == pytest.approx(min(valid))
    unloaded()
    write_project(project)
    with pytest.raises(UserError, match="run holds another run"):
        train(*words, run_dir="run")


def unloaded():
    """Forgets the project's modules, as another process has none of them."""
    for name in [name for name in sys.modules if name.split(".")[0] == "src"]:
        del sys.modules[name]


def test_yaml_that_grows_or_names_code_is_refused_unread(train, project):
    (project / "configs/bomb.yaml").write_text("a: &a [1, 2]\nb: [*a, *a]\n")
    (project / "configs/code.yaml").write_text("a: !!python/object/apply:os.system [ls]\n")
    with pytest.raises(ConfigError) as error:
        train()
    assert "bomb.yaml:1:4: '&a': anchors and aliases are not read here" in str(error.value)
    assert "code.yaml:1:4: the tag" in str(error.value)


def test_what_is_no_data_is_refused_by_its_key_before_the_first_step(train, project):
    (project / "src/odd.py").write_text(
        "from lightning.pytorch import Callback\nclass Odd(Callback):\n"
        "    def state_dict(self):\n        return {'seen': {1, 2}}\n"
    )
    with pytest.raises(Exception, match=r"callbacks\.Odd\.seen' is a set, which is not saved"):
        train("+callbacks.odd._target_=src.odd.Odd")
    assert not [*project.glob("runs/toy/*/checkpoints/step*")]


def test_older_arguments_of_the_trainer_are_understood(train, caplog):
    caplog.set_level("INFO", "textmill")
    run = train("+trainer.gpus=0", "~trainer.accelerator", "~trainer.devices",
                "+trainer.progress_bar_refresh_rate=0", "trainer.max_epochs=1")  # fmt: skip
    assert run.result["steps"] == 4
    assert "trainer.gpus=0: accelerator=cpu devices=1" in caplog.text


def test_a_partial_optimizer_of_the_config_is_used_and_described(train):
    run = train(
        "+model.optimizer._target_=torch.optim.SGD",
        "+model.optimizer._partial_=true",
        "+model.optimizer.momentum=0.9",
        "trainer.max_epochs=1",
    )
    state = json.loads((run.folder / "checkpoints/step-00000004/state.json").read_text())
    kept = state["parts"]["trainer"]["hyper_parameters"]["optimizer"]
    assert "torch.optim.sgd.SGD" in kept


def test_without_the_packages_the_extra_is_named(train, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'textmill\[lightning\]'"):
        train()

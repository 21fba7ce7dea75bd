"""A project as SciAssist's developers have it, so small that it trains in a second."""

from pathlib import Path

FILES = {
    "src/__init__.py": "",
    "src/datamodules/toy_datamodule.py": """
import torch
from pytorch_lightning import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset


class ToyDataModule(LightningDataModule):
    def __init__(self, rows=32, train_batch_size: int = 8, data_cache_dir: str = ""):
        super().__init__()
        self.save_hyperparameters()
        self.events = []

    def prepare_data(self):
        self.events.append("prepare_data")

    def setup(self, stage):
        draw = torch.Generator().manual_seed(3)
        x = torch.randn(self.hparams.rows, 4, generator=draw)
        self.set = TensorDataset(x, (x[:, 0] > 0).long())

    def train_dataloader(self):
        return DataLoader(self.set, self.hparams.train_batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.set, 16)

    def test_dataloader(self):
        return DataLoader(self.set, 16)
""",
    "src/models/components/net.py": """
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, hidden: int = 8, dropout: float = 0.2):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 2)
        )

    def forward(self, x):
        return self.layers(x)
""",
    "src/models/toy_module.py": """
import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class ToyModule(pl.LightningModule):
    def __init__(self, model, lr: float = 0.01, optimizer=None):
        super().__init__()
        self.save_hyperparameters(logger=False, ignore=["model"])
        self.model = model

    def step(self, batch, split):
        x, y = batch
        out = self.model(x)
        loss = F.cross_entropy(out, y)
        self.log(f"{split}/loss", loss, on_step=split == "train", on_epoch=True)
        self.log(f"{split}/acc", (out.argmax(-1) == y).float().mean(), on_epoch=True)
        return loss

    def training_step(self, batch, batch_idx):
        return self.step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self.step(batch, "val")

    def test_step(self, batch, batch_idx):
        self.step(batch, "test")

    def configure_optimizers(self):
        make = self.hparams.optimizer or torch.optim.Adam
        optimizer = make(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}
""",
    "configs/train.yaml": """
defaults:
  - _self_
  - datamodule: toy
  - model: toy
  - callbacks: null
  - trainer: cpu
  - paths: default
  - hparams_search: null

task_name: toy
model_name: net
seed: 7
""",
    "configs/paths/default.yaml": """
root_dir: ${oc.env:PROJECT_ROOT}
data_dir: ${paths.root_dir}/data/
model_dir: ${paths.root_dir}/models/
output_dir: ${hydra:runtime.output_dir}
""",
    "configs/datamodule/toy.yaml": """
_target_: src.datamodules.toy_datamodule.ToyDataModule
train_batch_size: 8
data_cache_dir: ${paths.data_dir}/new_task/
""",
    "configs/model/toy.yaml": """
_target_: src.models.toy_module.ToyModule
lr: 2e-2
model:
  _target_: src.models.components.net.Net
  hidden: 6
""",
    "configs/trainer/cpu.yaml": """
_target_: pytorch_lightning.Trainer
accelerator: cpu
devices: 1
min_epochs: 1
max_epochs: 4
log_every_n_steps: 2
resume_from_checkpoint: null
""",
    "configs/callbacks/default.yaml": """
model_checkpoint:
  _target_: lightning.pytorch.callbacks.ModelCheckpoint
  dirpath: ${paths.output_dir}/checkpoints
  filename: epoch_{epoch:03d}
  monitor: val/loss
  mode: min
  save_last: true
  auto_insert_metric_name: false
early_stopping:
  _target_: lightning.pytorch.callbacks.EarlyStopping
  monitor: val/loss
  patience: 100
  mode: min
model_summary: null
""",
    "configs/hparams_search/optuna.yaml": """
# @package _global_
defaults:
  - override /hydra/sweeper: optuna

optimized_metric: val/loss

hydra:
  mode: MULTIRUN
  sweeper:
    _target_: hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper
    storage: null
    study_name: null
    n_jobs: 1
    direction: minimize
    n_trials: 3
    sampler:
      _target_: optuna.samplers.TPESampler
      seed: 1234
      n_startup_trials: 2
    params:
      model.lr: interval(0.0001, 0.1)
      model.model.hidden: choice(4, 8)
""",
}


def write_project(folder: Path, **changed: str) -> Path:
    """Writes the project; other contents by the stem of the file. Returns its configs."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed.get(path.stem, text).lstrip())
    return folder / "configs"

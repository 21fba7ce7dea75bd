"""Tiny recipes: scripts in a temporary folder, and a table of defaults of our own."""

from importlib import invalidate_caches
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from textmill.config.planning.plan import Plan, make_plan
from textmill.config.sources.script import load_script
from textmill.config.values.yaml_files import yaml_nodes
from textmill.recipes import registries

DEFAULTS = '''
"""What the tests' library has."""

from typing import Any

from textmill.config import Component, Config, setting
from textmill.recipes import registries
from textmill.config.ingredient import BuiltFrom


@registries.optimizers.register("tiny_adam")
class Adam(Component):
    """Adam of the tests."""

    class Config(Config):
        lr: float = 1e-3
        """Step size."""
        betas: tuple[float, float] = (0.9, 0.98)

    def __init__(self, config: "Adam.Config", *, module: Any) -> None:
        self.config, self.module = config, module


@registries.optimizers.register("tiny_lion")
class Lion(Component):
    """Lion of the tests."""

    class Config(Config):
        lr: float = 1e-4
        decay: float | None = None

    def __init__(self, config: "Lion.Config", *, module: Any) -> None:
        self.config, self.module = config, module


class Selection(Component):
    """A nested component."""

    class Config(Config):
        metric: str = "loss"

        def __post_init__(self) -> None:
            if not self.metric:
                raise ValueError("the metric needs a name.")

    def __init__(self, config: "Selection.Config") -> None:
        self.config = config


class Trainer(Component):
    """Trains."""

    class Config(Config):
        steps: int = setting(10, in_key=False)
        """Optimizer steps."""
        selection: Selection.Config = Selection.Config()
        """Which checkpoint is the best."""

    def __init__(self, config, *, optimizer, module, train_data, valid_data=None, env=None) -> None:
        self.config, self.optimizer, self.module = config, optimizer, module
        self.train_data, self.valid_data = train_data, valid_data


module = BuiltFrom("model")
optimizer = Adam.Config()
trainer = Trainer.Config()
'''

SCRIPT = '''
"""A tiny recipe."""

from pathlib import Path

from textmill.config import Component, Config
from textmill.recipes import registries
from textmill.config.recipe import like

ROWS = Path("rows.tsv")


@registries.models.register("tiny_model")
class Net(Component):
    """A model of the tests."""

    class Config(Config):
        dim: int = 8
        """Width."""
        size: int | None = None

    def __init__(self, config: "Net.Config", *, tokenizer: list) -> None:
        import dataclasses

        self.config = dataclasses.replace(config, size=len(tokenizer))


def tokenizer(tsv_file: Path = ROWS, vocab_size: int = 5) -> list:
    """Splits text.

    Args:
        tsv_file: What it is fitted on.
        vocab_size: Number of pieces.
    """
    return [str(tsv_file)] * vocab_size


def train_data(tokenizer: list, path: Path = ROWS, shuffle: bool = True) -> list:
    """Rows."""
    return [tokenizer, path, shuffle]


valid_data = like("train_data", path=Path("dev.tsv"), shuffle=False)
model = Net.Config(dim=4)
'''

TARGETS = ("trainer",)


class Kitchen:
    """Writes scripts into a folder and plans them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.defaults = self.table(DEFAULTS, "defaults.py")

    def file(self, text: str, name: str = "recipe.py") -> Path:
        path = self.folder / name
        path.write_text(text)
        # Bytecode is told from its source by size and second: one of this second may be another's.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        invalidate_caches()
        return path

    def table(self, text: str = SCRIPT, name: str = "recipe.py"):
        return load_script(self.file(text, name))

    def plan(self, *words: str, script=SCRIPT, yaml=(), targets=TARGETS) -> Plan:
        table = self.table(script) if isinstance(script, str) else script
        return make_plan(
            table,
            defaults=self.defaults,
            layers=[yaml_nodes(text, source=f"{i}.yaml") for i, text in enumerate(yaml)],
            words=words,
            targets=targets,
        )


@pytest.fixture
def kitchen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = {name: dict(registry._entries) for name, registry in registries.all_registries().items()}
    yield Kitchen(Path())
    for name, registry in registries.all_registries().items():
        # What the library registered meanwhile stays: its modules are imported once.
        new = {key: entry for key, entry in registry._entries.items() if _is_library(entry)}
        registry._entries = {**kept[name], **new}


def _is_library(entry) -> bool:
    return str(getattr(entry, "__module__", "")).startswith("textmill.")

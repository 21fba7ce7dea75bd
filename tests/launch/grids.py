"""Grids of a tiny recipe, whose cells are processes that start at once, or none at all."""

import logging
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

from tests.runs.tiny import write_recipe
from tests.warm_textmill import warm_programs
from textmill.cli.main import main
from textmill.launch.launcher import Local

SHORT = ["trainer.max_steps=4", "trainer.evaluate_every=2", "reporters.html=false"]
"""Steps enough for two evaluations."""


def quick(monkeypatch, folder: Path) -> Path:
    """A folder with the tiny recipe, as the working folder; what a grid starts is warm."""
    monkeypatch.chdir(folder if folder.exists() else write_recipe(folder))
    for module in ("launcher", "cells"):
        monkeypatch.setattr(
            f"textmill.launch.{module}.program", lambda: [str(warm_programs() / "textmill")]
        )
    return folder


def in_process(monkeypatch, folder: Path) -> Path:
    """As :func:`quick`; each cell is trained in this process, when it is started."""

    def start(_, words, log, name):
        logger = logging.getLogger("textmill")
        handlers = list(logger.handlers)
        with log.open("w") as file, redirect_stdout(file), redirect_stderr(file):
            code = main(words)
        logger.handlers[:] = handlers
        return SimpleNamespace(poll=lambda: code)

    monkeypatch.setattr(Local, "start", start)
    return quick(monkeypatch, folder)


def runs_of(folder: Path) -> list[Path]:
    """The run folders of a grid of the tiny recipe."""
    return sorted(file.parent for file in (folder / "runs" / "tiny").glob("*/run.json"))


def grid_folder(folder: Path) -> Path:
    """The one folder of a grid."""
    (found,) = (folder / "runs" / "tiny").glob("grid-*")
    return found

"""Grids of a tiny recipe, whose cells are processes that start at once."""

from concurrent.futures import Future
from pathlib import Path

from tests.runs.tiny import write_recipe
from tests.warm_textmill import warm_programs

SHORT = ["trainer.max_steps=4", "trainer.evaluate_every=2", "reporters.html=false"]
"""Steps enough for two evaluations."""


class Inline:
    """A pool of processes that is none: what is asked is done at once, here."""

    def __init__(self, *_: object, **__: object) -> None:
        return

    def __enter__(self) -> "Inline":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def submit(self, call, *arguments):
        answer = Future()
        try:
            answer.set_result(call(*arguments))
        except Exception as error:  # as a pool's
            answer.set_exception(error)
        return answer

    def shutdown(self, **_: object) -> None:
        return


def quick(monkeypatch, folder: Path) -> Path:
    """A folder with the tiny recipe, as the working folder; cells are warm, and so are checks."""
    monkeypatch.chdir(folder if folder.exists() else write_recipe(folder))
    monkeypatch.setattr("textmill.launch.cells.ProcessPoolExecutor", Inline)
    monkeypatch.setattr(
        "textmill.launch.local.program", lambda: [str(warm_programs() / "textmill")]
    )
    return folder


def runs_of(folder: Path) -> list[Path]:
    """The run folders of a grid of the tiny recipe."""
    return sorted(file.parent for file in (folder / "runs" / "tiny").glob("*/run.json"))


def grid_folder(folder: Path) -> Path:
    """The one folder of a grid."""
    (found,) = (folder / "runs" / "tiny").glob("grid-*")
    return found

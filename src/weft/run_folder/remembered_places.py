"""The places of runs that a person put elsewhere than in ``runs``, remembered in ``.weft``."""

from contextlib import suppress
from pathlib import Path

__all__ = ["remember_place", "remembered_places"]

ROOT = Path("runs")
"""Where runs are unless a person names another folder."""
PLACES = Path(".weft") / "run_places.txt"
"""A line for each run folder elsewhere that was trained from this working directory."""
LARGEST = 1 << 20
"""Bytes of it that are read: some ten thousand places."""


def remember_place(folder: Path) -> None:
    """Keeps where a run is, once; in a directory that cannot be written to, nothing is kept."""
    if folder.is_relative_to(ROOT) or folder.absolute() in remembered_places():
        return
    with suppress(OSError):
        if PLACES.exists() and PLACES.stat().st_size > LARGEST:
            return
        PLACES.parent.mkdir(exist_ok=True)
        with PLACES.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{folder}\n")


def remembered_places() -> dict[Path, Path]:
    """The run folders that are still there, as they were named, by their absolute paths."""
    try:
        if not PLACES.is_file() or PLACES.stat().st_size > LARGEST:
            return {}
        lines = PLACES.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return {}
    named = [Path(line) for line in lines if line]
    return {path.absolute(): path for path in named if (path / "run.json").is_file()}

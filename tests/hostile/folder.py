"""What a hostile hand does to a run folder, with every digest recomputed."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from textmill.runtime.sealed import seal


def steps(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("step-*"))


def entry_of(path: Path) -> dict[str, object]:
    return {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def says(path: Path, change: Callable[[dict], object]) -> None:
    """Changes a sealed file, and seals it again."""
    content = json.loads(path.read_text())
    content.pop("digest")
    path.write_bytes(seal(change(content) or content))


def reseal(run: Path) -> None:
    """Recomputes every digest, so that only what a file says can give it away."""
    for step in steps(run):

        def recount(manifest: dict, step: Path = step) -> None:
            there = [name for name in manifest["files"] if (step / name).is_file()]
            manifest["files"].update({name: entry_of(step / name) for name in there})

        says(step / "manifest.json", recount)
    repoint(run)


def repoint(run: Path) -> None:
    """Points best and last to their folders' manifests as they are now."""
    for name in ("best.json", "last.json"):
        path = run / "checkpoints" / name
        folder = run / "checkpoints" / json.loads(path.read_text())["folder"]
        digest = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
        says(path, lambda pointer, digest=digest: pointer.update(manifest_sha256=digest))


def in_each(run: Path, file: str, content: bytes | Callable[[bytes], bytes]) -> None:
    for step in steps(run):
        path = step / file
        path.write_bytes(content(path.read_bytes()) if callable(content) else content)
    reseal(run)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(root, name)
            status = path.lstat()
            found[str(path)] = (status.st_mtime_ns if path.is_file() else 0, status.st_size)
    return found

"""What a hostile hand does to a run folder: changes as payloads, with every digest recomputed."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from textmill.runtime.sealed import seal

CANARY_CODE = "open('CANARY', 'w').write('x')"
Payload = Callable[[Path], None]
PAYLOADS: dict[str, Payload] = {}


def payload(name: str) -> Callable[[Payload], Payload]:
    def add(change: Payload) -> Payload:
        assert name not in PAYLOADS, name
        PAYLOADS[name] = change
        return change

    return add


def many(prefix: str, cases: dict[str, str], change: Callable[[Path, str], None]) -> None:
    for name, content in cases.items():
        payload(f"{prefix}: {name}")(lambda run, content=content: change(run, content))


def steps(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("step-*"))


def entry_of(path: Path) -> dict[str, object]:
    """What a list of files says of one; nobody can tell the digest of a terabyte in time."""
    size = path.stat().st_size
    digest = "0" * 64 if size > 1 << 30 else hashlib.sha256(path.read_bytes()).hexdigest()
    return {"size": size, "sha256": digest}


def reseal(run: Path) -> None:
    """Recomputes every digest, so that only what a file says can give it away."""
    for step in steps(run):
        manifest = json.loads((step / "manifest.json").read_text())
        manifest.pop("digest")
        for name in list(manifest["files"]):
            path = step / name
            if path.is_file():
                manifest["files"][name] = entry_of(path)
        (step / "manifest.json").write_bytes(seal(manifest))
    repoint(run)


def repoint(run: Path) -> None:
    """Points best and last to their folders' manifests as they are now."""
    for name in ("best.json", "last.json"):
        path = run / "checkpoints" / name
        pointer = json.loads(path.read_text())
        pointer.pop("digest")
        data = (run / "checkpoints" / pointer["folder"] / "manifest.json").read_bytes()
        pointer["manifest_sha256"] = hashlib.sha256(data).hexdigest()
        path.write_bytes(seal(pointer))


def in_each(run: Path, file: str, content: bytes | Callable[[bytes], bytes]) -> None:
    for step in steps(run):
        path = step / file
        path.write_bytes(content(path.read_bytes()) if callable(content) else content)
    reseal(run)


def built(run: Path, old: str, new: str) -> None:
    """Changes the record that the model is rebuilt from."""
    path = run / "config.yaml"
    settings, mark, record = path.read_text().partition("\nbuilt:")
    assert old in record
    path.write_text(settings + mark + record.replace(old, new))


def module_says(run: Path, line: str) -> None:
    """Changes one setting of the rebuilt module, all where it stands."""
    name = line.partition(":")[0]
    path = run / "config.yaml"
    top, mark, record = path.read_text().partition("\n  module:")
    lines = record.splitlines()
    at = next(i for i, text in enumerate(lines) if text.startswith(f"    {name}:"))
    lines[at] = f"    {line}"
    path.write_text(top + mark + "\n".join(lines) + "\n")


def block_says(run: Path, line: str) -> None:
    """Changes the first setting of that name in a block of the rebuilt module."""
    name = line.partition(":")[0]
    path = run / "config.yaml"
    top, mark, record = path.read_text().partition("\n  module:")
    before, blocks, record = record.partition("\n    encoder:")
    lines = record.splitlines()
    at = next(i for i, text in enumerate(lines) if text.strip().startswith(f"{name}:"))
    indent = len(lines[at]) - len(lines[at].lstrip())
    lines[at] = " " * indent + line
    path.write_text(top + mark + before + blocks + "\n".join(lines) + "\n")


def task_says(run: Path, line: str) -> None:
    name = line.partition(":")[0]
    path = run / "config.yaml"
    top, mark, record = path.read_text().rpartition("\n  task:")
    lines = record.splitlines()
    at = next(i for i, text in enumerate(lines) if text.strip().startswith(f"{name}:"))
    indent = len(lines[at]) - len(lines[at].lstrip())
    lines[at] = " " * indent + line
    path.write_text(top + mark + "\n".join(lines) + "\n")


def manifest_says(**changes) -> Payload:
    def change(run: Path) -> None:
        for step in steps(run):
            manifest = json.loads((step / "manifest.json").read_text())
            manifest.pop("digest")
            for key, value in changes.items():
                manifest[key] = value(manifest[key]) if callable(value) else value
            (step / "manifest.json").write_bytes(seal(manifest))
        repoint(run)

    return change


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(root, name)
            status = path.lstat()
            found[str(path)] = (status.st_mtime_ns if path.is_file() else 0, status.st_size)
    return found

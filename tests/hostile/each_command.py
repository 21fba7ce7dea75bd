"""Every command on hostile folders, each in a process of its own: what it said, took and left.

A fork of one process that has imported everything: so the memory and the time of a command are its
own. Started as ``python -m tests.hostile.each_command``; what to do comes in JSON, and so do the
findings.
"""

import contextlib
import io
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import textmill
import textmill.exported
from tests.hostile import payloads_checkpoint, payloads_settings, payloads_text
from tests.hostile.folder import PAYLOADS, snapshot
from tests.hostile.payloads_export import ANOTHER_MODEL, EXPORT_PAYLOADS
from tests.hostile.payloads_files import FILE_PAYLOADS
from textmill.cli.main import main as textmill_main
from textmill.errors import TextmillError
from textmill.runtime.memory import resident

ALL = (payloads_checkpoint, payloads_settings, payloads_text)
"""Each added its payloads when it was imported."""
RUN_PAYLOADS = {**PAYLOADS, **FILE_PAYLOADS}
SECONDS, MEGABYTES = 5.0, 256
"""Of CPU, and of memory besides the imports."""
HANGS = 20
"""Seconds after which a command hangs."""
ROW = "a b ham"


def load(answer: Callable[[str], Any]) -> int:
    try:
        print(repr(answer("it")(ROW)))
    except TextmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def command(*words: str) -> Callable[[], int]:
    return lambda: textmill_main([*words])


RUN: dict[str, Callable[[], int]] = {
    "load": lambda: load(textmill.load),
    "predict": command("predict", "it", "rows.txt"),
    "evaluate": command("evaluate", "it", "valid_data.path=dev.tsv"),
    "export": command("export", "it", "--format", "ctranslate2"),
    "serve": command("serve", "it", "--port", "0"),
    "runs verify": command("runs", "verify", "it"),
}
EXPORT: dict[str, Callable[[], int]] = {
    "exported.load": lambda: load(lambda it: textmill.exported.load(it, device="cpu", threads=1)),
    "predict": command("predict", "it", "rows.txt"),
    "serve": command("serve", "it", "--port", "0"),
}


def answer_and_end(service: Any, listener: Any, ready: Any) -> None:
    """In the place of a server: it would answer for ever."""
    print([answer for _, answer in service.predictor.answered([ROW])])


def forked(work: Callable[[], int], folder: Path) -> dict[str, Any]:
    """What a command does in a folder."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as told:
            json.dump(_measured(work, folder), told)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    return json.loads(said) if said else {"ended": signal.Signals(status & 0x7F).name}


def _measured(work: Callable[[], int], folder: Path) -> dict[str, Any]:
    os.chdir(folder)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(HANGS)
    held = resident()
    room = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (room + (4 << 30), room + (4 << 30)))
    shown, said = io.StringIO(), io.StringIO()
    start = time.process_time()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(said):
        try:
            code = work()
        except BaseException:
            traceback.print_exc()
            code = 99
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "code": code,
        "shown": shown.getvalue(),
        "said": said.getvalue(),
        "seconds": seconds,
        "megabytes": (peak - held) / 1e6,
    }


def tried(base: Path, work: Callable[[], int], change: Callable[[Path], object]) -> dict[str, Any]:
    """A command on a changed copy of a folder; ``left`` is what it changed there or around it."""
    with tempfile.TemporaryDirectory(prefix="textmill-hostile-") as place:
        inner = Path(place).resolve() / "work"
        inner.mkdir()
        (inner / "rows.txt").write_text(f"{ROW}\n")
        (inner / "dev.tsv").write_text("Go.\tVa !\n")
        shutil.copytree(base, inner / "it", symlinks=True)
        here = Path.cwd()
        os.chdir(inner)
        change(inner / "it")
        os.chdir(here)
        before = snapshot(Path(place))
        found = forked(work, inner)
        after = snapshot(Path(place))
        found["left"] = sorted(
            os.path.relpath(path, inner)
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)
        )
        return found


def problems(found: dict[str, Any], good: dict[str, Any], *, writes: bool) -> list[str]:
    """What is wrong with what a command did; ``good`` is what it does with the folder unchanged."""
    if "ended" in found:
        return [f"ended by {found['ended']}"]
    said, wrong = found["said"], list[str]()
    if found["code"] not in (0, 1, 2) or "--debug" in said or "Traceback" in said:
        wrong.append("is a bug of textmill's")
    # An export is compared on other rows where some are gone, and says so; the folder is the same.
    parts = [each["shown"].splitlines()[-1:] if writes else each["shown"] for each in (found, good)]
    if found["code"] == 0 and parts[0] != parts[1]:
        wrong.append(f"answers otherwise: {found['shown'][:200]}")
    if found["code"] and not 20 < len(said + found["shown"]) < 6_000:
        wrong.append("has no reason")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", said + found["shown"]):
        wrong.append("passes on what a terminal obeys")
    if found["seconds"] > SECONDS:
        wrong.append(f"takes {found['seconds']:.1f} s")
    if found["megabytes"] > MEGABYTES:
        wrong.append(f"takes {found['megabytes']:.0f} MB")
    written = re.compile(r"it(/export(/.*)?)?") if writes else re.compile("(?!)")
    if left := [name for name in found["left"] if not written.fullmatch(name)]:
        wrong.append(f"leaves {', '.join(left[:5])}")
    return wrong


def main() -> None:
    """Reads ``{"base": folder, "kind": "run" or "export", "tried": [[command, payload], …]}``."""
    import textmill.inference.load  # torch, which a command asks for where an export is none
    import textmill.serving.server

    textmill.serving.server.serve = answer_and_end  # type: ignore[assignment]
    asked = json.load(sys.stdin)
    base = Path(asked["base"])
    commands, payloads = {"run": (RUN, RUN_PAYLOADS), "export": (EXPORT, EXPORT_PAYLOADS)}[
        asked["kind"]
    ]
    good = {}
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(base, Path(place, "it"))
        Path(place, "rows.txt").write_text(f"{ROW}\n")
        Path(place, "dev.tsv").write_text("Go.\tVa !\n")
        os.chdir(place)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for work in commands.values():  # all is imported from here on
                work()
        os.chdir("/")
    for name in dict.fromkeys(name for name, _ in asked["tried"]):
        good[name] = tried(base, commands[name], lambda it: None)
        print(json.dumps({"command": name, "payload": None, **good[name]}), flush=True)
    for name, payload in asked["tried"]:
        found = tried(base, commands[name], payloads[payload])
        wrong = problems(found, good[name], writes=name == "export")
        if asked["kind"] == "export" and ANOTHER_MODEL.search(payload):
            wrong = [each for each in wrong if not each.startswith("answers otherwise")]
        told = {"command": name, "payload": payload, "problems": wrong, **found}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

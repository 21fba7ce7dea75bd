"""Values that no run writes, anywhere in the files of a run: every command refuses or bears them.

A seeded draw changes one value of one file, with every digest recomputed, and all commands that
read a run folder are tried on it. None may call it a bug in textmill, or pass on what a terminal
would obey.
"""

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.folder import repoint, reseal, steps
from tests.hostile.small_run import small_run
from tests.trained_run import edited
from textmill.cli.main import main
from textmill.runtime.sealed import seal

SEALED = ("manifest.json", "best.json", "last.json")
FILES = ("run.json", "state.json", "config.yaml", "metrics.jsonl", *SEALED)
VALUES: list[Any] = [
    None,
    "text",
    "",
    10**400,
    -(10**400),
    10**30,
    -1,
    0,
    1.5,
    1e308,
    True,
    [],
    {},
    [[1]],
    {"a": None},
    "\ud800",
    "\x1b[2J\x1b]0;x\x07",
    "x" * 3000,
]
COMMANDS = (
    "runs list {folder}",
    "runs verify {run}",
    "runs compare {base} {run}",
    "runs report {run}",
    "runs prune {folder} --yes",
    "predict {run} {rows}",
    "evaluate {run}",
    "train {run}",
    "train {run} trainer.max_steps=6",
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value stands in a document; of a long list, the first two."""
    yield at
    pairs = value.items() if isinstance(value, dict) else ()
    pairs = list(enumerate(value))[:2] if isinstance(value, list) else pairs
    for key, item in pairs:
        yield from places(item, (*at, key))


def put(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    held = document
    for key in place[:-1]:
        held = held[key]
    held[place[-1]] = value
    return document


def file_of(run: Path, name: str, step: Path) -> Path:
    inside = {"state.json": step, "manifest.json": step, "best.json": step.parent}
    return {**inside, "last.json": step.parent}.get(name, run) / name


def content_of(path: Path) -> Any:
    document = json.loads(path.read_text())
    document.pop("digest", None)
    return document


def change(run: Path, name: str, draws: random.Random, value: Any) -> str:
    """Puts a value somewhere into a file; says where."""
    path = file_of(run, name, steps(run)[-1])
    if name == "config.yaml":
        lines = path.read_text().splitlines()
        at = draws.choice([i for i, line in enumerate(lines) if re.fullmatch(r" *\w+: .+", line)])
        lines[at] = f"{lines[at].partition(': ')[0]}: {json.dumps(value)}"
        path.write_text("\n".join(lines) + "\n")
        edited(run)
        return lines[at]
    if name == "metrics.jsonl":
        lines = path.read_text().splitlines()
        at = draws.randrange(len(lines))
        place = draws.choice(list(places(json.loads(lines[at]))))
        lines[at] = json.dumps(put(json.loads(lines[at]), place, value))
        path.write_text("\n".join(lines) + "\n")
        return str(place)
    place = draws.choice([place for place in places(content_of(path)) if place != ("digest",)])
    for file in dict.fromkeys(file_of(run, name, step) for step in steps(run)):
        document = content_of(file)
        try:
            document = put(document, place, value)
        except (IndexError, KeyError):  # the older checkpoint has no such place
            continue
        sealed = name in SEALED and isinstance(document, dict)
        file.write_bytes(seal(document) if sealed else json.dumps(document).encode())
    if name == "state.json":
        reseal(run)
    if name == "manifest.json":
        repoint(run)
    return str(place)


@pytest.mark.parametrize(
    "number",
    [
        *range(len(FILES)),
        *(pytest.param(i, marks=pytest.mark.slow) for i in range(len(FILES), 100)),
    ],
)
def test_no_value_is_called_a_bug(number, tmp_path, monkeypatch, capsys):
    draws = random.Random(number)
    name, value = FILES[number % len(FILES)], draws.choice(VALUES)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.txt").write_text("a b ham\n")
    for command in COMMANDS:
        run = tmp_path / "runs" / "run"
        shutil.rmtree(run.parent, ignore_errors=True)
        shutil.copytree(small_run(), run)
        where = change(run, name, random.Random(number), value)
        given = {"folder": run.parent, "run": run, "base": small_run(), "rows": "rows.txt"}
        code = main([word.format(**given) for word in command.split()])
        said = "".join(capsys.readouterr())
        what = f"{name} {where} = {value!r:.60}, textmill {command}, exit {code}:\n{said[:3000]}"
        assert "--debug" not in said, what
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", said), what
        assert code in (0, 1, 2), what

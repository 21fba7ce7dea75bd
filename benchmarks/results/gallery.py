"""``make results RESULTS=gallery``: the models of docs/gallery.md, what they cost, their pictures.

The page is the program: its commands are run in order, and each training is measured. A training
whose command stands in the ledger is not made again. Pictures need Chromium.
"""

import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results.found import FailedError
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.measuring import say
from benchmarks.results.table import markdown, write
from tests.docs.pages import Block, Runner, read_blocks, read_commands
from tests.docs.pictures import KEPT, Pictures
from tests.serving.browser import Browser, missing

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
BEGIN = "<!-- made by make results RESULTS=gallery: begin -->"
END = "<!-- made by make results RESULTS=gallery: end -->"
COLUMNS = (
    "task", "experiment", "rows", "training", "memory", "run", "an answer", "quality",
)  # fmt: skip
ANSWERS = 40
"""Answers that are timed."""
SECONDS = 5.0
"""Time for them, about."""
SHOWN = re.compile(r"^<!-- picture made with its model: (?P<words>.+) -->$")
IMAGE = re.compile(r"^!\[.+\]\(pictures/(?P<name>\S+)\)$")


def main(data: Path, out: Path, page: Path, *, names: Sequence[str], measured: bool) -> None:
    """Makes what is missing, of the runs that are named or of all, and writes the table.

    Raises:
        FailedError: A training ended with an error.
    """
    ledger, folder = Ledger(out / "results.jsonl"), out / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "data").exists():
        (folder / "data").symlink_to(data)
    try:
        if measured:
            measure(ledger, folder, page, names)
            take_pictures(folder, page, names)
    finally:
        write(page, "\n".join(markdown(COLUMNS, rows(ledger, page))), begin=BEGIN, end=END)


# -- measuring


def measure(ledger: Ledger, folder: Path, page: Path, names: Sequence[str]) -> None:
    """Makes the trainings that are missing, each after the page's commands before it."""
    runner, before = Runner(folder), list[str]()
    for block, command in commands(page):
        if command is None:
            runner.write(block, block.lines[0].removeprefix("# "), append=False)
        elif run := run_of(command):
            known = ledger.find(run, "gallery", key(command)) and (folder / run).is_dir()
            if not known and (not names or run in names):
                for line in before:
                    subprocess.run(["bash", "-c", line], cwd=folder, env=runner.env, check=False)
                train(ledger, folder, command, runner.env)
            before.clear()
        elif not command.startswith("textmill serve"):
            before.append(command)


def commands(page: Path) -> Iterator[tuple[Block, str | None]]:
    """Each command of the page, and with None each file."""
    for block in read_blocks(page):
        if block.language == "console":
            yield from ((block, command.line) for command in read_commands(block))
        elif block.lines[0].startswith("# "):
            yield block, None


def run_of(command: str) -> str | None:
    """The run that a command trains; None where it trains nothing."""
    words = shlex.split(command)
    trains = words[:2] == ["textmill", "train"]
    return words[words.index("--run-dir") + 1] if trains else None


def key(command: str) -> str:
    return key_of({"command": command.split()})


def train(ledger: Ledger, folder: Path, command: str, env: Mapping[str, str]) -> None:
    run = run_of(command) or ""
    path = folder / run
    say(f"{run}: {command}")
    shutil.rmtree(path, ignore_errors=True)  # of another command, or unfinished: not to be resumed
    log = path.with_suffix(".log")
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        bash = subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=env, stdout=file, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(bash.pid, 0)
        bash.returncode = os.waitstatus_to_exitcode(status)
    if bash.returncode:
        last = log.read_text(encoding="utf-8").strip().splitlines()[-1:]
        raise FailedError(f"{command}: it ended with an error: {''.join(last)}")
    asked = [sys.executable, "-m", "benchmarks.results.gallery", str(path)]
    answered = subprocess.run(asked, env=env, check=True, capture_output=True, text=True)
    files = (file.stat().st_size for file in path.rglob("*") if file.is_file())
    ledger.add(
        {
            "job": run,
            "part": "gallery",
            "key": key(command),
            "wall_s": time.perf_counter() - start,
            "cpu_s": used.ru_utime + used.ru_stime,
            "peak_mb": used.ru_maxrss / 1024,
            "disk_mb": sum(files) / 1e6,
            "answer_ms": float(answered.stdout),
            **facts(path),
        }
    )


def facts(run: Path) -> dict[str, Any]:
    """The rows that a run was trained on, its experiment, and the value it was selected by."""
    from textmill.run_folder.record import Record, mapping

    record = Record.read(run)
    best = mapping(mapping(record.info, "result"), "best")
    value = next(((k, v) for k, v in best.items() if k != "step"), ("loss", float("nan")))
    known = mapping(mapping(record.info, "data_summary"), "train_data")
    return {"experiment": record.info["recipe"], "rows": known.get("rows"), "value": value}


def answer_time(run: Path) -> float:
    """Milliseconds of an answer to one row of the validation data, the median of some."""
    import textmill
    from textmill.serving.examples import examples_of

    predictor = textmill.load(run)
    found = examples_of(run, predictor)
    times: list[float] = []
    predictor(found[:1])
    while len(times) < ANSWERS and sum(times) < SECONDS:
        start = time.perf_counter()
        predictor([found[len(times) % len(found)]])
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


# -- pictures


def take_pictures(folder: Path, page: Path, names: Sequence[str]) -> None:
    """Takes the page's pictures, of the models that are there."""
    if missing():
        say(f"No pictures: they need {' and '.join(missing())}.")
        return
    lines, env = page.read_text(encoding="utf-8").splitlines(), Runner(folder).env
    browser = Browser()
    try:
        pictures = Pictures(browser, KEPT)
        for number, line in enumerate(lines):
            shown, image = SHOWN.match(line), IMAGE.match("".join(lines[number + 1 : number + 2]))
            if shown and image:
                run = shlex.split(shown["words"])[0].partition("/")[0]
                if (folder / run).is_dir() and (not names or run in names):
                    say(f"picture: {image['name']}")
                    place = f"{page.name}:{number + 1}"
                    where = {"folder": folder, "env": env, "place": place}
                    pictures.take(shown["words"], image["name"], **where)
    finally:
        browser.close()


# -- the table


def rows(ledger: Ledger, page: Path) -> Iterator[list[str]]:
    """A row for each training of the page that was measured."""
    title = ""
    headings = {
        number: line.removeprefix("## ")
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if line.startswith("## ")
    }
    for block, command in commands(page):
        run = run_of(command) if command else None
        line = ledger.find(run, "gallery", key(command)) if run and command else None
        if line:
            at = int(block.place.rpartition(":")[2])
            title = headings[max(number for number in headings if number < at)]
            yield row(title, line)


def row(title: str, line: Line) -> list[str]:
    from textmill.metrics.tables import format_value

    anchor = re.sub(r"[^a-z-]", "", title.lower().replace(" ", "-"))
    name, value = line["value"]
    minutes, seconds = divmod(round(line["cpu_s"]), 60)
    return [
        f"[{title}](#{anchor})",
        f"`{line['experiment']}`",
        f"{line['rows']:,}" if line["rows"] else "",
        f"{minutes} min {seconds} s" if minutes else f"{seconds} s",
        f"{line['peak_mb']:,.0f} MB",
        f"{line['disk_mb']:,.1f} MB",
        f"{line['answer_ms']:,.1f} ms",
        f"{name} {format_value(name, value)}",
    ]


if __name__ == "__main__":
    print(answer_time(Path(sys.argv[1])))

"""Runs a page of the documentation as its reader would, from top to bottom, in one empty folder.

What a fenced block does is told by its language and its first line:

- ``console``: each ``$ command`` runs in bash; the lines below it are its whole output, where
  ``...`` stands for anything (alone on a line: any number of lines). No line below it: the output
  is not compared. A command must succeed, unless it ends in ``# exits with N``. Below
  ``<!-- numbers vary -->`` a number stands for any, as what is measured depends on the machine.
- any language with a first line ``# name.ext``: the file's content; ``# name.ext, added:`` appends.
- ``python`` with ``>>>``: a doctest; without: executed. All of a page share one namespace.
- ``text`` and ``{directive}`` blocks are read only.

A comment ``<!-- picture: ... -->`` above an image takes it there: see tests/docs/pictures.py.
A block that cannot run where the tests run has ``<!-- not run: the reason -->`` on the line above.
Any other language is refused, so that no block is forgotten.
"""

import contextlib
import doctest
import io
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.docs.pictures import Pictures

TIMEOUT = 240.0  # seconds for one command; pytest's own limit for a page is the stricter one

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<info>.*)$")
_FILE = re.compile(r"^# (?P<name>[\w./-]+\.\w+)(?P<added>, added:)?$")
_EXIT = re.compile(r"\s+# exits with (\d+)$")
_VARIES = "<!-- numbers vary -->"
_NUMBER = re.compile(r"(?:(?<!\w)[-+\u2212])?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|[█▉▊▋▌▍▎▏]+")
_NOT_RUN = re.compile(r"^ *<!-- not run: \S.* -->$")
_PICTURE = re.compile(r"^ *<!-- picture: (?P<words>\S.*) -->$")
_IMAGE = re.compile(r"^ *!\[[^\]]+\]\([^)\s]*pictures/(?P<name>[\w./-]+)\)")


class PageError(AssertionError):
    """A page promises what does not happen."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its lines and the place of its first line.

    A picture is a block of the language ``picture``: the words of its comment, and its file's name.
    """

    language: str
    lines: list[str]
    place: str
    run: bool = True
    numbers_vary: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Command:
    """One ``$`` line, the exit code it must have, and the output it must print."""

    line: str
    code: int
    expected: list[str]


def read_blocks(page: Path) -> list[Block]:
    """All fenced blocks and pictures of a page, in order."""
    blocks, lines, i = [], page.read_text(encoding="utf-8").splitlines(), 0
    while i < len(lines):
        if picture := _PICTURE.match(lines[i]):
            image = _IMAGE.match(lines[i + 1]) if i + 1 < len(lines) else None
            if image is None:
                raise PageError(f"{page.name}:{i + 1}: below this is no image of pictures/.")
            content = [picture["words"], image["name"]]
            blocks.append(Block("picture", content, f"{page.name}:{i + 1}"))
        fence = _FENCE.match(lines[i])
        if fence is None:
            i += 1
            continue
        close, indent = fence["indent"] + fence["ticks"], len(fence["indent"])
        try:
            end = next(j for j in range(i + 1, len(lines)) if lines[j].rstrip() == close)
        except StopIteration:
            raise PageError(f"{page.name}:{i + 1}: this block is never closed.") from None
        above = lines[i - 1] if i else ""
        run, varies = not _NOT_RUN.match(above), above.strip() == _VARIES
        content = [line[indent:] for line in lines[i + 1 : end]]
        blocks.append(Block(fence["info"].strip(), content, f"{page.name}:{i + 2}", run, varies))
        i = end + 1
    return blocks


def read_commands(block: Block) -> list[Command]:
    """The commands of a console block, each with the output written below it."""
    commands: list[Command] = []
    continued = False
    for line in block.lines:
        if continued:
            commands[-1] = Command(f"{commands[-1].line}\n{line}", commands[-1].code, [])
        elif line.startswith("$ "):
            exits = _EXIT.search(line)
            code = int(exits[1]) if exits else 0
            commands.append(Command(_EXIT.sub("", line[2:]), code, []))
        elif commands:
            commands[-1].expected.append(line.rstrip())
        else:
            raise PageError(f"{block.place}: a console block begins with a line '$ command'.")
        continued = (continued or line.startswith("$ ")) and line.endswith("\\")
    return commands


def matches(expected: list[str], found: list[str], *, numbers_vary: bool = False) -> bool:
    """Whether the whole output is as expected, ``...`` standing for anything.

    If numbers vary, so does the width of columns.

    >>> matches(["loss ...", "...", "done"], ["loss 2.1", "a", "b", "done"])
    True
    >>> matches(["done"], ["loss 2.1", "done"])
    False
    >>> matches(["a   12.5 %  +3"], ["a  7 %  -0.25"], numbers_vary=True)
    True
    """
    if numbers_vary:
        expected, found = ([_any_number(line) for line in lines] for lines in (expected, found))
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(
                "[^\n]*".join(re.escape(piece) for piece in line.split("...")) + r"[ \t]*\n"
            )
    return re.fullmatch("".join(parts), "".join(f"{line.rstrip()}\n" for line in found)) is not None


def _any_number(line: str) -> str:
    return re.sub(r"\s+", " ", _NUMBER.sub("0", line))


class Runner:
    """Runs the blocks of one page in ``folder``; the PATH begins with ``programs``.

    Without ``pictures`` none is taken.
    """

    def __init__(
        self, folder: Path, *, programs: Path | None = None, pictures: "Pictures | None" = None
    ) -> None:
        self.folder = folder
        self.pictures = pictures
        self.namespace: dict[str, object] = {"__name__": "__page__"}
        folders = [programs, Path(sys.executable).parent, os.environ.get("PATH")]
        path = os.pathsep.join(str(name) for name in folders if name)
        # A width and no colours, so that the output does not depend on where the tests run; one
        # thread, as several wait for each other on a busy machine and a page's models are tiny.
        fixed = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "OMP_NUM_THREADS": "1"}
        # What is printed and what is logged come in the order of a terminal.
        self.env = {**os.environ, **fixed, "PYTHONUNBUFFERED": "1", "PATH": path}

    def run(self, page: Path) -> int:
        """Runs a page and returns how many blocks did something."""
        return sum(self.run_block(block) for block in read_blocks(page))

    def run_block(self, block: Block) -> bool:
        if not block.run or block.language == "text" or block.language.startswith("{"):
            return False
        if block.language == "picture":
            if self.pictures:
                words, name = block.lines
                place = {"folder": self.folder, "env": self.env, "place": block.place}
                self.pictures.take(words, name, **place)
            return self.pictures is not None
        first = _FILE.match(block.lines[0]) if block.lines else None
        if first:
            self.write(block, first["name"], append=bool(first["added"]))
        elif block.language == "console":
            for command in read_commands(block):
                self.run_command(command, block.place, numbers_vary=block.numbers_vary)
        elif block.language == "python":
            self.run_python(block)
        else:
            raise PageError(
                f"{block.place}: a block of language '{block.language}' is neither run nor marked. "
                "Begin it with '# file.name', make it console, python or text, or put "
                "'<!-- not run: reason -->' above it."
            )
        return True

    def write(self, block: Block, name: str, *, append: bool) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "\n".join(block.lines[1:]).strip("\n") + "\n"
        if append and not path.exists():
            raise PageError(f"{block.place}: nothing to add to, {name} was not written before.")
        path.write_text(f"{path.read_text()}\n\n{content}" if append else content, encoding="utf-8")

    def run_command(self, command: Command, place: str, *, numbers_vary: bool = False) -> None:
        with subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command.line],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as bash:
            try:
                output, _ = bash.communicate(timeout=TIMEOUT)
            except BaseException:  # bash alone would leave what it started
                os.killpg(bash.pid, signal.SIGKILL)
                raise
        printed = f"It printed:\n{output or '(nothing)'}"
        said = f"{place}: $ {command.line}\n"
        if bash.returncode != command.code:
            raise PageError(
                f"{said}exits with {bash.returncode}, not with {command.code}. {printed}"
            )
        found = output.splitlines()
        if command.expected and not matches(command.expected, found, numbers_vary=numbers_vary):
            expected = "\n".join(command.expected)
            raise PageError(f"{said}does not print what the page says:\n{expected}\n{printed}")

    def run_python(self, block: Block) -> None:
        import pytest

        with contextlib.chdir(self.folder), pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(self.folder)  # as python has it that is started there
            if ">>> " not in block.text:
                exec(compile(block.text, block.place, "exec"), self.namespace)
                return
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            test = doctest.DocTestParser().get_doctest(block.text, {}, block.place, block.place, 0)
            test.globs = self.namespace
            report = io.StringIO()
            runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
            if runner.run(test, out=report.write, clear_globs=False).failed:
                raise PageError(f"{block.place}:\n{report.getvalue()}")

"""Takes the pictures that pages of the documentation show, as a reader's browser would show them.

A picture is made where a page has, above an image, a comment with words as in a shell::

    <!-- picture: topics/report.html 390 dark of "Which labels are confused" -->
    ![The matrix](pictures/tutorial-matrix.png)

The first word is a page that the blocks above have written; or a run's folder, which is served; or
an image (``figures/loss.svg``), which is taken as it is. Then, in any order:

- ``WIDTH`` or ``WIDTHxHEIGHT`` of the window (1280x800; 844 high if narrow), and ``dark``;
- ``ask TEXT`` types a text into the served page, once for each of its columns, and asks;
  ``drop FILE`` gives it a table, or the texts to search; ``press NAME`` presses a button;
- ``of HEADING`` shows the section with this heading alone, and all of it; ``shows TEXT`` checks
  that the page has this text.

``make pictures`` takes all pictures anew and keeps them in docs/pictures (``PICTURES=tutorial``
those of a page); tests take them into a folder of their own.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from tests.docs.pages import PageError, Runner, read_blocks
from tests.serving.browser import Browser

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "pictures"
COLOURS = 128
"""Of the palette of a picture: enough for smooth letters, a third of the bytes of all colours."""
EDGE = 12
"""Pixels around a section that is shown alone."""
BLANK = 0.995
"""Share of one colour from which on a picture shows nothing."""

PRESS = """
    [...document.querySelectorAll("button")].find((one) => one.innerText === arguments[0]).click();
"""
PLACE = """
    const titled = (part) => [...part.querySelectorAll("h2, h3, summary")]
        .some((title) => title.innerText.startsWith(arguments[0]));
    const part = [...document.querySelectorAll("section, figure")].filter(titled).at(-1);
    const box = part.getBoundingClientRect();
    return [box.x + scrollX, box.y + scrollY, box.width, box.height];
"""
"""Of the innermost part of the page that has this heading: left, top, width and height."""


@dataclass(frozen=True)
class Wanted:
    """What a comment asks for."""

    place: str
    width: int = 1280
    height: int = 800
    scheme: str = "light"
    asked: tuple[str, ...] = ()
    dropped: str | None = None
    pressed: tuple[str, ...] = ()
    section: str | None = None
    shown: tuple[str, ...] = field(default=())


def read_wanted(words: str, place: str) -> Wanted:
    """The comment's words; ``place`` is where they stand."""
    first, *rest = shlex.split(words)
    wanted, parts = Wanted(first), iter(rest)
    try:
        for word in parts:
            if size := re.fullmatch(r"(\d+)(?:x(\d+))?", word):
                width = int(size[1])
                height = int(size[2] or (800 if width > 600 else 844))
                wanted = replace(wanted, width=width, height=height)
            elif word == "dark":
                wanted = replace(wanted, scheme="dark")
            elif word == "ask":
                wanted = replace(wanted, asked=(*wanted.asked, next(parts)))
            elif word == "press":
                wanted = replace(wanted, pressed=(*wanted.pressed, next(parts)))
            elif word == "shows":
                wanted = replace(wanted, shown=(*wanted.shown, next(parts)))
            elif word == "drop":
                wanted = replace(wanted, dropped=next(parts))
            elif word == "of":
                wanted = replace(wanted, section=next(parts))
            else:
                raise PageError(f"{place}: a picture has no setting '{word}'.")
    except StopIteration:
        raise PageError(f"{place}: '{rest[-1]}' of a picture lacks its text.") from None
    return wanted


class Pictures:
    """Takes pictures with one browser and writes them into ``target``."""

    def __init__(self, browser: Browser, target: Path) -> None:
        self.browser = browser
        self.target = target
        browser.develop("Emulation.setScrollbarsHidden", hidden=True)

    def take(
        self, words: str, name: str, *, folder: Path, env: Mapping[str, str], place: str
    ) -> None:
        """Takes one, of what is in ``folder``."""
        wanted, path = read_wanted(words, place), self.target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        source = folder / wanted.place
        if not source.exists():
            raise PageError(f"{place}: there is no {wanted.place} to take a picture of.")
        if source.suffix in {".png", ".svg"}:
            shutil.copy(source, path)
            return
        if source.is_dir():
            with served(wanted.place, folder, env) as url:
                self._show(wanted, url)
                self._use(wanted, folder)
                picture = self._shoot(wanted, place)
        else:
            self._show(wanted, source.resolve().as_uri())
            picture = self._shoot(wanted, place)
        write_png(picture, path, place)

    def _show(self, wanted: Wanted, url: str) -> None:
        self.browser.shows(wanted.width, wanted.height, wanted.scheme)
        self.browser.develop("Emulation.setTouchEmulationEnabled", enabled=wanted.width < 600)
        self.browser.go(url)

    def _use(self, wanted: Wanted, folder: Path) -> None:
        """Asks the served page, as a person does."""
        browser = self.browser
        browser.until(lambda: browser.text("#column-0") is not None)
        if wanted.dropped:
            field = "#texts-file" if browser.text("#texts-file") is not None else "#table"
            browser.type(field, str(folder / wanted.dropped))
        if wanted.asked:
            browser.ask(*wanted.asked)
        browser.until(lambda: browser.text("#send[aria-busy]") is None)
        for name in wanted.pressed:
            browser.run(PRESS, name)
            browser.until(lambda name=name: name not in browser.texts("button"))
        browser.run("document.activeElement?.blur(); scrollTo(0, 0)")

    def _shoot(self, wanted: Wanted, place: str) -> bytes:
        """The picture as PNG; the page must fit its window and show what it is to show."""
        browser = self.browser
        text = " ".join(browser.text("body").split())
        for shown in (*wanted.shown, *([wanted.section] if wanted.section else [])):
            if shown not in text:
                raise PageError(f"{place}: the page does not show '{shown}', but:\n{text[:2000]}")
        wide = browser.run("return document.documentElement.scrollWidth")
        if wide > wanted.width:
            raise PageError(f"{place}: the page is {wide} pixels wide, its window {wanted.width}.")
        if problems := browser.log():
            raise PageError(f"{place}: the browser complains: {problems}")
        if wanted.section is None:
            return browser.picture()
        x, y, width, height = browser.run(PLACE, wanted.section)
        left, right = max(0, x - EDGE), min(wanted.width, x + width + EDGE)
        return browser.picture(left, y - EDGE, right - left, height + 2 * EDGE)


@contextmanager
def served(run: str, folder: Path, env: Mapping[str, str]) -> Iterator[str]:
    """The address of a server of a run, as long as the block runs."""
    command = ["textmill", "serve", run, "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            said = ""
            for line in server.stdout:
                said += line
                if " at http://" in line:
                    break
            else:
                raise PageError(f"textmill serve {run} ends:\n{said}")
            yield line.rsplit(" ", 1)[1].strip()
        finally:
            server.terminate()
            server.communicate(timeout=60)


def write_png(picture: bytes, path: Path, place: str) -> None:
    """Writes a picture with a palette, unless it is blank."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    small = image.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    most = Counter(small.tobytes()).most_common(1)[0][1] / (small.width * small.height)
    if most > BLANK:
        raise PageError(f"{place}: the picture is blank: one colour has {100 * most:.1f} % of it.")
    small.save(path, optimize=True)


def main(names: list[str]) -> None:
    """Takes the pictures of all pages, or of those that are named, into docs/pictures."""
    from tests.warm_textmill import warm_programs

    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    browser = Browser()
    try:
        for page in sorted(pages):
            blocks = [block for block in read_blocks(page) if block.language == "picture"]
            if not blocks or (names and page.stem not in names):
                continue
            print(f"{page.relative_to(ROOT)}: {len(blocks)}", flush=True)
            with TemporaryDirectory() as folder:
                pictures = Pictures(browser, KEPT)
                Runner(Path(folder), programs=warm_programs(), pictures=pictures).run(page)
    finally:
        browser.close()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1:])

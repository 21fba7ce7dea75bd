"""Every page of the documentation does what it says."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import Runner, read_blocks
from tests.docs.pictures import KEPT, Pictures
from tests.serving.browser import Browser, missing
from tests.warm_textmill import warm_programs

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SLOW = {"pretrained.md"}  # 26 s; tests/runs/test_pretrained*.py try what it types on tiny models
MOST_BYTES, MOST_BYTES_OF_ALL = 120_000, 3_000_000  # of pictures
COLD = "cli.md"  # its commands import all they need, 2 s each


@pytest.mark.timeout(900)  # the tutorial starts textmill twenty times
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.slow] if page.name in SLOW else [],
        )
        for page in PAGES
    ],
)
def test_the_page_does_what_it_says(page: Path, tmp_path: Path, browser: Browser | None) -> None:
    folder, taken = tmp_path / "folder", tmp_path / "pictures"
    folder.mkdir()
    programs = None if page.name == COLD else warm_programs()
    pictures = Pictures(browser, taken) if browser else None
    Runner(folder, programs=programs, pictures=pictures).run(page)
    wanted = {block.lines[1] for block in read_blocks(page) if block.language == "picture"}
    if wanted and browser is None:
        pytest.skip(f"the page was run; its pictures need {' and '.join(missing())}")
    assert wanted == {path.relative_to(taken).as_posix() for path in taken.rglob("*.*")}


def test_the_kept_pictures_are_those_of_the_pages_and_small() -> None:
    shown = re.findall(
        r"!\[[^\]]+\]\(\S*?pictures/([^)\s]+)\)", "".join(p.read_text() for p in PAGES)
    )
    kept = {path.relative_to(KEPT).as_posix(): path.stat().st_size for path in KEPT.rglob("*.*")}
    assert set(shown) == set(kept), "make pictures takes those that are missing"
    assert {name: size for name, size in kept.items() if size > MOST_BYTES} == {}
    assert sum(kept.values()) <= MOST_BYTES_OF_ALL


def test_pages_were_found_and_something_in_them_runs() -> None:
    names = {page.name for page in PAGES}
    assert {"README.md", "index.md", "coming-from-fairseq2.md", COLD} <= names
    assert sum(block.run for page in PAGES for block in read_blocks(page)) > 10

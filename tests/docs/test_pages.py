"""Every page of the documentation does what it says."""

from pathlib import Path

import pytest

from tests.docs.pages import Runner, read_blocks
from tests.warm_textmill import warm_programs

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SLOW = {"pretrained.md"}  # 26 s; tests/runs/test_pretrained*.py try what it types on tiny models
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
def test_the_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    Runner(tmp_path, programs=None if page.name == COLD else warm_programs()).run(page)


def test_pages_were_found_and_something_in_them_runs() -> None:
    names = {page.name for page in PAGES}
    assert {"README.md", "index.md", "coming-from-fairseq2.md", COLD} <= names
    assert sum(block.run for page in PAGES for block in read_blocks(page)) > 10

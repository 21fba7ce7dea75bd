"""Every page of the documentation does what it says."""

from pathlib import Path

import pytest

from tests.docs.pages import Runner, read_blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.timeout(900)  # the tutorial starts weft twenty times
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    Runner(tmp_path).run(page)


def test_pages_were_found_and_something_in_them_runs() -> None:
    names = {page.name for page in PAGES}
    assert {"README.md", "index.md", "coming-from-fairseq2.md"} <= names
    assert sum(block.run for page in PAGES for block in read_blocks(page)) > 10

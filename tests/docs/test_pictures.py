"""What takes pictures of pages: one that does not show what it is to show must fail."""

from pathlib import Path

import pytest
from PIL import Image

from tests.docs.pages import PageError, Runner, read_blocks
from tests.docs.pictures import Pictures, Wanted, read_wanted
from tests.serving.browser import missing

GOOD = "<body><section><h2>Results</h2><p>97 %</p></section><p style='height: 2000px'>end</p>"


@pytest.fixture
def take(browser, tmp_path: Path):
    """Runs a page that writes ``content`` and has a picture of it."""
    if browser is None:
        pytest.skip(f"not installed: {', '.join(missing())}")

    def run_page(content: str, words: str) -> tuple[int, int]:
        page = tmp_path / "page.md"
        view = "<meta name=viewport content='width=device-width'>"
        html = f"```html\n# a.html\n{view}{content}\n```"
        page.write_text(f"{html}\n<!-- picture: a.html {words} -->\n![A](pictures/a.png)\n")
        (tmp_path / "folder").mkdir(exist_ok=True)
        Runner(tmp_path / "folder", pictures=Pictures(browser, tmp_path)).run(page)
        with Image.open(tmp_path / "a.png") as picture:
            return picture.size

    return run_page


def test_a_picture_is_as_wide_as_its_window_or_shows_a_section(take) -> None:
    assert take(GOOD, "390x200 shows '97 %'") == (390, 200)
    assert take(GOOD, "640x200 dark") == (640, 200)
    width, height = take(GOOD, "390 of Results")
    assert width <= 390
    assert 50 < height < 150


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (GOOD, "shows '98 %'", "the page does not show '98 %', but:\nResults 97 % end"),
        (GOOD, "of Answers", "the page does not show 'Answers'"),
        ("<p style='width: 500px'>wide</p>", "390", "the page is 5.. pixels wide, its window 390"),
        ("<p></p>", "", "the picture is blank: one colour has 100.0 % of it"),
        (f"{GOOD}<script>console.error('no')</script>", "", "the browser complains: .*no"),
        (GOOD, "sepia", "a picture has no setting 'sepia'"),
        (GOOD, "shows", "'shows' of a picture lacks its text"),
    ],
)
def test_a_picture_of_another_thing_fails(take, content, words, message) -> None:
    with pytest.raises(PageError, match=rf"^page\.md:5: {message}"):
        take(content, words)


def test_the_words_of_a_picture() -> None:
    words = 'topics 390x700 dark ask "one two" ask three press "Why?" drop new.csv shows a shows b'
    assert read_wanted(words, "here") == Wanted(
        "topics", 390, 700, "dark", ("one two", "three"), "new.csv", ("Why?",), None, ("a", "b")
    )


def test_a_picture_without_its_image_or_its_page_is_refused(tmp_path: Path, browser) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- picture: a.html -->\n\n![A](pictures/a.png)\n")
    with pytest.raises(PageError, match=r"^page\.md:1: below this is no image of pictures/"):
        read_blocks(page)
    page.write_text("<!-- picture: a.html -->\n![A](pictures/a.png)\n")
    assert Runner(tmp_path).run(page) == 0
    if browser:
        with pytest.raises(PageError, match=r"^page\.md:1: there is no a\.html to take a picture"):
            Runner(tmp_path, pictures=Pictures(browser, tmp_path)).run(page)

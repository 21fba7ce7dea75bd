"""The page of a pipeline, in a browser: a text or a file in, results in their texts."""

import json

import pytest

from tests.serving.browser import missing
from tests.serving.served import reversing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")

HOSTILE = "<img src=x onerror=document.title=1> met"


@pytest.fixture(scope="module")
def served():
    with reversing(pipeline=True, limits={"file": 5000}) as started:
        yield started


@pytest.fixture
def opened(browser, served):
    browser.shows(1280, 900, "light")
    browser.go(served.url)
    browser.until(lambda: browser.text("#file") is not None)
    yield browser
    assert browser.log() == []


def give(browser, content, name="paper.pdf"):
    browser.give("file", content, name)
    browser.until(lambda: browser.text("#send[aria-busy]") is None)


def test_a_text_is_shown_with_its_fields(opened):
    opened.ask("Knuth wrote it")
    assert opened.text("#answer .head") == "1 result\nSave as JSON"
    assert opened.text("#answer mark") == "Knuthkind 1"
    assert opened.text("#answer h3") == "page 1"
    opened.run("document.querySelector('#answer .results details').open = true")
    assert opened.text("#answer dl") == "kind 1\nKnuth"


def test_each_result_of_a_file_is_shown_in_order(opened):
    give(opened, "".join(f"w{number} and more\n" for number in range(30)) + "no\n")
    assert opened.text("#answer .head").startswith("31 results")
    marks = opened.texts("#answer mark")
    assert [mark.partition("kind")[0] for mark in marks] == [f"w{n}" for n in range(30)]
    assert opened.texts("#answer .problem") == ["no."]
    classes = opened.run("return [...document.querySelectorAll('mark')].map((m) => m.className)")
    assert len(set(classes)) == 12


def tell(browser, **row):
    """Asks for a result of another pipeline."""
    browser.ask(f"told {json.dumps(row)}")


def test_a_summary_is_shown_with_its_sentences_in_the_text(opened):
    text = "It rains. 😀 It pours. The end."
    spans = [{"kind": "sentence", "text": "It pours.", "start": 12, "end": 21, "page": 3}]
    tell(opened, text=text, summary="It pours.", spans=spans)
    assert opened.text("#answer .first") == "It pours."
    assert opened.text("#answer .text") == "It rains. 😀 It pours.p. 3 The end."
    tell(opened, text=text, summary="Rain.", spans=[])
    assert opened.text("#answer .first") == "Rain."
    assert opened.run("return document.querySelector('#answer .results details').open") is False


def test_mentions_are_listed_with_their_pages_and_in_the_text(opened):
    places = ((3, 7, 1), (9, 15, 2), (17, 21, 2), (23, 27, 2))
    text = "On Cora, SNLI\u00a02, Cora; Cora."
    spans = [
        {"kind": "dataset", "text": text[a:b], "start": a, "end": b, "page": p}
        for a, b, p in places
    ]
    tell(opened, text=text, names={"Cora": 3, "SNLI 2": 1}, spans=spans)
    assert opened.texts("#answer .bars li") == ["Cora\n3 times, p. 1, 2", "SNLI 2\np. 2"]
    assert opened.texts("#answer mark")[0] == "Corap. 1"
    assert len(opened.texts("#answer mark")) == 4
    assert opened.text("#answer h3") is None
    tell(opened, text="Nothing here.", names={}, spans=[])
    assert opened.text("#answer .results .hint") == "Nothing is marked in it."


def test_what_is_typed_again_is_asked_in_place_of_the_file(opened):
    give(opened, "of a file")
    assert opened.text("#answer mark") == "ofkind 1"
    opened.type("#column-0", "typed text")
    opened.ask("typed text")
    assert opened.text("#answer mark") == "typedkind 1"


def test_the_results_are_saved_as_json_lines(opened, served, tmp_path):
    opened.develop("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    give(opened, "é one\ntwo", "some.paper.pdf")
    opened.run("document.querySelector('#answer .save').click()")
    saved = tmp_path / "some.paper.jsonl"
    opened.until(saved.is_file)
    lines = opened.until(lambda: saved.read_text(encoding="utf-8").splitlines())
    assert [json.loads(line)["text"] for line in lines] == ["Ã© one", "two"]  # as it decodes them


def test_files_that_cannot_be_read_say_why(opened):
    give(opened, "damaged")
    assert opened.text("#problem") == "the file: page 1: it is damaged (body)"
    assert opened.text("#answer") == ""
    assert "status of 422" in opened.log()[0]
    give(opened, "a" * 5001, "long.pdf")
    assert opened.text("#problem") == "long.pdf has 5,001 bytes; at most 5,000 are read."
    give(opened, "right again")
    assert opened.text("#problem") == ""


def test_whatever_a_file_says_stays_text(opened):
    title = opened.run("return document.title")
    give(opened, HOSTILE + "\n" + HOSTILE, f"{HOSTILE}.pdf".replace("/", ""))
    assert "<img" in opened.run("return document.getElementById('answer').textContent")
    assert opened.run("return document.querySelectorAll('main img, main script').length") == 0
    assert opened.run("return document.title") == title


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1280, "dark")])
def test_it_fits_every_screen(opened, width, scheme):
    opened.shows(width, 800, scheme)
    give(opened, "a" * 300 + "\n" + "b" * 300 + " c", "n" * 200 + ".pdf")
    assert opened.run("return document.documentElement.scrollWidth") <= width
    assert opened.run("return document.getElementById('file').offsetHeight") >= 44

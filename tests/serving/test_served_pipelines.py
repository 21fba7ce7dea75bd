"""Each pipeline as it is served: a PDF is sent, and its results are those of Python."""

import httpx
import pytest

from tests.pipelines import small_models
from tests.serving.browser import Browser, missing
from tests.serving.served import started
from tests.warm_textmill import warm_programs
from textmill.pipelines.registries import pipelines

MODELS = {
    "dataset-mentions": small_models.mentions_run,
    "reference-parser": small_models.reference_run,
    "summarizer": small_models.extracts_run,
}
FILE = {"Content-Type": "application/octet-stream"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    pytest.importorskip("reportlab")
    from tests.pipelines.documents.layouts import CONFERENCE
    from tests.pipelines.documents.paper_pdf import paper as made

    path = tmp_path_factory.mktemp("paper") / "paper.pdf"
    path.write_bytes(made(CONFERENCE, 1).content)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_pdf_is_answered_as_in_python(name, paper):
    model = MODELS[name]()
    words = [warm_programs() / "textmill", "serve", str(model), "--pipeline", name, "--port", "0"]
    with started(words) as served:
        content = paper.read_bytes()
        found = httpx.post(f"{served.url}predict", content=content, headers=FILE, timeout=60)
        wanted = [result.row() for result in pipelines.get(name)(model).predict(paper)]
        assert len(wanted) == len(found.json()["results"]) > 0
        assert found.json()["results"][0]["text"] == wanted[0]["text"]
        assert {"page"} <= wanted[0].keys() <= found.json()["results"][0].keys()
        bad = httpx.post(f"{served.url}predict", content=b"%PDF-1.4 no", headers=FILE, timeout=60)
        assert (bad.status_code, bad.json()["where"]) == (422, "body")
        assert bad.json()["error"].startswith("the file: ")
        assert served.get("ready").status_code == 200
        if not missing():
            assert shown_on_the_page(served, paper) == len(wanted)


def shown_on_the_page(served, paper):
    """How many results are shown of a file that a person chooses."""
    browser = Browser()
    try:
        browser.go(served.url)
        browser.until(lambda: browser.text("#file") is not None)
        browser.choose("#file", paper)
        browser.until(lambda: browser.texts("#answer .results > li"))
        assert browser.text("#problem") == ""
        assert browser.log() == []
        return len(browser.texts("#answer .results > li"))
    finally:
        browser.close()

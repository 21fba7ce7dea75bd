"""Each pipeline as it is served: a PDF is sent, and its results are those of Python."""

import pytest

from tests.pipelines import small_models
from tests.serving.browser import missing
from tests.serving.served import started
from tests.warm_textmill import warm_programs
from textmill.pipelines.registries import pipelines

MODELS = {
    "dataset-mentions": small_models.mentions_run,
    "reference-parser": small_models.reference_run,
    "summarizer": small_models.extracts_run,
}
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
def test_a_pdf_is_answered_as_in_python(name, paper, request):
    model = MODELS[name]()
    words = [warm_programs() / "textmill", "serve", str(model), "--pipeline", name, "--port", "0"]
    with started(words) as served:
        found = served.send(paper.read_bytes())
        wanted = [result.row() for result in pipelines.get(name)(model).predict(paper)]
        assert len(wanted) == len(found.json()["results"]) > 0
        assert found.json()["results"][0]["text"] == wanted[0]["text"]
        assert {"page"} <= wanted[0].keys() <= found.json()["results"][0].keys()
        bad = served.send(b"%PDF-1.4 no")
        assert (bad.status_code, bad.json()["where"]) == (422, "body")
        assert bad.json()["error"].startswith("the file: ")
        assert served.get("ready").status_code == 200
        if not missing():
            browser = request.getfixturevalue("browser")
            browser.go(served.url)
            browser.until(lambda: browser.text("#file") is not None)
            browser.type("#file", str(paper))
            shown = browser.until(lambda: browser.texts("#answer .results > li"))
            assert len(shown) == len(wanted)
            assert browser.text("#problem") == ""
            assert browser.log() == []

"""The page, in a browser: a person types, submits and reads, with a mouse or without."""

import json
import subprocess

import httpx
import pytest

import textmill
from tests.recipes.local_data import write_data
from tests.serving.browser import missing
from tests.serving.served import reversing, started
from tests.warm_textmill import warm_programs

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")

CONTROL, ENTER, TAB = "\ue009", "\ue007", "\ue004"
HOSTILE = "<img src=x onerror=document.title=1><script>document.title=2</script>"
TOKEN = "a-token-of-the-tests"
SAID = [("billing", "was charged twice for"), ("product", "broke")]


@pytest.fixture(scope="module")
def told():
    """A server that answers what the question's column 'answer' says."""
    with reversing(columns=["text", "answer"]) as served:
        yield served


@pytest.fixture
def opened(browser, told):
    browser.shows(1280, 900, "light")
    browser.go(told.url)
    browser.until(lambda: browser.text("#column-1") is not None)
    yield browser
    assert browser.log() == []


def answer(browser, text, row):
    browser.ask(text, json.dumps(row))


def test_every_column_has_a_field_with_its_label(opened):
    assert opened.texts("#fields label") == ["text", "answer"]
    assert opened.run("return document.activeElement.id") == "column-0"
    assert opened.text("h1") == "reversed"
    assert opened.text("#answer") == "Nothing was asked yet."


def test_it_is_used_without_a_mouse(opened):
    opened.type("#column-0", "some text")
    opened.press(TAB)
    assert opened.run("return document.activeElement.id") == "column-1"
    opened.type("#column-1", '{"prediction": "by key"}')
    opened.press(CONTROL, ENTER)
    opened.until(lambda: opened.text("#answer .first") == "by key")
    opened.press(TAB)
    assert opened.run("return document.activeElement.id") == "send"
    opened.press(TAB)
    assert opened.run("return document.activeElement.tagName") == "SUMMARY"


def test_labels_have_bars_the_best_first(opened):
    scores = {f"label {n}": 0.05 for n in range(10)} | {"spam": 0.5}
    answer(opened, "x", {"prediction": "spam", "score": 0.5, "scores": scores})
    assert opened.text("#answer .first") == "spam"
    assert opened.text("#answer .bars li") == "spam\n50.0 %"
    width = "return document.querySelector('#answer .bars .bar').style.width"
    assert opened.run(width) == "50%"
    assert opened.text("#answer summary") == "3 more"


def test_spans_are_marked_where_they_are(opened):
    spans = [{"text": "Bob", "start": 7, "end": 10, "kind": "per", "score": 0.9}]
    row = {"prediction": "O O B-per", "score": 0.9, "scores": [1, 1, 0.9], "spans": spans}
    answer(opened, "😀 met, Bob", row)
    assert opened.text("#answer .text") == "😀 met, Bobper"
    assert opened.text("#answer mark") == "Bobper"
    opened.run("document.querySelector('#answer details').open = true")
    assert opened.texts("#answer .words li") == ["😀\nO", "met,\nO", "Bob\nB-per"]


def test_an_intent_has_its_slots_in_the_text(opened):
    slot = {"text": "at 8", "start": 8, "end": 12, "score": 0.9, "label": "time"}
    row = {"prediction": "[wake ]", "score": 0.75, "predicted_intent": "wake"}
    answer(opened, "wake me at 8", {**row, "predicted_slots": [slot]})
    assert opened.text("#answer .first") == "wake"
    assert opened.text("#answer .score") == "75.0 %"
    assert opened.text("#answer mark") == "at 8time"
    # Of a conversation, whose turns are lines, they are in the last one.
    answer(opened, "hello there, who?\nwake me at 8", {**row, "predicted_slots": [slot]})
    assert opened.text("#answer .text") == "wake me at 8time"


def test_labels_of_texts_stand_at_their_lines(opened):
    row = {"prediction": "hi ask", "score": 0.9, "scores": [1, 0.9]}
    answer(opened, "good morning\nis it open?\n", row)
    assert opened.texts("#answer .words li") == ["good morning\nhi", "is it open?\nask"]


def test_an_answer_is_marked_in_its_context(opened):
    row = {"prediction": "Rollo", "score": 0.5, "start": 4, "end": 9}
    answer(opened, "And Rollo led", row)
    assert opened.text("#answer .first") == "Rollo"
    assert opened.text("#answer mark") == "Rollo"
    none = {"prediction": "", "score": 0.6, "start": None, "end": None, "no_answer": 0.6}
    answer(opened, "And Rollo led", none)
    assert opened.text("#answer .first") == "It has no answer."


def test_a_parse_is_a_tree_and_what_is_none_a_text(opened):
    answer(opened, "x", {"prediction": "[IN:A wake [SL:B at 8 ] ]", "score": -0.1})
    assert opened.text("#answer .tree") == "IN:A\nwake\nSL:B\nat 8"
    for text in ("[IN:A wake", "[IN:A ] ]", "[ ]", "] ["):
        answer(opened, "x", {"prediction": text, "score": -0.1})
        assert opened.text("#answer .tree") is None
        assert opened.text("#answer .first") == text


def test_a_translation_has_its_alternatives_and_masks_their_tokens(opened):
    row = {"prediction": "Va !", "score": -0.1}
    answer(opened, "x", {**row, "alternatives": [{"prediction": "Allez !", "score": -0.5}]})
    assert opened.text("#answer .first") == "Va !"
    assert opened.text("#answer ol") == "Allez ! -0.500"
    fills = [{"text": "at", "score": 0.25}, {"text": "in", "score": 0.125}]
    answer(opened, "x", {"prediction": "wake me at 8", "score": 0.2, "masks": [fills]})
    assert opened.texts("#answer .bars li") == ["at\n25.0 %", "in\n12.5 %"]


def test_whatever_it_shows_stays_text(opened):
    title = opened.run("return document.title")
    span = {"text": "x", "start": 0, "end": 9, "kind": HOSTILE, "score": 1}
    tagged = {"prediction": "O", "score": 1, "scores": [1], "spans": [span]}
    shown = [{"prediction": HOSTILE}, {"prediction": HOSTILE, "score": 1, "scores": {HOSTILE: 1}}]
    for row in [tagged, *shown, {HOSTILE: HOSTILE}]:
        answer(opened, HOSTILE, row)
        assert HOSTILE in opened.run("return document.getElementById('answer').textContent")
        assert opened.run("return document.querySelectorAll('main img, main script').length") == 0
    assert opened.run("return document.title") == title


def test_an_error_is_said_and_then_gone(opened):
    opened.ask("x", "no JSON")
    assert opened.text("#problem") == "column 'answer': no JSON. (row 1)"
    assert opened.text("#answer") == ""
    answer(opened, "x", {"prediction": "right"})
    assert opened.text("#problem") == ""
    assert "status of 422" in opened.log()[0]


@pytest.mark.parametrize(
    ("width", "height", "scheme"),
    [(390, 844, "light"), (1280, 900, "light"), (320, 568, "dark"), (1280, 900, "dark")],
)
def test_it_fits_every_screen_and_can_be_read(opened, width, height, scheme):
    opened.shows(width, height, scheme)
    row = {"prediction": "a" * 300, "score": 1, "scores": {"b" * 300: 0.5, "c": 0.5}}
    answer(opened, "d" * 400, row)
    assert opened.run("return document.documentElement.scrollWidth") <= width
    small = "return Math.min(...[...document.querySelectorAll('button')].map(b => b.offsetHeight))"
    assert opened.run(small) >= 44
    contrast = """
        const light = (rgb) => { const [r, g, b] = rgb.match(/\\d+/g).map((v) => {
            v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const below = (n) => { while (n) { const c = getComputedStyle(n).backgroundColor;
            if (!c.endsWith(", 0)")) return c; n = n.parentElement; } return "rgb(255,255,255)"; };
        return [...document.querySelectorAll("h1, p, a, label, button, summary, textarea, li span")]
            .filter((n) => n.offsetWidth && n.textContent)
            .map((n) => { const [a, b] = [light(getComputedStyle(n).color), light(below(n))];
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); });
    """
    assert min(opened.run(contrast)) >= 4.5


def test_a_token_is_asked_for_and_taken(browser):
    with reversing(token=TOKEN) as served:
        browser.go(served.url)
        browser.until(lambda: browser.text("#problem"))
        assert "Wanted the server's token" in browser.text("#problem")
        assert browser.run("return document.getElementById('token-field').hidden") is False
        browser.type("#token", TOKEN + ENTER)
        browser.until(lambda: browser.text("#column-0") is not None)
        browser.ask("abc")
        assert browser.text("#answer .first") == "cba"
    browser.ask("abc")
    assert browser.text("#problem") == "The server cannot be reached."
    # The console may be told of it after the page is; no later test is to find it there.
    browser.until(lambda: "ERR_CONNECTION_REFUSED" in " ".join(browser.log()))


def serve(run, *words):
    """The command that serves a run."""
    return [warm_programs() / "textmill", "serve", str(run.resolve()), "--port", "0", *words]


def test_the_texts_nearest_to_a_vector_are_shown(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data("embedding/pairs/local")
    words = ["trainer.max_steps=2", "reporters.console=false", "reporters.html=false"]
    run = textmill.train("embedding/pairs/local", words, run_dir="run").folder
    texts = [f"play song {number} {'again ' * (number % 5)}" for number in range(150)]
    texts += [HOSTILE, "wake me at seven", texts[3], "", " wake me "]
    with started(serve(run, "--body", "3000", "--items", "50")) as served:
        browser.go(served.url)
        browser.until(lambda: browser.text("#texts") is not None)
        browser.ask("wake me at seven")
        assert browser.text("#answer .first") == "8 numbers"
        assert browser.text("#answer .hint").startswith("Give texts to search")
        browser.give("texts-file", "\n".join(texts), "texts.txt")
        browser.until(lambda: browser.run("return document.getElementById('texts').value"))
        browser.ask("wake me at seven")
        one, *vectors = textmill.load(run).embed(["wake me at seven", *texts[:-2], "wake me"])
        cosines = [float(one @ vector) for vector in vectors]
        named = zip([*(text.strip() for text in texts[:-2]), "wake me"], cosines, strict=True)
        wanted = sorted(dict(named).items(), key=lambda pair: -pair[1])
        shown = [line.rsplit("\n", 1) for line in browser.texts("#answer .bars li")]
        assert shown[0] == ["wake me at seven", "1.000"]
        assert [float(score) for _, score in shown[:8]] == pytest.approx(
            [cosine for _, cosine in wanted[:8]], abs=6e-4
        )
        assert browser.text("#answer details summary") == "42 more"
        assert browser.text("#problem") == ""
        assert browser.log() == []


def test_an_answer_says_why_a_table_is_answered_and_the_model_has_a_card(
    browser, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    lines = [f"{topic}\tI {said} the lamp number {n}." for n in range(30) for topic, said in SAID]
    (tmp_path / "messages.tsv").write_text("topic\tmessage\n" + "\n".join(lines) + "\n")
    words = ["train_data.path=messages.tsv", "train_data.header=true", "trainer.costs=[1.0]"]
    words += ["train_data.columns={text: message, label: topic}", "train_data.holdout=0.2"]
    words += ["reporters.console=false", "reporters.html=false"]
    run = textmill.train("classification/ngrams", words, run_dir="run").folder
    with started(serve(run)) as served:
        browser.shows(390, 844, "dark")
        browser.go(served.url)
        browser.until(lambda: browser.text("#card-list dd") is not None)
        assert browser.texts("#fields label")[0] == "message"  # as the file calls it
        card = dict(zip(browser.texts("#card dt"), browser.texts("#card dd"), strict=True))
        assert card["Recipe"] == "classification/ngrams"
        assert {*card["Labels"].split(", ")} == {"billing", "product"}
        assert "48 rows, messages.tsv" in card["Data"]
        assert "accuracy 100.0 % (95 % interval " in card["Quality"]
        text = "I broke 'the' lamp."
        browser.ask(text)
        assert browser.text("#answer .first") == "product"
        script = "[...document.querySelectorAll('#answer button')].at(-1).click()"
        browser.run(script)
        browser.until(lambda: browser.text(".why") is not None)
        assert browser.text(".why .text") == text
        assert browser.text(".why mark.for[style*='100']") == "broke"
        assert browser.text(".why .bars li").startswith("broke\n+")
        assert (
            httpx.post(f"{served.url}predict", json={"message": text}).json()
            == served.ask(text).json()
        )
        browser.run("document.getElementById('command').open = true")
        command = browser.text("#curl")
        assert command.startswith("curl --json '{\"text\":\"I broke '\\''the'\\'' lamp.\"}' http")
        said = subprocess.run(
            ["bash", "-c", f"{command} --silent"], capture_output=True, check=True
        )
        assert json.loads(said.stdout) == served.ask(text).json()
        table = "message,id\n" + "".join(f"I broke it,{n}\n" for n in range(700))
        browser.give("table", table, "more.csv")
        browser.until(lambda: browser.text(".save") is not None)
        assert browser.texts("#answer td")[:3] == ["I broke it", "0", "product"]
        assert browser.text("#answer th.own") == "prediction"
        behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
        browser.develop("Browser.setDownloadBehavior", **behaviour)
        browser.run("document.querySelector('.save').click()")
        browser.until((tmp_path / "more.answers.csv").exists)
        answers = (tmp_path / "more.answers.csv").read_text().splitlines()
        assert len(answers) == 701
        assert answers[700].startswith("I broke it,699,product,")
        assert browser.text("#curl").startswith(
            "curl -H 'Content-Type: text/csv' --data-binary @'more.csv' "
        )
        assert browser.run("return document.documentElement.scrollWidth") <= 390
        browser.go(f"{served.url}docs")
        browser.until(lambda: browser.text("#paths section") is not None)
        assert browser.text("#paths h2") == "POST /predict"
        assert browser.texts("#paths td")[:9:3] == ["n_best", "threshold", "explain"]
        assert "To a table: the table with its answers" in browser.text("#paths")
        schema = "document.querySelector('#paths details').open = true"
        browser.run(schema)
        assert "'message' for 'text'" in browser.text("#paths pre")
        assert {"ClassifiedRow", "Refused"} <= {*browser.texts("#types h3")}
        assert browser.run("return document.documentElement.scrollWidth") <= 390
        assert browser.log() == []


def test_the_page_of_the_api_asks_for_a_token(browser):
    with reversing(token=TOKEN) as served:
        browser.go(f"{served.url}docs")
        browser.until(lambda: browser.text("#problem"))
        browser.type("#token", TOKEN + ENTER)
        browser.until(lambda: browser.text("#paths section") is not None)
        assert browser.text("#problem") == ""
        browser.log()

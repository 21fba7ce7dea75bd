"""``README.md``: hubs read its head; what others wrote means nothing in it; words are kept."""

from html.parser import HTMLParser

import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt

import textmill
from tests.hostile.small_run import words
from tests.runs.report.pages_of_html import HOSTILE
from tests.runs.report.test_report import hostile_run
from tests.trained_run import copy_of, library_run
from textmill.cli.main import main
from textmill.errors import CodeNotAllowedError, UserError
from textmill.runs.export import export as export_run
from textmill.runs.report import model_card as module
from textmill.runs.report.model_card import OWN, model_card, write_card

OURS = {"h1", "h2", "h3", "p", "ul", "li", "code", "pre", "strong"}
OURS |= {"table", "thead", "tbody", "tr", "th", "td"}
MARKDOWN = [
    "`a` | b | [c](http://example.org) ![d](http://example.org/e.png)",
    "| x |\n| --- |\n\n# heading\n- item\n\n```\nfence\n",
    "http://example.org www.example.org a@example.org <http://example.org>",
    "$x$ *a* _b_ ~~c~~ :smile: @someone #1 \\| \\` &lt;b&gt;",
]


class Shown(HTMLParser):
    """The tags of a rendered card, and its texts that are not code."""

    def __init__(self, card):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.comments, self._open = set(), [], [], []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(card))
        self.close()

    def handle_starttag(self, tag, attrs):
        assert not attrs or tag == "code" or tag in ("th", "td")
        self.tags.add(tag)
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_comment(self, data):
        self.comments.append(f"<!--{data}-->")

    def handle_data(self, data):
        if "code" not in self._open:
            self.texts.append(data)


@pytest.mark.parametrize("word", [*HOSTILE, *MARKDOWN])
def test_what_others_wrote_means_nothing_in_markdown(tmp_path, word, monkeypatch):
    def no_code(*_, **__):
        raise CodeNotAllowedError("its own code")

    monkeypatch.setattr(module, "load_answering", no_code)
    run = hostile_run(tmp_path / "a", word[:20_000])
    card = ModelCard(model_card(run))
    assert card.data.library_name == "textmill"
    shown = Shown(card.text)
    assert shown.tags <= OURS
    assert shown.comments == [OWN]
    signs = ("http", "www.", "@", "<", "$", "owned", "](", "~~")
    assert not [line for line in shown.texts if any(sign in line for sign in signs)]


def test_the_authors_words_and_the_license_are_kept(tmp_path, capsys):
    run = copy_of(library_run(), tmp_path / "run")
    assert main(["model-card", str(run), "--license", "apache-2.0"]) == 0
    path = run / "README.md"
    assert capsys.readouterr().out.strip() == str(path)
    path.write_text(path.read_text().partition(OWN)[0] + OWN + "\n\nFor *our* desk.\n")
    assert main(["model-card", str(run)]) == 0
    text = path.read_text()
    assert text.endswith(f"{OWN}\n\nFor *our* desk.\n")
    assert ModelCard(text).data.license == "apache-2.0"
    assert ModelCard(textmill.Run(run).model_card(license="mit")).data.license == "mit"
    assert main(["model-card", str(run), "--license", "no"]) == 0  # YAML quotes it
    assert main(["model-card", str(run)]) == 0
    assert ModelCard(path.read_text()).data.license == "no"
    capsys.readouterr()
    assert main(["model-card", str(run), "--license", "a\nb: c"]) == 2
    assert "--license: wanted an identifier" in capsys.readouterr().err
    path.write_text("# Mine\n")
    assert main(["model-card", str(run)]) == 2
    assert "no card that textmill wrote" in capsys.readouterr().err
    assert path.read_text() == "# Mine\n"
    assert main(["model-card", str(tmp_path)]) == 2


def test_folders_and_machines_are_not_told(tmp_path):
    run = textmill.train("classification/docnn", words(), run_dir=tmp_path / "run").folder
    card = model_card(run)
    assert "`train.tsv`" in card
    assert str(tmp_path) not in card
    assert "textmill-small-" not in card
    assert "| host" not in card


def test_the_card_of_an_export_is_that_of_its_run(tmp_path):
    run = copy_of(library_run(), tmp_path / "run")
    export = export_run(run, "ctranslate2").folder
    write_card(export)
    card = (export / "README.md").read_text()
    assert "textmill.exported.load('ctranslate2')" in card
    assert ModelCard(card).data.eval_results
    assert textmill.exported.load(export)("The cat sleeps.").text
    export.rename(tmp_path / "alone")
    with pytest.raises(UserError, match="an export outside its run"):
        write_card(tmp_path / "alone")

"""What comes through a pipe is rows, lines, or refused: never one for the other unsaid."""

import io
from pathlib import Path

import pytest

from textmill.data import TextPairs
from textmill.data.input_files import piped_layout
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.text.features.labels import Labels

KNOWN = {"label": Labels(["ham", "spam"])}
TAGS = {"tags": Labels(["O", "B-person"], column="tags")}
TSV, CSV = (TextRows.Config(path=f"sms.{kind}") for kind in ("tsv", "csv"))
HEADER = TextRows.Config(path="sms.csv", header=True)
NAMED = TextRows.Config(path="sms.csv", header=True, columns={"label": "v1", "text": "v2"})
JSON = TextRows.Config(path="sms.jsonl")
CONLL = TextRows.Config(path="a.conll", columns={"words": 0, "tags": -1})
PAIRS = TextPairs.Config(path="fra.tsv")


def rows(text, config, labels, inputs=("text",), said=()):
    layout = piped_layout(text.encode(), config, inputs, labels, said=said)
    if layout is None:
        return None
    return [row for _, row in layout.scan(io.BytesIO(text.encode()), "-")]


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ('spam,"Win, win"\nham,"two\nlines"\n', CSV),
        ('label,text\nspam,"Win, win"\nham,"two\nlines"\n', HEADER),
        ('text\n"Win, win"\n"two\nlines"\n', HEADER),
        ('v1,v2\nspam,"Win, win"\nham,"two\nlines"\n', NAMED),
        ('{"text": "Win, win"}\n{"text": "two\\nlines"}\n', JSON),
    ],
)
def test_rows_of_the_runs_layout_are_rows(text, config):
    assert rows(text, config, KNOWN) == [("Win, win",), ("two\nlines",)]


def test_tokens_with_known_tags_and_pairs_are_rows():
    text = "Ann\tB-person\nfell\tO\n\nBob\tB-person\n"
    assert rows(text, CONLL, TAGS, ["words"]) == [("Ann fell",), ("Bob",)]
    assert rows("Go.\tVa !\nRun!\tCours !\n", PAIRS, {}, ["source"]) == [("Go.",), ("Run!",)]
    assert rows("ham\tHi.\nspam\tWin!\n", TSV, KNOWN) == [("Hi.",), ("Win!",)]


@pytest.mark.parametrize("config", [TSV, CSV, HEADER, NAMED, JSON, CONLL, PAIRS])
@pytest.mark.parametrize("text", ["Win, win!\n", "Good food, nice staff\nbad\n", "", 'I "won"'])
def test_text_is_lines(text, config):
    labels = TAGS if config is CONLL else {} if config is PAIRS else KNOWN
    inputs = [name for name in config.columns if name in ("words", "source", "text")]
    assert rows(text, config, labels, inputs) is None


@pytest.mark.parametrize(
    ("text", "config", "labels", "what"),
    [
        ('"Win, win"\n', CSV, KNOWN, "quotes around columns"),
        ('eggs,"Win, win"\n', HEADER, KNOWN, "quotes around columns"),
        ("eggs\tWin, win\n", TSV, KNOWN, "tabs"),
        ("Hello, you\n", TextPairs.Config(path="a.csv"), {}, "',' in all lines"),
        ("Ann\tX\n", CONLL, TAGS, "tabs"),
        ("Ann\nfell\n\nBob\n", CONLL, TAGS, "empty lines"),
    ],
)
def test_what_may_be_either_is_refused_with_the_words_for_each(text, config, labels, what):
    inputs = [name for name in config.columns if name not in ("label", "tags", "target")]
    with pytest.raises(UserError) as caught:
        rows(text, config, labels, inputs)
    kind = Path(config.path).suffix[1:]
    assert str(caught.value) == (
        f"standard input may be rows of {kind}, as the run's data is, or lines of text: it has "
        f"{what}. Say which: format={kind} for rows (textmill predict RUN - format={kind}), or "
        "--lines."
    )


def test_what_is_said_of_the_rows_holds():
    said = TextRows.Config(path="sms.tsv", format="csv")
    assert rows('"Win, win"\n', said, KNOWN, said=["format"]) == [("Win, win",)]
    with pytest.raises(DataError, match=r"^standard input:1: wanted a header with 'text', as the"):
        rows("ham,Hi.\n", HEADER, KNOWN)

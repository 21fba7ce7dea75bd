"""A small run, and an export of it, for each pipeline: trained once in a session."""

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import textmill
from tests.pretrained_checkpoints import save_encoder
from textmill.runs.export import export

REFERENCES = [
    ("A. Lee. Deep nets. Journal of Learning, 1999.", "author author title title journal*3 date"),
    (
        "B. Ray and C. Ode. Fast trees. Proc. of Trees, 2001.",
        "author*5 title title booktitle*3 date",
    ),
    ("D. Fox. Old words. 1984.", "author author title title date"),
]
SILENT = ["reporters.console=false", "reporters.html=false"]
QUIET = ["trainer.max_steps=60", "trainer.evaluate_every=60 steps", *SILENT]


def tags_in(words):
    """``author*2 date`` as the tags of three words."""
    parts = (word.partition("*") for word in words.split())
    return [tag for tag, _, count in parts for _ in range(int(count or 1))]


def json_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@cache
def folder():
    return Path(mkdtemp(prefix="textmill-tests-pipelines-"))


def tagging_run(experiment, name, tagged, *settings):
    """A run that knows words with tags by heart."""
    rows = [{"words": words, "tags": tags} for words, tags in tagged] * 4
    path = json_lines(folder() / f"{name}.jsonl", rows)
    words = [f"{data}.path={path}" for data in ("train_data", "valid_data")]
    words += ["train_data.columns={words: words, tags: tags}", "train_data.lists=[words, tags]"]
    words += ["optimizer.lr=0.05", *QUIET, *settings]
    run = folder() / "-".join([name, *settings])
    return textmill.train(experiment, words, run_dir=run).folder


@cache
def reference_run(*settings):
    tagged = [(text.split(), tags_in(tags)) for text, tags in REFERENCES]
    return tagging_run("tagging/bilstm/local", "references", tagged, *settings)


@cache
def exported(run, form):
    return export(run, form, device="cpu").folder


MENTIONS = [
    (["We", "train", "on", "CIFAR-10", "."], "O O O B O"),
    (["The", "DBLP", "data", "is", "old", "."], "O B I O O O"),
    (["It", "is", "new", "."], "O O O O"),
]


@cache
def mentions_run():
    tagged = [(words, tags.split()) for words, tags in MENTIONS]
    return tagging_run("tagging/ner/local", "mentions", tagged)


LANGUAGES = [
    ("de", "Der alte Baum."),
    ("de", "Die Netze sind tief."),
    ("en", "The old tree."),
    ("en", "The nets are deep."),
]


@cache
def languages_run():
    """A run that tells two languages apart."""
    path = folder() / "languages.tsv"
    path.write_text("".join(f"{code}\t{text}\n" for code, text in LANGUAGES * 4))
    words = [f"{name}.path={path}" for name in ("train_data", "valid_data")]
    words += ["trainer.costs=[1.0]", "trainer.folds=2", *SILENT]
    return textmill.train("classification/ngrams", words, run_dir=folder() / "languages").folder


@cache
def written_summaries_run():
    """Summaries that the model writes; what they say is of no matter."""
    rows = [{"source": text, "target": [text[:20]]} for text, _ in REFERENCES] * 4
    path = json_lines(folder() / "summaries.jsonl", rows)
    words = [f"{name}.path={path}" for name in ("train_data", "valid_data")]
    words += ["tokenizer.kind=characters", "task.decoding.max_length_b=20", *QUIET]
    words += ["task.decoding.no_repeat_ngram=0"]  # CTranslate2 has no such search
    words += ["trainer.max_steps=2", "trainer.evaluate_every=2 steps"]
    return textmill.train("summarization/scitldr/local", words, run_dir=folder() / "written").folder


@cache
def extracts_run():
    """Summaries by sentences of the text."""
    encoder = save_encoder(folder() / "bert", "bert")
    rows = [{"source": text, "target": [text[:20]]} for text, _ in REFERENCES] * 4
    path = json_lines(folder() / "extracts.jsonl", rows)
    words = [f"{name}.path={path}" for name in ("train_data", "valid_data")]
    words += [f"model.encoder.path={encoder}", "pieces.length=12", "task.max_length=8"]
    words += ["lr_scheduler.type=constant", *QUIET, "trainer.max_steps=2"]
    words += ["trainer.evaluate_every=2 steps"]
    return textmill.train("summarization/extractive", words, run_dir=folder() / "extracts").folder

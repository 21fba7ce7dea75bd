"""A small run, and an export of it, for each pipeline: trained once in a session."""

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import weft
from weft.runs.export import export

REFERENCES = [
    ("A. Lee. Deep nets. Journal of Learning, 1999.", "author author title title journal*3 date"),
    (
        "B. Ray and C. Ode. Fast trees. Proc. of Trees, 2001.",
        "author*5 title title booktitle*3 date",
    ),
    ("D. Fox. Old words. 1984.", "author author title title date"),
]
QUIET = ["trainer.max_steps=60", "trainer.evaluate_every=60 steps", "reporters.console=false"]


def tags_in(words):
    """``author*2 date`` as the tags of three words."""
    parts = (word.partition("*") for word in words.split())
    return [tag for tag, _, count in parts for _ in range(int(count or 1))]


def json_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@cache
def folder():
    return Path(mkdtemp(prefix="weft-tests-pipelines-"))


@cache
def reference_run():
    rows = [{"tokens": t.split(), "tags": tags_in(tags)} for t, tags in REFERENCES] * 4
    path = json_lines(folder() / "references.jsonl", rows)
    words = [f"{name}.path={path}" for name in ("train_data", "valid_data")]
    words += ["train_data.columns={words: tokens, tags: tags}", "train_data.lists=[words, tags]"]
    words += ["optimizer.lr=0.05", *QUIET]
    return weft.train("tagging/bilstm/local", words, run_dir=folder() / "references").folder


@cache
def exported(run):
    return export(run, "onnx", device="cpu").folder

"""The recipe for a file of rows: an experiment, and what was seen, with a comment at each guess."""

import json
import math
from pathlib import Path

from textmill.data.formats.header import yaml_word
from textmill.data.look.facts import Facts
from textmill.data.look.guess import Guess, Task
from textmill.data.look.sample import Sample
from textmill.runtime.logging import printable

COMMENT = 150
LINEAR = "a linear model, in seconds"
EXPERIMENTS: dict[Task, tuple[str, str]] = {
    "label": ("classification/ngrams", f"{LINEAR}; a neural network: classification/docnn"),
    "labels": ("classification/ngrams", f"{LINEAR}; a neural network: classification/docnn"),
    "number": ("regression/ngrams", LINEAR),
    "pair": ("pairs/ngrams", f"{LINEAR}; an LSTM: pairs/classification"),
    "pair number": ("similarity/ngrams", LINEAR),
    "texts": ("translation/tatoeba", "a summary: summarization/scitldr; a parse: parsing/cogs"),
    "tags": ("tagging/bilstm", "a tag for each word; if B- and I- mark spans: tagging/ner"),
    "spans": ("tagging/ner", "tags that mark spans; if they mark none: tagging/bilstm"),
}
"""The experiment for each task, and others for the same."""
AMOUNTS = {"label": "regression/ngrams", "pair": "similarity/ngrams"}
"""The experiment that learns grades as amounts."""


def file_recipe(
    path: Path, sample: Sample, guess: Guess, facts: Facts, *, experiment: str | None = None
) -> str:
    """The YAML of a recipe for a file, by another ``experiment`` than the usual one if named."""
    usual, reason = EXPERIMENTS[guess.task]
    if experiment not in (None, usual):
        usual, reason = str(experiment), ""
    elif "score" in guess.columns and guess.task in AMOUNTS:
        reason += f"; grades as amounts: {AMOUNTS[guess.task]}"
    rows: list[tuple[str, str]] = [
        ("# Guessed from the file; what was seen is after each #.", ""),
        (f"recipe: {usual}", reason),
        ("train_data:", ""),
        (f"  path: {yaml_word(str(path))}", ""),
    ]
    for setting, value in sample.settings.items():
        rows.append((f"  {setting}: {yaml_word(value)}", sample.reasons[setting]))
    rows.append(("  columns:", "" if sample.has_names else "positions from 0"))
    is_conll = "conll" in (sample.settings.get("format"), path.suffix[1:])
    for role, at in guess.columns.items():
        place = sample.place(at)
        place = {"words": 0, "tags": -1}[role] if is_conll else place
        rows.append((f"    {role}: {yaml_word(place)}", guess.reasons.get(role, "")))
    rows += _spellings(facts)
    if facts.may_lack:
        rows.append(("  optional: [label]", "rows without any of the labels"))
    rows.append((f"  holdout: {facts.holdout}", "share of the rows that measures the answers"))
    if facts.bad or not sample.whole:
        share = math.ceil(1000 * facts.bad / facts.total) / 1000 + (not sample.whole) / 1000
        note = f"left out, as they cannot be used: {facts.bad:,} of {facts.total:,} rows"
        allowed = round(share, 3) if share < 1 else facts.bad  # 1.0 would be one row
        rows.append((f"  max_bad_rows: {allowed}", note))
    if guess.separator is not None:
        separator = f", separator: {json.dumps(guess.separator)}" if guess.separator else ""
        note = "a cell has several labels; if it is one label, leave this line out"
        rows.append((f"labels: {{multiple: true{separator}}}", note))
    return "".join(f"{line}{_comment(note)}\n" for line, note in rows)


def _spellings(facts: Facts) -> list[tuple[str, str]]:
    """Labels that are read as others; those that only look mistyped are to be uncommented."""
    if not facts.respelled and not facts.misspelled:
        return []
    mark = "" if facts.respelled else "# "  # a key without a value would be null
    said = "spellings of one label" if facts.respelled else "labels that look mistyped"
    rows = [(f"  {mark}read_as:", said), (f"  {mark}  label:", "")]
    for name, near in facts.respelled.items():
        rows.append((f"      {yaml_word(name)}: {yaml_word(near)}", ""))
    for name, near in facts.misspelled.items():
        count = f"{facts.labels[name]:,} row{'s' * (facts.labels[name] != 1)}"
        line = f"      # {yaml_word(name)}: {yaml_word(near)}"
        rows.append((line, f"{count}; if it is mistyped, take the first # away"))
    return rows


def _comment(note: str) -> str:
    plain = printable(" ".join(note.split()))
    return f"  # {plain[:COMMENT]}{'...' * (len(plain) > COMMENT)}" if plain else ""

"""Rows of the columns that each experiment's tiny variant reads, where it looks for them."""

import json
import random
from pathlib import Path
from string import ascii_lowercase

from textmill.recipes.planning import plan_recipe

ROWS = 8

TEXTS = ["wake me at seven", "play the old song", "wake us at nine", "play it again now"]
CELLS = {
    "label": ["alarm", "music"], "slots": ["O O B-time I-time", "O O O O"], "text": TEXTS,
    "text1": TEXTS, "text2": TEXTS[1:], "query": TEXTS, "positive": TEXTS[1:],
    "negative": TEXTS[2:], "score": ["0.5", "3", "-1"], "source": TEXTS,
    "target": ["réveille-moi à sept heures", "joue la vieille chanson"],
}  # fmt: skip
WORDS = [("Ann", "B-per"), ("met", "O"), ("Bob", "B-per"), ("Ray", "I-per"), (".", "O")]


def a_row(columns, number, lists):
    row = {
        **{name: each[number % len(each)] for name, each in CELLS.items()},
        "session": number // 2,
    }
    row["turns"] = row["text"]
    listed = {name: json.dumps(["hello there", row[name]]) for name in lists}
    return [str({**row, **listed}[name]) for name in columns]


def a_table(columns, lists):
    if isinstance(columns, dict):  # of TOP: raw text, tokens, tree
        return "".join(f"{text}\t{text}\t{a_tree(*text.split())}\n" for text in TEXTS * 2)
    rows = [a_row(columns, number, lists) for number in range(ROWS)]
    return "".join("\t".join(row) + "\n" for row in rows)


def a_tree(first, second, *others):
    return f"[IN:WAKE {first} {second} [SL:TIME {' '.join(others)} ] ]"


def a_squad():
    context = "Rollo led the Normans."
    questions = [
        {"id": str(n), "question": "Who led?", "answers": [{"text": "Rollo", "answer_start": 0}]}
        for n in range(ROWS)
    ]
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}]}]})


def summaries():
    """Texts of so many words that a vocabulary has the pieces that it is to have."""
    draw = random.Random(0)
    words = ["".join(draw.choices(ascii_lowercase, k=6)) for _ in range(50 * ROWS)]
    rows = [" ".join(words[n::ROWS]) for n in range(ROWS)]
    return "".join(f"{json.dumps({'source': row, 'target': [row[:13]]})}\n" for row in rows)


def references():
    words, tags = zip(*WORDS, strict=True)
    return f"{json.dumps({'tokens': words, 'tags': tags})}\n" * ROWS


def content(path, columns, lists=()):
    """A file as an experiment's settings want it."""
    match path.suffix:
        case ".txt":
            return "".join(f"{text}\n" for text in TEXTS * 20)
        case ".conll":
            return "\n".join("".join(f"{w}\t{t}\n" for w, t in WORDS) for _ in range(ROWS))
        case ".json":
            return a_squad()
        case ".jsonl":
            return summaries() if "source" in columns else references()
    return a_table(columns, lists)


def short(name, steps=2):
    """Settings of a training of a few steps; a model that is solved takes one in any case."""
    if "/ngrams" in name:
        return []
    return [f"trainer.max_steps={steps}", f"trainer.evaluate_every={steps} steps"]


def write_data(name):
    """Writes the files that an experiment names by default; gives its settings."""
    settings = plan_recipe(name, targets=["trainer"]).plan.settings
    for data in ("train_data", "valid_data"):
        if "path" in settings[data]:
            path = Path(settings[data]["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            how = [settings[data].get(name, ()) for name in ("columns", "lists")]
            path.write_text(content(path, *how), encoding="utf-8")
    return settings

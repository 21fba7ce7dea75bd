"""Checks of a model card against what hubs read of it, and of its examples by running them."""

import json
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from huggingface_hub import ModelCard
from markdown_it import MarkdownIt

from textmill.cli.main import main
from textmill.run_folder.record import saved_settings
from textmill.runs.report.model_card import TAGS, model_card


def checked_card(run: Path) -> ModelCard:
    """The card of a run in the working folder, whose examples were run."""
    text = model_card(run)
    card = ModelCard(text)
    task = saved_settings(run)["task"]["type"]
    assert f"Task: `{task}`." in card.text
    assert card.data.pipeline_tag == TAGS.get(task)
    assert task.replace("_", "-") in card.data.tags
    (first, *_) = card.data.eval_results
    assert card.data.metrics == [first.metric_type]
    assert first.metric_type.replace("_", " ") in card.text
    assert isinstance(first.metric_value, float)
    blocks = {b.info: b.content for b in MarkdownIt().parse(card.text) if b.type == "fence"}
    out = StringIO()
    with redirect_stdout(out):
        exec(blocks["python"], {})  # the card's own example
    python = out.getvalue()
    asked = re.fullmatch(r"echo (.+) \| textmill (predict .+)\ntextmill .+\n", blocks["sh"])
    (line,), words = shlex.split(asked[1]), shlex.split(asked[2])
    Path("asked.txt").write_text(line + "\n", encoding="utf-8")
    words.insert(2, "asked.txt")
    words += [] if "--format" in words else ["--format", "text"]
    out = StringIO()
    with redirect_stdout(out):
        assert main(words) == 0
    answer = json.loads(out.getvalue())
    shown = json.loads(blocks["json"])
    assert shown.keys() <= answer.keys()
    assert repr(answer[next(iter(shown))])[:20] in python
    return card

"""A tiny recipe in a folder of its own, and what its runs leave."""

import json
import os
import random
from pathlib import Path
from typing import Any

RECIPE = '''"""A translator of a few words, trained in a second."""

from pathlib import Path

from textmill import like
from textmill.data import TextPairs
from textmill.models import Transformer
from textmill.models.decoding import Decoding
from textmill.tasks import Translation
from textmill.text import FittedTokenizer
from textmill.training import AdamW, Every, InverseSquareRoot, Selection, Trainer

train_data = TextPairs.Config(path=Path("train.tsv"), max_tokens=None, batch_size=4)
valid_data = like("train_data", path=Path("valid.tsv"), shuffle=False)
test_data = like("train_data", path=Path("test.tsv"), shuffle=False)
tokenizer = FittedTokenizer.Config(vocab_size=44, source_langs=("eng",), target_langs=("fra",))
model = Transformer.Config(
    dim=16, ffn_dim=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
)
task = Translation.Config(decoding=Decoding(max_length_a=0.5, max_length_b=4))
optimizer = AdamW.Config(lr=2e-2)
lr_scheduler = InverseSquareRoot.Config(warmup_steps=5)
trainer = Trainer.Config(
    max_steps=20, accumulate=2, evaluate_every=Every(7), save_every=Every(4),
    report_every=Every(1), selection=Selection.Config(metric="loss"),
)
'''

STEPS = 20


def write_recipe(folder: Path) -> Path:
    """Writes recipe and data; the same in every folder."""
    folder.mkdir(parents=True, exist_ok=True)
    subjects = {"the cat": "le chat", "the dog": "le chien", "a bird": "un oiseau"}
    verbs = {"sees": "voit", "eats": "mange", "likes": "aime"}
    things = {"bread": "du pain", "fish": "du poisson", "a house": "une maison", "tea": "du the"}
    rows = [
        f"{s} {v} {o}\t{subjects[s]} {verbs[v]} {things[o]}\n"
        for s in subjects
        for v in verbs
        for o in things
    ]
    random.Random(1).shuffle(rows)
    (folder / "train.tsv").write_text("".join(rows[:26]))
    (folder / "valid.tsv").write_text("".join(rows[26:31]))
    (folder / "test.tsv").write_text("".join(rows[31:]))
    (folder / "tiny.py").write_text(RECIPE)
    return folder


def alive(process: int) -> bool:
    """Whether a process is still running: a zombie is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        return True


def run_folder(folder: Path) -> Path:
    """The one run in a folder."""
    (found,) = (folder / "runs" / "tiny").iterdir()
    return found


def metrics_of(run: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without what the clock decides."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "time"} for line in lines]


def outcome(run: Path) -> dict[str, Any]:
    """Everything that must be the same whatever happened to a run, byte for byte."""
    checkpoints = run / "checkpoints"
    names = [
        (json.loads((checkpoints / f"{kind}.json").read_text())["folder"], kind)
        for kind in ("last", "best")
    ]
    weights = {
        f"{kind}/{file}": (checkpoints / name / file).read_bytes()
        for name, kind in names
        for file in ("model.safetensors", "optimizer.safetensors")
    }
    parts = json.loads((checkpoints / names[0][0] / "state.json").read_text())["parts"]
    info = json.loads((run / "run.json").read_text())
    predictions = {p.name: p.read_bytes() for p in sorted((run / "predictions").iterdir())}
    return {
        **weights, "names": names, "data": parts["data"], "selection": parts["selection"],
        "metrics": metrics_of(run), "predictions": predictions, "result": info["result"],
        "finished": info["finished"],
    }  # fmt: skip


def unlike(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The names of what differs."""
    assert wanted.keys() == found.keys()
    return [name for name in wanted if wanted[name] != found[name]]

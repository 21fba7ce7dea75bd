"""One tiny trained run that the tests of inference, reloading and hostile folders share."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import textmill
from textmill.checkpoint.run_seal import RunSeal, sealed_config

PAIRS = [
    ("The cat sleeps.", "Le chat dort."),
    ("A dog runs in the garden.", "Un chien court dans le jardin."),
    ("The cat sleeps.", "Le chat est en train de dormir."),
    ("Go.", "Va !"),
    ("Why are you late?", "Pourquoi êtes-vous en retard ?"),
    ("Go.", "Allez !"),
    ("I do not know where she lives now.", "Je ne sais pas où elle habite."),
    ("She lives in the garden.", "Elle habite dans le jardin."),
]
HEAD = '''"""A tiny translator."""
from pathlib import Path
from textmill import like
from textmill.data import TextPairs
from textmill.models import Transformer
from textmill.tasks import Translation
from textmill.text import FittedTokenizer
from textmill.training import AdamW, Every, Trainer

HERE = Path({folder!r})
train_data = TextPairs.Config(path=HERE / "train.tsv", max_tokens=200)
valid_data = like("train_data", path=HERE / "dev.tsv", shuffle=False)
tokenizer = FittedTokenizer.Config(vocab_size=60, cache_dir=HERE / "cache")
model = Transformer.Config(
    dim=16, num_encoder_layers=1, num_decoder_layers=1, num_heads=2, ffn_dim=32, max_length=64
)
task = Translation.Config()
optimizer = AdamW.Config(lr=3e-3)
trainer = Trainer.Config(max_steps=4, evaluate_every=Every(2), save_every=Every(2), keep=3)
'''


def data_in(folder: Path) -> None:
    """Writes the tiny data into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in (("train.tsv", PAIRS * 3), ("dev.tsv", PAIRS)):
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (folder / name).write_text(text, encoding="utf-8")


def train_script(folder: Path, *more: str, words: tuple[str, ...] = ()) -> Path:
    """Trains the tiny script, with more lines at its end; gives the run folder."""
    data_in(folder)
    script = folder / "tiny.py"
    text = HEAD.format(folder=str(folder))
    script.write_text(text + "\n".join(more) + "\n", encoding="utf-8")
    return textmill.train(
        script, ["reporters.console=false", "reporters.html=false", *words], run_dir=folder / "run"
    ).folder


@cache
def library_run() -> Path:
    """A run of library components alone; its data and its tokenizer's cache are gone."""
    folder = Path(mkdtemp(prefix="textmill-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    run = train_script(folder / "work", words=("reporters.html=true",))
    kept = folder / "kept"
    shutil.move(run, kept)
    shutil.rmtree(folder / "work")
    return kept


def edited(run: Path, old: str = "", new: str = "") -> Path:
    """Changes a run's ``config.yaml``, and gives it the seal that the run would have written."""
    path = run / "config.yaml"
    lines = path.read_text(encoding="utf-8").replace(old, new).splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("# sealed: "))
    code = {
        line.split()[4]: line.split()[3] for line in lines if line.startswith("# sealed: code ")
    }
    named = [line.split()[3].rstrip(",") for line in lines if line.startswith("# sealed: run ")]
    name = named[-1] if named else RunSeal.read(library_run()).run
    path.write_bytes(sealed_config(text, run=name, code=code))
    return run


def copy_of(run: Path, target: Path) -> Path:
    """A copy for one test to change."""
    shutil.copytree(run, target, symlinks=True)
    return target

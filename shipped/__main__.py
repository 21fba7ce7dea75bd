"""``make models``: trains the models that ship with textmill, and writes them to their place.

    python -m shipped
    python -m shipped reference-parser --data data --out built

What the models learn from is fetched into ``--data`` if it is not there. The same data, versions
and kind of processor give the same bytes: one thread, and libraries that compute alike on all
x86-64 processors.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shipped import languages, references
from textmill.pipelines.find_model import SHIPPED
from textmill.runtime.files import new_folder

ALIKE = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "NEHALEM",
    "PYTHONHASHSEED": "0",
}
"""The environment in which a model is made: sums in the same order everywhere."""
RECIPE = "recipe.json"
"""What a shipped model says of how it was made."""
NOTICE = "NOTICE"
"""The licences of what it learnt from."""


@dataclass(frozen=True)
class ShippedModel:
    """A model that ships: its rows, and the experiment that learns from them."""

    name: str
    """Of its pipeline and of its folder; ``NAME.txt`` beside this file is its notice."""
    experiment: str
    settings: tuple[str, ...]
    lines: Callable[[Path], Iterable[str]]
    """The lines of its training file, from the folder of data."""
    file: str = "train.jsonl"
    quantize: Literal["int8"] | None = None

    @property
    def words(self) -> list[str]:
        """What is typed after ``textmill train EXPERIMENT``."""
        return [f"train_data.path={self.file}", *self.settings]

    @property
    def notice(self) -> Path:
        return Path(__file__).parent / f"{self.name}.txt"


MODELS = (
    ShippedModel(
        "reference-parser",
        "tagging/references",
        ("valid_data=null", "trainer.selection.metric=loss"),
        lambda data: references.rows(references.read(data)),
    ),
    ShippedModel(
        "language-identifier",
        "classification/ngrams",
        (
            "valid_data=null",
            "trainer.costs=[1.0]",
            "trainer.folds=2",
            "tokenizer.vocab_size=40000",
            "tokenizer.characters=[1,5]",
        ),
        lambda data: languages.rows(languages.read(data)),
        file="train.tsv",
        quantize="int8",
    ),
)


def planned(model: ShippedModel) -> dict[str, Any]:
    """All settings that the model is trained with."""
    from textmill.recipes.planning import plan_recipe

    plan = plan_recipe(model.experiment, model.words, targets=["trainer"]).plan
    found: dict[str, Any] = json.loads(json.dumps(plan.settings, default=str))
    return found


def make(model: ShippedModel, lines: Iterable[str], out: Path) -> Path:
    """Trains a model and exports it into a folder, with its recipe and its notice."""
    import textmill

    content, target = "".join(lines).encode(), out.resolve() / model.name
    # The names of its files are relative, so that nothing says where it was made.
    with tempfile.TemporaryDirectory(prefix="textmill-shipped-") as folder, chdir(folder):
        Path(model.file).write_bytes(content)
        textmill.train(model.experiment, model.words, run_dir="run")
        pack(model, content, target)
    return target


def pack(model: ShippedModel, content: bytes, target: Path) -> None:
    """Exports the run in the folder ``run``, which has learnt from this content."""
    from textmill.exported.formats import ExportSettings
    from textmill.exported.manifest import MANIFEST, read, seal_folder
    from textmill.runs.export import export

    form = ExportSettings(format="onnx", quantize=model.quantize)
    made = export("run", form, out="export", device="cpu").folder
    recipe = {
        "experiment": model.experiment,
        "settings": list(model.settings),
        "rows": content.count(b"\n"),
        "rows_sha256": hashlib.sha256(content).hexdigest(),
        "planned": planned(model),
    }
    facts = vars(read(made))
    del facts["files"]
    text = json.dumps(recipe, indent=1) + "\n"
    (made / RECIPE).write_text(text, encoding="utf-8", newline="\n")
    shutil.copyfile(model.notice, made / NOTICE)
    (made / MANIFEST).unlink()
    seal_folder(made, facts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(target, replace=True) as final:
        shutil.copytree(made, final, dirs_exist_ok=True)


def main(words: Sequence[str] | None = None) -> int:
    """Makes the models that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m shipped", description="Makes what ships.")
    names = [model.name for model in MODELS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--data", type=Path, default=Path("data"), help="what they learn from")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="where they are written")
    args = parser.parse_args(words)
    if unknown := {*args.names} - {*names}:
        parser.error(f"there is no model {min(unknown)}; there are {', '.join(names)}")
    if any(os.environ.get(name) != value for name, value in ALIKE.items()):
        command = [sys.executable, "-m", "shipped", *(sys.argv[1:] if words is None else words)]
        return subprocess.run(command, env={**os.environ, **ALIKE}, check=False).returncode
    for model in MODELS:
        if not args.names or model.name in args.names:
            print(make(model, model.lines(args.data), args.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())

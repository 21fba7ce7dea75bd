"""``textmill new``: a folder with a recipe that runs, its test and its data, to begin with."""

import keyword
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from textmill.config.registry import suggest
from textmill.errors import UserError
from textmill.recipes.corpus.parts import load_corpus
from textmill.recipes.example_reviews import generate_reviews
from textmill.runtime.files import new_folder, write_file

TEMPLATES = ("classification", "lightning", "task", "translation")
"""What ``--template`` takes: the folders beside this module in ``templates``."""

HIDDEN = ("cache", "gitignore", "gitkeep")
"""What is written with a dot before its name."""

PAIRS = {"train": 5000, "valid": 200, "test": 200}
"""Lines of the data that are written: some minutes of training, to see that everything works."""
REVIEWS = {"train": 1000, "valid": 200, "test": 200}
"""The same of reviews, for the others: seconds of training."""


def new_recipe(name: str, *, template: str = "translation", where: Path | None = None) -> Path:
    """Writes a folder ``name`` with ``name.py``, ``test_name.py``, ``README.md`` and ``data``.

    The template ``lightning`` is a project of Lightning and Hydra, with folders of its own. The
    name must be one of Python's, since the test may import it. Returns the new folder, in ``where``
    or the working folder.
    """
    _check_name(name)
    if template not in TEMPLATES:
        known = f"{suggest(template, TEMPLATES)}Known: {', '.join(TEMPLATES)}."
        raise UserError(f"No template is called '{template}'. {known}")
    folder = (where or Path()) / name
    if folder.exists() or folder.is_symlink():
        raise UserError(
            f"{folder} exists already, and nothing is overwritten. Choose another name, or move it."
        )
    contents = {**_from_template(template, name), **_data(template)}
    with new_folder(folder) as made:
        for path, text in contents.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            write_file(made / path, text)
    return folder


def _check_name(name: str) -> None:
    wanted = "wanted a word of letters, digits and _ that begins with a letter"
    if not (name.isascii() and name.isidentifier() and name[0].isalpha()):
        raise UserError(f"'{name}' cannot name a recipe: {wanted}.")
    if keyword.iskeyword(name) or name in sys.stdlib_module_names:
        raise UserError(f"'{name}' cannot name a recipe: it is a word of Python's. Choose another.")
    if name in ("recipe", "conftest") or name.startswith("test_"):
        raise UserError(f"'{name}' cannot name a recipe: files of that name mean something else.")
    found = find_spec(name)  # not what is in the working folder
    if name == "textmill" or (found is not None and "site-packages" in str(found.origin or "")):
        raise UserError(f"'{name}' cannot name a recipe: an installed package has that name.")


def _from_template(template: str, name: str) -> dict[str, str]:
    """The files of a template, with the recipe's name in place of ``NAME``."""
    found = _texts(files("textmill.recipes") / "templates" / template)
    return {path.replace("NAME", name): text.replace("NAME", name) for path, text in found.items()}


def _texts(folder: Traversable) -> dict[str, str]:
    """The texts below a folder by their paths, which packages cannot have with a dot first."""
    found: dict[str, str] = {}
    for entry in folder.iterdir():
        target = entry.name.removesuffix(".txt")
        target = f".{target}" if target in HIDDEN else target
        if entry.is_dir():
            found |= {f"{target}/{path}": text for path, text in _texts(entry).items()}
        else:
            found[target] = entry.read_text(encoding="utf-8")
    return found


def _data(template: str) -> Mapping[str, str]:
    """Generated rows; none is in two files."""
    parts: Mapping[str, Sequence[tuple[str, str]]]
    if template == "translation":
        corpus = load_corpus()
        parts = {part: getattr(corpus, part)[:count] for part, count in PAIRS.items()}
    else:
        parts = generate_reviews(REVIEWS)
    folder = "data/reviews" if template == "lightning" else "data"
    return {
        f"{folder}/{part}.tsv": "".join(f"{first}\t{second}\n" for first, second in rows)
        for part, rows in parts.items()
    }

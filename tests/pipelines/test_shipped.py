"""The models that ship with textmill: what is committed, what it answers, and how it is made."""

import json
import os
import random
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from examples.prepare_references import Field
from shipped.__main__ import MODELS, NOTICE, RECIPE, make, planned
from shipped.languages import LENGTHS, pieces
from shipped.references import another_way, rows
from tests.pipelines.small_models import LANGUAGES, REFERENCES, tags_in
from textmill.exported.manifest import read
from textmill.pipelines import ReferenceParser
from textmill.pipelines.find_model import SHIPPED, find_model

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MEGABYTE = 1_000_000


@pytest.fixture(params=MODELS, ids=[model.name for model in MODELS])
def model(request):
    return request.param


def test_what_ships_is_what_is_made():
    assert sorted(path.name for path in SHIPPED.iterdir()) == sorted(each.name for each in MODELS)


def test_every_byte_is_as_its_manifest_says(model):
    manifest = read(SHIPPED / model.name)
    assert sum(entry.size for entry in manifest.files.values()) < 6 * MEGABYTE
    assert manifest.source["recipe"] == model.experiment
    assert (SHIPPED / model.name / NOTICE).read_bytes() == model.notice.read_bytes()


def leaves(tree, place=""):
    if not isinstance(tree, dict) or not tree:
        return {place: tree}
    return {
        name: value
        for key, below in tree.items()
        for name, value in leaves(below, f"{place}.{key}" if place else key).items()
    }


def test_its_recipe_is_the_experiment_of_today(model):
    """If not: make models, and commit what it made."""
    recipe = json.loads((SHIPPED / model.name / RECIPE).read_text())
    assert (recipe["experiment"], recipe["settings"]) == (model.experiment, [*model.settings])
    now, then = leaves(planned(model)), leaves(recipe["planned"])
    assert {name: (value, now.get(name)) for name, value in then.items()} == {
        name: (value, value) for name, value in then.items()
    }


def test_the_wheel_has_every_file_of_it(model):
    globs = PROJECT["tool"]["setuptools"]["package-data"]["textmill"]
    packed = {path for glob in globs for path in (ROOT / "src" / "textmill").glob(glob)}
    assert {path for path in (SHIPPED / model.name).rglob("*") if path.is_file()} <= packed
    licences = {path for glob in PROJECT["project"]["license-files"] for path in ROOT.glob(glob)}
    assert SHIPPED / model.name / NOTICE in licences


GOLDEN = {
    "Knuth, D. E. (1984). Literate programming. The Computer Journal, 27(2), 97-111.": {
        "author": "Knuth, D. E.",
        "date": "1984",
        "title": "Literate programming",
        "journal": "The Computer Journal",
        "volume": "27(2)",
        "pages": "97-111",
    },
    "C. N. Yang and R. L. Mills, Phys. Rev. 96, 191 (1954).": {
        "author": "C. N. Yang and R. L. Mills",
        "journal": "Phys. Rev.",
        "volume": "96",
        "pages": "191",
        "date": "1954",
    },
}


def test_references_are_parsed_without_torch_by_the_model_that_ships(tmp_path):
    (tmp_path / "list.txt").write_text("".join(f"{text}\n" for text in GOLDEN))
    program = "import sys; sys.modules['torch'] = None\n"
    program += "from textmill.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "parse-references", "list.txt", "--format", "json"],
        cwd=tmp_path,
        env={**os.environ, "TEXTMILL_HOME": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line)["fields"] for line in done.stdout.splitlines()]
    assert found == [*GOLDEN.values()]


def test_a_model_of_ones_own_comes_before_that_which_ships(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTMILL_HOME", str(tmp_path))
    assert find_model(ReferenceParser.wanted) == SHIPPED / "reference-parser"
    (own := tmp_path / "models" / "reference-parser").mkdir(parents=True)
    assert find_model(ReferenceParser.wanted) == own


def test_articles_are_written_another_way_with_a_tag_for_each_word():
    fields = {"author": ["J.", "Lee,"], "title": ["Old", "words."], "journal": ["Mind,"]}
    some = [another_way(random.Random(seed), fields) for seed in range(300)]
    made = [[(tag, word) for tag, word in reference] for reference in some]
    assert all(word and not word.isspace() for row in made for _, word in row)
    assert {tag for row in made for tag, _ in row} == {*fields, "volume", "pages", "date", "note"}
    without = sum("title" not in dict(row) for row in made)
    assert 100 < without < 250
    assert any(word.startswith("Phys.") for row in made for _, word in row)
    glued = [word for row in made for tag, word in row if tag == "volume" and "):" in word]
    assert glued


def small_references():
    known = [
        [Field(tag, word) for word, tag in zip(text.split(), tags_in(tags), strict=True)]
        for text, tags in REFERENCES
    ]
    return rows(known)


QUICK = {
    "reference-parser": (
        "tagging/references/local",
        ("trainer.max_steps=3", "trainer.evaluate_every=3 steps", "train_data.batch_size=2"),
        small_references,
    ),
    "language-identifier": (
        "classification/ngrams/local",
        (),
        lambda: [f"{code}\t{text}\n" for code, text in LANGUAGES * 10],
    ),
}


def test_the_same_rows_make_the_same_bytes(model, tmp_path):
    experiment, quick, lines = QUICK[model.name]
    small = replace(model, experiment=experiment, settings=(*model.settings, *quick))
    made = [make(small, lines(), tmp_path / name) for name in ("one", "two")]
    files = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in made
    ]
    assert files[0] == files[1]
    assert len(files[0]) >= 5
    assert not any(str(tmp_path).encode() in content for content in files[0].values())


def test_texts_are_cut_into_pieces_between_words():
    text = "one two three four five six seven eight nine ten eleven twelve " * 20
    some = [*pieces(random.Random(0), text, "en")]
    assert " ".join(some) == text.strip()
    lengths = [len(piece) for piece in some[:-1]]
    assert min(lengths) >= LENGTHS[0]
    assert max(lengths) < LENGTHS[1] + len(" eleven")
    assert "".join(pieces(random.Random(0), "\u99c5\u306f\u3069\u3053" * 50, "ja")) == (
        "\u99c5\u306f\u3069\u3053" * 50
    )

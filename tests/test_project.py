"""What must hold of the project as a whole, whoever changes it."""

import ast
import importlib
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import textmill
from tests.test_house import trees
from textmill.config.public_names import public_names
from textmill.errors import TRAINING_PACKAGES
from textmill.recipes import registries

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(textmill.__path__, "textmill.")
    if not module.name.endswith("__main__")
)
VAGUE_NAMES = {"common", "core", "helper", "helpers", "misc", "util", "utils"}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def every_text() -> list[tuple[str, str]]:
    """The path and text of every file a person wrote."""
    own = [
        ROOT / name for name in ("src", "tests", "docs", "examples", "benchmarks", "shipped", ".ci")
    ]
    files, texts = [f for folder in own for f in folder.rglob("*") if f.is_file()], []
    for file in sorted([*files, *(f for f in ROOT.iterdir() if f.is_file())]):
        built = {".git", "__pycache__", "_build", "textmill.egg-info"} & set(file.parts)
        if not built and file.suffix in {"", ".md", ".py", ".toml", ".txt", ".yaml"}:
            texts.append((relative(file), file.read_text(encoding="utf-8")))
    return texts


# --- names and texts --------------------------------------------------------------------------


def test_every_module_is_named_after_what_it_holds() -> None:
    assert [name for name in MODULES if VAGUE_NAMES & set(name.split("."))] == []


def test_the_former_name_stands_in_one_sentence_of_the_changelog() -> None:
    name = "we" + "ft"  # this file is searched, too
    counts = {path: f"{path} {text}".lower().count(name) for path, text in every_text()}
    assert {path: count for path, count in counts.items() if count} == {"CHANGELOG.md": 1}


def test_nothing_is_left_for_later_in_the_code() -> None:
    left = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
    assert [path for path, text in every_text() if left.search(text)] == []


def test_no_path_of_one_persons_machine_is_named() -> None:
    machine = re.compile(r"(?<![\w.}])/(?:home|mnt|root|work|Users)/\w")
    assert [path for path, text in every_text() if machine.search(text)] == []


# --- names resolve ----------------------------------------------------------------------------


def test_every_public_name_of_a_package_resolves() -> None:
    modules = [importlib.import_module(name) for name in ("textmill", *MODULES)]
    packages = [module for module in modules if hasattr(module, "__path__")]
    assert len(packages) > 10
    for module in packages:
        names = [*public_names(module.__name__)]
        assert [name for name in names if not hasattr(module, name)] == []
        assert not names or dir(module) == names


def test_a_public_name_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"^module 'textmill' has no attribute 'trian'; it"):
        _ = textmill.trian


def public_things(name: str) -> list[str]:
    """The classes and functions that a module defines and does not mark as its own."""
    things = vars(importlib.import_module(name)).items()
    return [n for n, it in things if n[0] != "_" and getattr(it, "__module__", None) == name]


def test_every_registered_name_is_there() -> None:
    for registry in registries.all_registries().values():
        found = {name: registry.name_of(registry.get(name)) for name in registry.names()}
        assert found == {name: name for name in registry.names()}


def test_every_module_with_public_names_is_in_the_reference() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    public = {name for name in MODULES if public_things(name)}
    assert public - set(re.findall(r"automodule:: (\S+)", pages)) == {
        name
        for name in public
        if name.startswith("textmill.cli.")  # commands: their page is cli.md
    }


def test_every_make_command_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / ".ci" / "run"]
    named = {
        word
        for page in pages
        for word in re.findall(r"(?:^make|`make|\$ make) ([a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert {"demo", "test", "docs", "format"} <= named <= targets


# --- light to import --------------------------------------------------------------------------

HEAVY = {
    "torch", "transformers", "numpy", "pyarrow", "pydantic", "sacrebleu", "sentencepiece",
    "tokenizers",
}  # fmt: skip


def test_the_help_and_the_room_of_settings_import_no_heavy_package() -> None:
    program = f"""import sys, textmill.config
from textmill.cli.main import main
main(["--help"])
print("heavy:", {HEAVY} & {{*sys.modules}})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy: set()"


# --- what is installed is pinned --------------------------------------------------------------


def pins(file: str = "constraints.txt") -> dict[str, str]:
    lines = (ROOT / file).read_text().splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in found}


def declared(*, but: str = "") -> list[Requirement]:
    """What the project needs, with all extras but the one named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name: needs for name, needs in project["optional-dependencies"].items() if name != but
    }
    lists = [project["dependencies"], *extras.values()]
    found = [Requirement(line) for lines in lists for line in lines]
    return [need for need in found if need.name != "textmill"]  # an extra that brings another


def test_every_dependency_is_pinned_to_a_version_it_allows() -> None:
    found = pins()
    assert [str(r) for r in declared() if canonicalize_name(r.name) not in found] == []
    wrong = [r for r in declared() if found[canonicalize_name(r.name)] not in r.specifier]
    assert [str(r) for r in wrong] == []


def test_the_extras_that_train_bring_torch_and_the_others_do_not() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    bring = {"train"}
    while more := {
        name
        for name, lines in extras.items()
        if name not in bring and {f"textmill[{brought}]" for brought in bring} & set(lines)
    }:
        bring |= more
    assert set(extras) - bring == {"excel", "exported", "hub", "pdf", "serve"}
    assert sorted(Requirement(line).name for line in extras["train"]) == list(
        TRAINING_PACKAGES.values()
    )
    makefile = (ROOT / "Makefile").read_text()
    installed = re.findall(r"^\t\$\(call install,(.*)\)$", makefile, re.MULTILINE)
    assert all(re.match(r"-e '\.\[(train|test|ray|results|bench)\]'", words) for words in installed)
    assert len(installed) == 6


def test_every_package_the_source_imports_is_declared() -> None:
    imported = set[str]()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.split(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"textmill"}
    providers = importlib.metadata.packages_distributions()
    known = {canonicalize_name(r.name) for r in declared()}
    undeclared = {
        name for name in foreign if not known & set(map(canonicalize_name, providers.get(name, [])))
    }
    assert undeclared == set()


def test_what_the_dependencies_need_is_pinned_too() -> None:
    # What torch's builds for accelerators need is pinned by torch itself, and not everywhere there.
    by_torch = re.compile(r"nvidia-|cuda-|triton")
    # The peers that textmill is measured against, and Ray, are not installed where tests run:
    # pinned by name.
    declared_here = [canonicalize_name(r.name) for r in declared(but="bench")]
    left = [name for name in declared_here if name != "ray"]
    seen, unpinned = set[str](), set[str]()
    while left:
        name = left.pop()
        if name in seen or by_torch.match(name):
            continue
        seen.add(name)
        if name not in pins():
            unpinned.add(name)
        for line in importlib.metadata.requires(name) or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                left.append(canonicalize_name(need.name))
    assert unpinned == set()


def test_every_pin_that_is_installed_allows_the_oldest_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    allowed = {}  # by the packages' own words, which are there only where the very version is
    for name, version in pins().items():
        for package in importlib.metadata.distributions(name=name):
            if package.version == version:
                allowed[name] = SpecifierSet(package.metadata.get("Requires-Python", ""))
    assert {"pytest", "safetensors", "sphinx", "rich"} <= set(allowed)
    assert {
        name: str(pythons) for name, pythons in allowed.items() if "3.11.0" not in pythons
    } == {}


def test_the_oldest_versions_that_are_allowed_are_those_that_are_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tried = pins("constraints-lowest.txt")
    allowed = {}
    lines = [*project["dependencies"], *project["optional-dependencies"]["train"]]
    for need in map(Requirement, lines):
        (oldest,) = (s.version for s in need.specifier if s.operator == ">=")
        allowed[canonicalize_name(need.name)] = Version(oldest)
    assert {name: Version(tried[name]) for name in allowed} == allowed
    assert tried["pip"] == pins()["pip"]


def test_pip_itself_is_pinned_and_comes_first_and_next_to_nothing_is_built() -> None:
    # An old pip searches for minutes where a package wants a newer Python; what has to be built
    # from its source breaks with the tools that build it. Hydra's parser is Python alone.
    assert re.fullmatch(r"[\d.]+", pins()["pip"])
    makefile = (ROOT / "Makefile").read_text()
    assert re.findall(r"-m pip install (.*)", makefile) == [
        "--disable-pip-version-check --only-binary :all: --no-binary $(BUILT) -c $(CONSTRAINTS)"
    ]
    steps = re.findall(r"^\t\$\(PIP_INSTALL\) (.*)", makefile, re.MULTILINE)
    assert steps == ["--quiet --upgrade pip", "--build-constraint $(CONSTRAINTS) $(1)"]


def test_torch_is_pinned_without_a_local_label() -> None:
    # With "+cpu" one build alone would do; without, pip takes the build it is set up for.
    assert re.fullmatch(r"\d+\.\d+\.\d+", pins()["torch"])

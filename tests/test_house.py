"""What keeps the source a house that strangers find their way in: its names, and its rooms."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "textmill"
SOURCES = sorted(SOURCE.rglob("*.py"))
MODULES = [path for path in SOURCES if path.name not in ("__init__.py", "__main__.py")]

MOST_MODULES = 22
"""In one folder: what can be seen at once."""

PUBLIC = {"models", "tasks", "text"}
"""Rooms whose classes are bases of users' own: what those override is no secret."""


@cache
def trees() -> dict[Path, ast.Module]:
    """The syntax tree of each file of the source."""
    return {path: ast.parse(path.read_text()) for path in SOURCES}


def test_no_public_class_name_means_two_things() -> None:
    homes = defaultdict(list)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_every_folder_can_be_seen_at_once() -> None:
    rooms = defaultdict(list)
    for path in MODULES:
        rooms[path.parent.relative_to(ROOT).as_posix()].append(path.name)
    assert {room: len(names) for room, names in rooms.items() if len(names) > MOST_MODULES} == {}


def test_the_page_of_the_architecture_names_every_room_and_only_what_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.parent.name for path in SOURCES if path.parent.parent.name == "textmill"}
    assert [room for room in sorted(rooms) if f"`{room}`" not in page] == []
    words = {word for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", page) for word in code.split()}
    paths = {word for word in words if "/" in word}
    places = [
        ROOT,
        ROOT / "src" / "textmill",
        *(ROOT / "src" / "textmill" / room for room in rooms),
    ]
    assert [p for p in sorted(paths) if not any((place / p).exists() for place in places)] == []


def test_a_module_is_named_by_a_string_in_its_own_room_alone() -> None:
    """As in registries: of a string import-linter sees nothing. The finder of former names may."""
    modules = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in MODULES}
    found = [
        (path.relative_to(ROOT).as_posix(), node.value)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and node.value in modules
        and node.value.split(".")[1] not in path.relative_to(ROOT).parts
    ]
    assert [where for where in found if where[0] != "src/textmill/__init__.py"] == []


def test_what_a_class_of_another_module_overrides_has_a_public_name() -> None:
    bases, hidden, homes = {}, {}, {}
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
                hidden[node.name] = {name for name in methods if re.match("_[^_]", name)}
                bases[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                homes[node.name] = path

    def above(name: str) -> set[str]:
        known = bases[name] & set(bases) - {name}
        return known.union(*map(above, known))

    assert "Task" in above("WordTagging")
    found = {
        f"{name}.{method} of {base}"
        for name in bases
        for base in above(name)
        for method in hidden[name] & hidden[base]
        if homes[base] != homes[name] and homes[base].relative_to(SOURCE).parts[0] in PUBLIC
    }
    assert found == set()


def test_every_file_of_tests_has_one() -> None:
    empty = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if not re.search(r"^ *(async )?def test_", path.read_text(), flags=re.MULTILINE)
    ]
    assert empty == []

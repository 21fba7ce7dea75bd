"""What is installed with some packages, in the Python that runs this: one line of JSON.

    python installed.py PACKAGE[EXTRA] ...

The packages, what they need, what those need, and so on: how many they are, and their megabytes
without bytecode; apart from these, the megabytes of torch and of its CUDA libraries.
"""

import json
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

TORCH = ("torch", "triton", "nvidia-", "cuda-")
"""How the names of torch's own packages begin."""


def closure(wanted: list[str]) -> Iterator[metadata.Distribution]:
    """Each package that is installed because of those that are wanted, once."""
    seen, found = set[tuple[str, str]](), set[str]()
    todo = [Requirement(each) for each in wanted]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                package = metadata.distribution(name)
            except metadata.PackageNotFoundError:
                continue  # it is for another system
            if name not in found:
                found.add(name)
                yield package
            needs = map(Requirement, package.requires or ())
            todo += [n for n in needs if not n.marker or n.marker.evaluate({"extra": extra})]


def megabytes(package: metadata.Distribution) -> float:
    """Of its files; of one that is not copied into the environment, of its source."""
    files = [Path(str(package.locate_file(file))) for file in package.files or ()]
    if "editable" in (package.read_text("direct_url.json") or ""):
        spec = find_spec(package.name)
        files += Path(next(iter(spec.submodule_search_locations))).rglob("*") if spec else ()
    sizes = (file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())
    return sum(sizes) / 1e6


def main(wanted: list[str]) -> None:
    own, torch, count = 0.0, 0.0, 0
    for package in closure(wanted):
        size = megabytes(package)
        if canonicalize_name(package.name).startswith(TORCH):
            torch += size
        else:
            own, count = own + size, count + 1
    named = [Requirement(each).name for each in wanted]
    versions = {name: metadata.version(name) for name in named}
    figures = {"packages": count, "mb": own, "torch_mb": torch, "versions": versions}
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Public names of packages, imported when they are first used."""

import subprocess
import sys

import pytest

import textmill
from textmill.config.public_names import public_name, public_names

PACKAGES = ("data", "inference", "metrics", "models", "tasks", "text", "training")


@pytest.mark.parametrize("package", ["textmill", *(f"textmill.{room}" for room in PACKAGES)])
def test_every_public_name_is_there(package):
    module = sys.modules[package] if package in sys.modules else __import__(package, fromlist="_")
    names = public_names(package)
    assert dir(module) == list(names)
    assert all(public_name(package, name).__module__ for name in names)


def test_a_name_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(AttributeError, match=r"^module 'textmill' has no attribute 'trian'; it"):
        _ = textmill.trian


def test_the_rooms_and_their_registries_import_no_torch():
    code = "import sys, textmill.runs.registries as r; print('torch' in sys.modules)"
    code += "; print(*sorted(r.all_registries()['reporters'].names()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy, names = done.stdout.splitlines()
    assert heavy == "False"
    assert "html" in names.split()

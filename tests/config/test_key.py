"""The key of a run: what changes it, and what does not."""

import subprocess
import sys

from tests.config.conftest import SCRIPT
from weft.config.key import local_modules, reached_code, run_key


def test_the_key_is_the_settings_and_the_reached_code(kitchen):
    key = run_key(kitchen.plan())
    assert len(key) == 12
    assert run_key(kitchen.plan("optimizer.lr=1e-3")) == key
    assert run_key(kitchen.plan("optimizer.lr=2e-3")) != key
    assert run_key(kitchen.plan("optimizer.type=tiny_lion")) != key
    assert run_key(kitchen.plan("trainer.steps=99")) == key


def test_comments_docstrings_layout_and_unreached_code_are_not_in_it(kitchen):
    key = run_key(kitchen.plan())
    other = SCRIPT.replace('"""Rows."""', '"""Other words."""\n    # a comment\n')
    other = other.replace("A tiny recipe", "Another text").replace(
        "    return [tokenizer, path", "    return [tokenizer,  path"
    )
    assert run_key(kitchen.plan(script=other + "\ndef unused(): return 3\n")) == key
    assert run_key(kitchen.plan(script=SCRIPT.replace("* vocab_size", "* (vocab_size + 1)"))) != key


def test_names_that_reached_code_uses_are_in_it(kitchen):
    script = (
        "A = 1\nB = 2\ndef helper(): return A\n"
        "def box() -> 'Shape': return helper()\nclass Shape: pass\n"
    )
    plan = kitchen.plan(script=script, targets=["box"])
    assert sorted(reached_code(plan)) == ["A", "Shape", "box", "helper"]


def test_local_modules_are_in_it_whole(kitchen):
    script = "from neighbour import size\ndef box(): return size()\n"
    kitchen.file("def size(): return 1\n", "neighbour.py")
    plan = kitchen.plan(script=script, targets=["box"])
    assert [path.name for path in local_modules(plan.table)] == ["neighbour.py"]
    key = run_key(plan)
    kitchen.file("def size():\n    # comment\n    return 1\n", "neighbour.py")
    assert run_key(kitchen.plan(script=script, targets=["box"])) == key
    kitchen.file("def size(): return 22\n", "neighbour.py")
    assert run_key(kitchen.plan(script=script, targets=["box"])) != key


def test_the_key_is_the_same_in_another_process(kitchen):
    code = (
        "from pathlib import Path; from weft.config.script import load_script as load; "
        "from weft.config.plan import make_plan; from weft.config.key import run_key; "
        "table, defaults = load(Path('recipe.py')), load(Path('defaults.py')); "
        "plan = make_plan(table, defaults=defaults, targets=['trainer']); "
        "print(run_key(plan))"
    )
    key = run_key(kitchen.plan())
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == key


def test_planning_imports_no_torch():
    code = (
        "import sys, weft.config.plan, weft.config.source, weft.config.help, weft.config.key; "
        "print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"

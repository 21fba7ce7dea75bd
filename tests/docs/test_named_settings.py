"""Settings that pages set in running text exist; code blocks are run instead."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from textmill.cli.main import main
from textmill.config.help import describe
from textmill.recipes import registries

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
OWNERS = (
    "affixes|callbacks|characters|dense|dictionary|labels|lr_scheduler|model|module|ngrams|optimizer"
    "|pieces|reporters|slots|task|test_data|tokenizer|train_data|trainer|valid_data"
)
FOREIGN = {"hydra.md": {"model.lr", "trainer.devices"}}  # settings of a Hydra project, not of ours


def settings_set(page: Path) -> set[str]:
    """The dotted names before an equals sign in a page's inline code."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {
        name
        for code in re.findall(r"`([^`\n]+)`", text)
        for name in re.findall(rf"(?<![\w.])((?:{OWNERS})(?:\.[a-z_0-9]+)+)=", code)
    }


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Settings of experiments (`model.encoder.filters`) and of components (`encoder.filters`)."""
    texts = [
        describe(f"{registry.concept}/{name}")
        for registry in registries.all_registries().values()
        for name in registry.names()
        if registry is not registries.experiments
    ]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        whole = [name for name in registries.experiments.names() if not name.endswith("/local")]
        for name in whole:  # a small variant has the same settings
            assert main(["help", name, "--all"]) == 0
    text = "\n".join([*texts, printed.getvalue()])
    return set(re.findall(r"^  ([a-z_]+(?:\.[a-z_0-9]+)+) \(", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_setting_that_a_page_names_exists(page: Path, known: set[str]) -> None:
    for name in settings_set(page) - FOREIGN.get(page.name, set()):
        whole = re.sub(r"^(valid|test)_data\.", "train_data.", name)
        parts = whole.removesuffix(".type").split(".")
        ends = {".".join(parts[i:]) for i in range(len(parts) - 1)}
        assert len(parts) == 1 or ends & known, name


def test_only_experiments_with_pretrained_models_have_no_small_variant() -> None:
    names = set(registries.experiments.names())
    whole = {name for name in names if not name.endswith("/local")}
    several = {"multitask/words"}  # of the tasks that a person names
    for name in whole - several - {name.removesuffix("/local") for name in names - whole}:
        assert "pretrained" in describe(name), name

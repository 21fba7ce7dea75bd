"""The page runner itself: a page that promises what does not happen must fail."""

from pathlib import Path

import pytest

from tests.docs.pages import PageError, Runner, matches, read_blocks


@pytest.fixture
def run(tmp_path: Path):
    def run_page(text: str) -> int:
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        page = tmp_path / "page.md"
        page.write_text(text)
        return Runner(folder).run(page)

    run_page.folder = tmp_path / "folder"
    return run_page


def test_console_output_must_be_the_whole_output(run) -> None:
    assert run("```console\n$ printf 'a\\nb\\n'\na\nb\n$ true\n```") == 1
    with pytest.raises(PageError, match="does not print what the page says:\na\nIt printed:\na\nb"):
        run("```console\n$ printf 'a\\nb\\n'\na\n```")


def test_numbers_vary_where_the_page_says_so(run) -> None:
    block = "```console\n$ printf 'loss 0.25  ███ at step 7\\n'\nloss 12.5 █  at step 3,000\n```"
    assert run(f"<!-- numbers vary -->\n{block}") == 1
    with pytest.raises(PageError, match="does not print what the page says"):
        run(block)
    with pytest.raises(PageError, match="does not print what the page says"):
        run(f"<!-- numbers vary -->\n{block.replace('loss 12', 'gain 12')}")


def test_a_wrong_expectation_fails_with_its_place(run) -> None:
    with pytest.raises(PageError, match=r"^page\.md:4: \$ echo hello\n"):
        run("A page.\n\n```console\n$ echo hello\ngoodbye\n```")


def test_an_unexpected_exit_code_fails(run) -> None:
    with pytest.raises(PageError, match=r"exits with 3, not with 0\. It printed:\n\(nothing\)"):
        run("```console\n$ exit 3\n```")
    with pytest.raises(PageError, match="exits with 0, not with 3"):
        run("```console\n$ true  # exits with 3\n```")
    run("```console\n$ exit 3  # exits with 3\n```")


def test_files_are_written_and_added_to(run) -> None:
    run(
        "```python\n# x/a.py\nA = 1\n```\n"
        "```python\n# x/a.py, added:\nB = A + 1\n```\n"
        "```python\n# x/a.py, added:\nC = B\n```"
    )
    assert (run.folder / "x/a.py").read_text() == "A = 1\n\n\nB = A + 1\n\n\nC = B\n"
    with pytest.raises(PageError, match=r"nothing to add to, b\.py was not written before"):
        run("```python\n# b.py, added:\nA = 1\n```")


def test_python_blocks_share_a_namespace_and_the_folder(run) -> None:
    run(
        "```python\nfrom pathlib import Path\nPath('f').write_text('x')\n```\n"
        "```python\n>>> Path('f').read_text()\n'x'\n>>> n = 3\n```\n```python\n>>> n\n3\n```"
    )
    with pytest.raises(PageError, match="Expected:\n    2\nGot:\n    3"):
        run("```python\n>>> 1 + 2\n2\n```")
    with pytest.raises(ZeroDivisionError):
        run("```python\n1 / 0\n```")


def test_a_block_is_left_out_only_for_a_reason(run) -> None:
    assert run("<!-- not run: needs the network -->\n```console\n$ false\n```") == 0
    assert run("```text\n$ false\n```") == 0
    with pytest.raises(PageError, match="exits with 1"):
        run("<!-- not run: -->\n```console\n$ false\n```")
    with pytest.raises(
        PageError, match=r"^page\.md:2: a block of language 'bash' is neither run nor marked\."
    ):
        run("```bash\nfalse\n```")


def test_indented_blocks_and_longer_fences_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("- item\n\n  ```console\n  $ true\n  ```\n\n````text\n```console\n```\n````\n")
    assert [(block.language, block.lines) for block in read_blocks(page)] == [
        ("console", ["$ true"]),
        ("text", ["```console", "```"]),
    ]


@pytest.mark.parametrize(
    ("expected", "found", "answer"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["a", "..."], ["a"], True),
        (["...", "b"], ["a", "a", "b"], True),
        (["...", "b"], ["a", "b", "c"], False),
        (["a ... c"], ["a b c"], True),
        (["a ... c"], ["a b", "c"], False),
        (["a (b) [c] *"], ["a (b) [c] *"], True),
    ],
)
def test_dots_stand_for_anything(expected: list[str], found: list[str], answer: bool) -> None:
    assert matches(expected, found) is answer

import logging
import re
from pathlib import Path

import pytest

from textmill.errors import StorageError
from textmill.runtime.logging import log_to_folder, log_to_stderr, printable


@pytest.fixture(autouse=True)
def restored_logger():
    root, logger = logging.getLogger(), logging.getLogger("textmill")
    level, before = root.level, (logger.handlers[:], logger.level)
    yield
    root.setLevel(level)
    logger.handlers[:], level = before
    logger.setLevel(level)


def test_people_get_plain_lines_once_and_the_file_gets_dates(tmp_path, capsys):
    log_to_stderr()
    log_to_stderr()
    logger = logging.getLogger("textmill.train")
    with log_to_folder(tmp_path):
        logger.info("step %d", 3)
        logger.debug("unseen")
    logger.info("after")
    assert capsys.readouterr().err == "step 3\nafter\n"
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO    textmill\.train: step 3\n"
    assert re.fullmatch(line, (tmp_path / "log.txt").read_text())


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    message = r"log\.txt cannot be written: No such file"
    with pytest.raises(StorageError, match=message), log_to_folder(tmp_path / "absent"):
        pass


def configure(*, of_root=None, of_textmill=None, handler=False):
    """A caller's own logging: levels, and a handler above textmill's logger."""
    if of_root:
        logging.getLogger().setLevel(of_root)
    if of_textmill:
        logging.getLogger("textmill").setLevel(of_textmill)
    if handler:
        logging.basicConfig(format="mine %(levelno)d")


def handle_by(handler):
    handler.setFormatter(logging.Formatter("mine %(levelno)d"))
    logging.getLogger("textmill").addHandler(handler)


MINE = [f"mine {level}" for level in (30, 20, 30, 30, 40, 30)]
WARNINGS = [line for line in MINE if line != "mine 20"]


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        (lambda: None, ["before", "warned", "failed", "after"]),
        (log_to_stderr, ["before", "quiet", "warned", "failed", "after"]),
        (lambda: handle_by(logging.StreamHandler()), WARNINGS),
        (lambda: configure(of_root=logging.ERROR), ["failed"]),
        (lambda: configure(handler=True, of_textmill=logging.INFO), MINE),
        (
            lambda: configure(handler=True, of_root=logging.INFO, of_textmill=logging.WARNING),
            WARNINGS,
        ),
    ],
)
def test_a_python_caller_sees_each_line_once_of_the_level_he_set(
    tmp_path, monkeypatch, capsys, configured, said
):
    """What he sees is the same before, within and after a run; the run's file has all."""
    monkeypatch.chdir(tmp_path)
    root, textmill = logging.getLogger(), logging.getLogger("textmill")
    with monkeypatch.context() as patch:  # pytest's own handlers are back when it takes them
        patch.setattr(root, "handlers", [])
        configured()
        before = [(logger.level, logger.handlers[:]) for logger in (root, textmill)]
        logger = logging.getLogger("textmill.train")
        logger.warning("before")
        with log_to_folder(Path()), log_to_folder(Path()):
            logger.debug("unseen")
            logger.info("quiet")
            logger.warning("warned")
            logger.warning("by the console", extra={"to_file": True})
            logger.error("failed")
        logger.warning("after")
        assert before == [(logger.level, logger.handlers) for logger in (root, textmill)]
        for handler in root.handlers:
            handler.close()
    assert capsys.readouterr().err.splitlines() == said
    lines = [line.split(": ")[1] for line in Path("log.txt").read_text().splitlines()]
    assert lines[::2] == ["quiet", "warned", "by the console", "failed"]


def test_what_a_terminal_obeys_is_shown_and_any_other_text_is_as_it_is():
    for code in (*range(32), *range(127, 160), 0x2028, 0x2029, 0xD800, 0xDFFF):
        shown = chr(code) if chr(code) in "\t\n" else ascii(chr(code))[1:-1]
        assert printable(f"a{chr(code)}b") == f"a{shown}b"
    text = "Élan vital · 漢字 🙂 naïve\n\tdone \\x1b"
    assert printable(text) == text

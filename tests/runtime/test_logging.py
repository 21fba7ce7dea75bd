import logging
import re
import subprocess
import sys

import pytest

from textmill.errors import StorageError
from textmill.runtime.logging import log_to_folder, log_to_stderr


@pytest.fixture(autouse=True)
def restored_logger():
    logger = logging.getLogger("textmill")
    before = logger.handlers[:], logger.level
    yield
    logger.handlers[:], level = before
    logger.setLevel(level)


def test_people_get_plain_lines_once_and_the_file_gets_dates(tmp_path, capsys):
    log_to_stderr()
    log_to_stderr()
    logger = logging.getLogger("textmill.train")
    with log_to_folder(tmp_path) as path:
        logger.info("step %d", 3)
        logger.debug("unseen")
    logger.info("after")
    assert capsys.readouterr().err == "step 3\nafter\n"
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO    textmill\.train: step 3\n"
    assert re.fullmatch(line, path.read_text())


def test_other_ranks_say_only_errors_and_have_their_own_file(tmp_path, capsys):
    log_to_stderr(2)
    with log_to_folder(tmp_path, rank=2) as path:
        logging.getLogger("textmill").info("quiet")
        logging.getLogger("textmill").warning("in the file")
        logging.getLogger("textmill").error("loud")
    assert capsys.readouterr().err == "[rank 2] loud\n"
    assert path.name == "log-2.txt"
    assert len(path.read_text().splitlines()) == 3


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    message = r"log\.txt cannot be written: No such file"
    with pytest.raises(StorageError, match=message), log_to_folder(tmp_path / "absent"):
        pass


CALLER = """
import logging
from pathlib import Path
from textmill.runtime.logging import log_to_folder, log_to_stderr

{configured}
logger = logging.getLogger("textmill.train")
logger.warning("before")
with log_to_folder(Path("."), rank={rank}), log_to_folder(Path("."), rank={rank}):
    logger.info("quiet")
    logger.warning("warned")
    logger.warning("by the console", extra={{"to_file": True}})
    logger.error("failed")
logger.warning("after")
"""
MINE = [f"mine {level}" for level in (30, 20, 30, 30, 40, 30)]
NOWHERE = "logging.getLogger('textmill').addHandler(logging.NullHandler())"


@pytest.mark.parametrize(
    ("configured", "rank", "said"),
    [
        ("", 0, ["before", "warned", "failed", "after"]),
        ("", 1, ["before", "failed", "after"]),
        ("log_to_stderr()", 0, ["before", "quiet", "warned", "failed", "after"]),
        (NOWHERE, 0, []),
        ("logging.getLogger('textmill').setLevel(logging.ERROR)", 0, ["failed"]),
        ("logging.getLogger('textmill').setLevel(logging.CRITICAL)", 0, []),
        ("logging.basicConfig(format='mine %(levelno)d')", 0, MINE),
        ("logging.basicConfig(filename='own.log')", 0, []),
    ],
)
def test_a_python_caller_sees_each_warning_once_unless_logging_is_configured(
    tmp_path, configured, rank, said
):
    code = CALLER.format(configured=configured, rank=rank)
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found.stderr.splitlines() == said

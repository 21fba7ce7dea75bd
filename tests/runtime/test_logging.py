import logging
import re

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

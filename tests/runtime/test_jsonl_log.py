import json

import pytest

from textmill.errors import RunError, StorageError
from textmill.runtime.jsonl_log import LineLog, json_line

pytestmark = pytest.mark.usefixtures("waiting_for_the_disk")


def test_lines_sizes_and_cutting_back(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with LineLog(path) as log:
        assert log.size == 0
        log.append(json_line({"step": 1}))
        size = log.size
        log.append(json_line({"step": 2, "text": "né \ud800 \n"}))
        assert log.size == path.stat().st_size
    with LineLog(path) as log:
        log.truncate_to(size)
        log.append(json_line({"step": 3}))
        log.sync()
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"step": 1},
        {"step": 3},
    ]


@pytest.mark.parametrize("half", ['{"st', "x" * 200_000, "\0" * 70_000])
def test_a_half_line_is_cut_on_opening(tmp_path, half):
    path = tmp_path / "log"
    path.write_text('{"a": 1}\n' + half)
    with LineLog(path) as log:
        assert log.size == 9
        log.append(json_line({"b": 2}))
    assert path.read_text() == '{"a": 1}\n{"b": 2}\n'
    path.write_text(half)
    with LineLog(path) as log:
        assert log.size == 0


def test_cutting_where_no_line_ends_is_refused(tmp_path):
    with LineLog(tmp_path / "log") as log:
        log.append(json_line({"a": 1}))
        with pytest.raises(RunError) as caught:
            log.truncate_to(10)
        assert str(caught.value) == (
            f"{log.path} should have at least 10 bytes, but has 9: "
            f"lines that the checkpoint counted are missing."
        )
        with pytest.raises(RunError) as caught:
            log.truncate_to(4)
        assert str(caught.value) == (
            f"{log.path} cannot be cut to 4 bytes: no line ends there. "
            f"It is not the file that the checkpoint knows."
        )
        assert log.size == 9


@pytest.mark.parametrize("lasting", [False, True])
def test_every_failing_call_leaves_whole_lines(tmp_path, failing_disk, lasting):
    texts: list[str] = []
    for k in range(1, 100):
        path = tmp_path / f"log-{k}"
        path.write_text('{"a": 1}\n{"half')
        written = ['{"a": 1}']
        with failing_disk(k, lasting=lasting) as state:
            try:
                with LineLog(path) as log:
                    for number in range(3):
                        try:
                            log.append(json_line({"n": number}))
                        except StorageError as error:
                            texts.append(str(error))
                        else:
                            written.append(json.dumps({"n": number}))
                    log.sync()
            except StorageError:
                pass
        if state.failed is None:
            break
        with LineLog(path):
            pass
        assert path.read_text().splitlines() == written, k
    assert k == 7  # open, truncate, three writes, sync
    assert len(texts) == (6 if lasting else 3)
    assert all("cannot be written: No space left" in text for text in texts)
    assert all("(9 bytes needed, " in text for text in texts)


def test_an_unserializable_line_changes_nothing(tmp_path):
    with LineLog(tmp_path / "log") as log:
        with pytest.raises(TypeError):
            log.append(json_line({"a": object()}))
        assert log.size == 0
    assert (tmp_path / "log").read_bytes() == b""

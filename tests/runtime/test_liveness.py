import json
import os
import re
import socket
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from torch.distributed import HashStore

from textmill.errors import OtherRankError, RankLostError
from textmill.runtime import liveness
from textmill.runtime.devices import Env
from textmill.runtime.liveness import KEY, Liveness, _Link


@pytest.fixture(autouse=True)
def no_exit(monkeypatch):
    """A test that fails leaves ranks behind, which would end this process after their grace."""
    monkeypatch.setattr(liveness, "GRACE", None)  # wait() without end


def joined(size, store=None):
    """Ranks that have found each other, all in this process."""
    store = store or HashStore()

    def join(rank):
        return Liveness(Env(rank=rank, world_size=size), store, host="127.0.0.1", timeout=20)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(join, range(size)))


def leave(ranks):
    for rank in ranks:
        rank.close()


def test_values_of_rank_0_come_in_their_order():
    ranks = joined(3)
    for value in ("a path", None, [1, 2]):
        ranks[0].send(value)
    assert [[rank.receive() for _ in range(3)] for rank in ranks[1:]] == [
        ["a path", None, [1, 2]]
    ] * 2
    assert len({rank.attempt for rank in ranks}) == 1
    leave(ranks)
    assert ranks[1].wait(5) is None  # they left in order


def died(rank):
    return rf"rank {rank} \(process {os.getpid()} on .*\) died, or cannot be reached any more: all"


def test_one_that_vanishes_is_named_on_all_at_once_and_said_once(caplog):
    ranks = joined(3)
    ranks[2]._links[0].shut()  # as the kernel does when a process ends
    for rank in ranks[:2]:
        with pytest.raises(OtherRankError, match=died(2)):
            rank.receive()
    ranks[2].lost()
    leave(ranks)
    assert len([r for r in caplog.records if re.match(f"error: {died(2)}", r.message)]) == 1


def test_rank_0_that_vanishes_is_named_by_each(caplog):
    ranks = joined(3)
    ranks[0].lost()  # it says nothing more: of its two ends, the first to close is no rank's death
    for link in ranks[0]._links.values():
        link.shut()
    for rank in ranks[1:]:
        with pytest.raises(OtherRankError, match=died(0)):
            rank.receive()
    leave(ranks)


def test_of_two_errors_the_first_is_everybodys():
    ranks = joined(3)
    ranks[1].tell("Rank 1 failed: no room", 3)
    with pytest.raises(OtherRankError, match=r"^Rank 1 failed: no room$") as other:
        ranks[2].tell("Rank 2 failed: a broken pipe", 1)
    with pytest.raises(OtherRankError, match=r"^Rank 1 failed: no room$"):
        ranks[0].tell("Rank 0 failed: it is late", 1)
    assert other.value.exit_code == 3
    leave(ranks)


def test_a_process_forked_from_one_that_dies_does_not_keep_it_alive():
    """A worker that reads data outlives its rank; it holds a copy of each open file."""
    ranks = joined(2)
    told, go = os.pipe()
    with warnings.catch_warnings():  # of Python 3.12 on: threads run here
        warnings.simplefilter("ignore", DeprecationWarning)
        worker = os.fork()
    if not worker:
        os.close(go)
        os.read(told, 1)
        os._exit(0)
    os.close(told)
    ranks[1].lost()
    ranks[1]._links[0].close()
    assert re.match(died(1), ranks[0].wait(5))
    os.close(go)
    os.waitpid(worker, 0)
    ranks[0].lost()
    leave(ranks)


def test_what_an_earlier_attempt_left_in_the_store_is_not_taken_for_this_one():
    store = HashStore()
    with socket.create_server(("127.0.0.1", 0)) as stranger:  # it listens, and answers nobody
        port = stranger.getsockname()[1]
    store.set(KEY, json.dumps(["before", "localhost", port]))
    store.set("textmill/before/error", "rank 1 died")
    ranks = joined(2, store)
    assert ranks[0].error_before == "rank 1 died"
    assert ranks[0].attempt == ranks[1].attempt != "before"
    leave(ranks)
    again = joined(2, store)  # after one that ended well
    assert again[0].error_before == "The launcher has said why."
    leave(again)


def test_strangers_that_connect_are_let_go():
    store = HashStore()
    with ThreadPoolExecutor(2) as pool:
        env = Env(rank=0, world_size=2)
        first = pool.submit(Liveness, env, store, host=None, timeout=20)
        while not store.check([KEY]):
            time.sleep(0.01)
        name, _, port = json.loads(store.get(KEY))
        for words in (["another", 1, "here"], [name, 7, "here"], [name, 0, "here"], "hello"):
            stranger = _Link(socket.create_connection(("127.0.0.1", port)))
            stranger.send(words)
            assert stranger.first() is None
            stranger.close()
        second = pool.submit(
            Liveness, Env(rank=1, world_size=2), store, host="127.0.0.1", timeout=20
        )
        ranks = [first.result(), second.result()]
    ranks[0].send(1)
    assert ranks[1].receive() == 1
    leave(ranks)


def test_a_rank_that_does_not_come_is_said():
    with pytest.raises(RankLostError, match=r"^Rank 0 of 3 found no connection to rank 1, 2\.\n"):
        Liveness(Env(rank=0, world_size=3), HashStore(), host=None, timeout=0.05)

import os
import socket
import subprocess

import torch

from tests.warm_textmill import warm_programs
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks

TWO = """
import sys, torch
from pathlib import Path
from textmill.errors import RunError
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks

env = Env.detect("cpu")
with Ranks(env) as ranks:
    assert ranks.size == 2
    assert ranks.sum_(torch.tensor([1.0, env.rank])).tolist() == [2.0, 1.0]
    assert ranks.any(env.rank == 1) and not ranks.any(False)
    assert ranks.gather({"rank": env.rank}) == [{"rank": 0}, {"rank": 1}]
    file = Path(sys.argv[1]) / "tokenizer"
    with ranks.main_first():
        if env.is_main:
            file.write_text("x")
        assert file.exists()
    assert ranks.from_main(lambda: [env.rank, "made"]) == [0, "made"]
assert not torch.distributed.is_initialized()
"""


def test_one_rank_alone_never_touches_torch_distributed(monkeypatch):
    monkeypatch.setattr(torch.distributed, "all_reduce", None)
    with Ranks(Env()) as ranks:
        assert ranks.any(True)
        assert ranks.gather(3) == [3]
        assert ranks.sum_(torch.ones(2)).tolist() == [1, 1]
        with ranks.main_first():
            pass


def test_two_processes_agree(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    processes = [
        subprocess.Popen(
            [warm_programs() / "warm-python", "-c", TWO, str(tmp_path)],
            env={**os.environ, **shared, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    # torch 2.10 says on stdout, too, that the ranks are connected: "[Gloo] Rank 0 is ...".
    said = [
        [line for line in output.splitlines() if not line.startswith("[Gloo]")]
        for output, _ in outputs
    ]
    assert said == [[], []]

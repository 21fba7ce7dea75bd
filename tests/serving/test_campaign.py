"""Ten thousand requests that are wrong, too long, too slow or dropped; and twice too many."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.serving.served import reversing

pytestmark = pytest.mark.slow
BENCH = Path(__file__).parents[2] / "benchmarks" / "serve.py"


TOKEN = "a-token-of-this-test"


def asked(body, *more, first="POST /predict HTTP/1.1", length=None, token=TOKEN, host="localhost"):
    """A question with more lines in its head, or another first one."""
    lines = [first, f"Host: {host}", "Content-Type: application/json", *more]
    lines += [] if token is None else [f"Authorization: Bearer {token}"]
    lines += [f"Content-Length: {len(body) if length is None else length}"] * (length != "none")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(body, size):
    """The same, in chunks."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    coded = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return asked(coded + b"0\r\n\r\n", "Transfer-Encoding: chunked", length="none")


def noise(draw, count):
    return bytes(draw.choices(range(256), k=count))


def bad_text(draw):
    """A JSON body of random depth and kinds, which is a row by chance only."""
    cells = [None, True, 1e300, -5, "a", "\0", "\ud800", {}, [], [[["a"]]], {"text": None}]
    found = draw.choice(cells)
    for _ in range(draw.randrange(4)):
        found = draw.choice([[found], {"text": found}, {"x": found}, [found, "a"]])
    return asked(json.dumps(found).encode())


RIGHT = b'"ab"'
METHODS = ("GET", "PUT", "DELETE", "PATCH", "OPTIONS")
KINDS = {  # what is sent, and the statuses that are right
    "right": (lambda draw: asked(RIGHT), {200}),
    "right, in chunks": (lambda draw: chunked(RIGHT, draw.randrange(1, 5)), {200}),
    "left before its answer": (lambda draw: asked(RIGHT), {None}),
    "no JSON": (lambda draw: asked(noise(draw, draw.randrange(200)) + b"}"), {400}),
    "odd rows": (bad_text, {200, 400, 422}),
    "deep": (lambda draw: asked(b"[" * draw.randrange(300, 3000)), {400}),
    "many rows": (lambda draw: asked(json.dumps(["a"] * 300).encode()), {413}),
    "long text": (lambda draw: asked(json.dumps("a" * 2000).encode()), {422}),
    "long body": (lambda draw: asked(b'"' + b"a" * 50_000 + b'"'), {413}),
    "announced": (lambda draw: asked(b"", length=10 ** draw.randrange(6, 18)), {413}),
    "two lengths": (lambda draw: asked(RIGHT, "Content-Length: 40"), {400}),
    "no HTTP": (lambda draw: noise(draw, draw.randrange(1, 300)) + b"\r\n\r\n", {400}),
    "other method": (
        lambda draw: asked(RIGHT, first=f"{draw.choice(METHODS)} /predict HTTP/1.1"),
        {405},
    ),
    "other type": (lambda draw: asked(RIGHT).replace(b"application/json", b"text/plain"), {415}),
    "no token": (lambda draw: asked(RIGHT, token=None), {401}),
    "other token": (lambda draw: asked(RIGHT, token=f"{draw.random()}"), {401}),
    "other host": (lambda draw: asked(RIGHT, host="example.org"), {421}),
    "slow body": (lambda draw: asked(RIGHT)[:-2], {408}),
    "dropped": (lambda draw: asked(RIGHT)[: draw.randrange(1, 200)], {None}),
}
NOT_AWAITED = {"dropped", "left before its answer"}


def sent(content, **head):
    """A file for a pipeline."""
    return asked(content, **head).replace(b"application/json", b"application/octet-stream")


FILES = {
    "a file": (lambda draw: sent(noise(draw, draw.randrange(1, 5000))), {200}),
    "a file of many texts": (lambda draw: sent(b"a\n" * draw.randrange(1, 9000)), {200}),
    "an empty file": (lambda draw: sent(b""), {400}),
    "a damaged file": (lambda draw: sent(b"damaged"), {422}),
    "a long file": (lambda draw: sent(b"a" * 30_000), {413}),
    "slow": (lambda draw: sent(b"ab")[:-1], {408}),
    "dropped": (lambda draw: sent(b"a" * 500)[: draw.randrange(1, 700)], {None}),
}
"""The same of a pipeline; 503 is right, too, where as many files are read or wait as may."""


async def status_of(address, kind, sent):
    """The status of the first answer on a connection of its own; None where nobody waits for it."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(sent)
        if kind in NOT_AWAITED:
            await asyncio.sleep(0.002)
            return None
        return int((await asyncio.wait_for(reader.readline(), 30)).split()[1])
    except (TimeoutError, IndexError, OSError) as error:
        return repr(error)
    finally:
        writer.transport.abort()


async def campaign(address, count, made_of=KINDS, busy=frozenset()):
    draw, at_once, wrong = random.Random(5), asyncio.Semaphore(60), Counter()

    async def one(kind):
        made, right = made_of[kind]
        async with at_once:
            found = await status_of(address, kind, made(draw))
        if found not in right | busy:
            wrong[kind, found] += 1

    # A slow one takes its whole time: there are fewer.
    kinds = draw.choices(
        [*made_of], [0.1 if kind.startswith("slow") else 1 for kind in made_of], k=count
    )
    await asyncio.gather(*map(one, kinds))
    return wrong


def megabytes(served):
    pages = Path(f"/proc/{served.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_each_of_ten_thousand_is_answered_with_the_right_status():
    limits = {"body": 20_000, "characters": 1_000, "timeout": 5.0}
    hosts = frozenset({"localhost", "127.0.0.1"})
    known = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    with reversing(limits=limits, tells=False, token=TOKEN, hosts=hosts) as served:
        assert asyncio.run(campaign(served.address, 3_000)) == {}
        before = megabytes(served)
        assert asyncio.run(campaign(served.address, 7_000)) == {}
        assert megabytes(served) < 1.05 * before
        assert served.ask("ab", **known).json() == {"prediction": "ba"}
        assert served.get("ready").status_code == 200
        counted = served.get("metrics", **known).text
        assert 'status="500"' not in counted
        assert "textmill_waiting_rows 0.0" in counted
        assert served.end() == (0, "")  # nor a traceback in its log


def test_files_that_are_wrong_long_slow_or_dropped_leave_a_pipeline_as_it_was():
    limits = {"body": 20_000, "file": 20_000, "timeout": 5.0}
    known = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    with reversing(pipeline=True, limits=limits, tells=False, token=TOKEN) as served:
        assert asyncio.run(campaign(served.address, 3_000, FILES, frozenset({503}))) == {}
        before = megabytes(served)
        assert asyncio.run(campaign(served.address, 3_000, FILES, frozenset({503}))) == {}
        assert megabytes(served) < 1.15 * before
        assert served.ask("ab", **known).json()["results"][0]["text"] == "ab"
        counted = served.get("metrics", **known).text
        assert 'status="500"' not in counted
        assert "textmill_waiting_rows 0.0" in counted
        assert served.end() == (0, "")


def test_twice_too_many_questions_do_no_harm(tmp_path):
    lines = [f"This is sentence {n}.\tVoici la phrase {n}.\n" for n in range(400)]
    (tmp_path / "train.tsv").write_text("".join(lines))
    command = [sys.executable, str(BENCH), "--peer", "overload", "--seconds", "20"]
    command += ["--data", str(tmp_path / "train.tsv"), "--cache", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["wrong"], found["lost"], found["exit"]) == (0, 0, 0)
    assert found["growth"] < 0.05
    assert set(found["statuses"]) == {"200", "503"}

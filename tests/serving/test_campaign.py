"""Ten thousand requests that are wrong, too long, too slow or dropped; and twice too many."""

import asyncio
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.serving.served import head, reversing

pytestmark = pytest.mark.slow
BENCH = Path(__file__).parents[2] / "benchmarks" / "serve.py"


def asked(body, **more):
    return head(len(body), **more) + body


def noise(draw, count):
    return bytes(draw.choices(range(256), k=count))


def bad_text(draw):
    """A JSON body of random depth and kinds, which is a row by chance only."""
    cells = [None, True, 1e300, -5, "a", "\0", "\ud800", {}, [], [[["a"]]], {"text": None}]
    found = draw.choice(cells)
    for _ in range(draw.randrange(4)):
        found = draw.choice([[found], {"text": found}, {"x": found}, [found, "a"]])
    return asked(json.dumps(found).encode())


KINDS = {  # what is sent, and the statuses that are right
    "right": (lambda draw: asked(b'"ab"'), {200}),
    "no JSON": (lambda draw: asked(noise(draw, draw.randrange(200)) + b"}"), {400}),
    "odd rows": (bad_text, {200, 400, 422}),
    "deep": (lambda draw: asked(b"[" * draw.randrange(300, 3000)), {400}),
    "many rows": (lambda draw: asked(json.dumps(["a"] * 300).encode()), {413}),
    "long text": (lambda draw: asked(json.dumps("a" * 2000).encode()), {422}),
    "long body": (lambda draw: asked(b'"' + b"a" * 50_000 + b'"'), {413}),
    "announced": (lambda draw: head(10 ** draw.randrange(6, 18)), {413}),
    "no HTTP": (lambda draw: noise(draw, draw.randrange(1, 300)) + b"\r\n\r\n", {400, 408}),
    "long head": (lambda draw: b"GET /" + b"a" * 300_000, {431}),
    "no such": (lambda draw: asked(b"{}", path=f"/{draw.random()}"), {404}),
    "slow": (lambda draw: asked(b'"ab"')[: draw.randrange(1, 90)], {408}),
    "dropped": (lambda draw: asked(b'"ab"')[: draw.randrange(1, 200)], {None}),
}


async def status_of(address, kind, sent):
    """The status of the first answer on a connection of its own; None where nobody waits for it."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(sent)
        if kind == "dropped":
            return None
        return int((await asyncio.wait_for(reader.readline(), 60)).split()[1])
    finally:
        writer.transport.abort()


async def campaign(address, count):
    draw, at_once, wrong = random.Random(5), asyncio.Semaphore(60), Counter()

    async def one(kind):
        made, right = KINDS[kind]
        async with at_once:
            found = await status_of(address, kind, made(draw))
        if found not in right:
            wrong[kind, found] += 1

    # A slow one takes its whole time: there are fewer.
    kinds = draw.choices([*KINDS], [0.1 if kind == "slow" else 1 for kind in KINDS], k=count)
    await asyncio.gather(*map(one, kinds))
    return wrong


def test_each_of_ten_thousand_is_answered_with_the_right_status():
    limits = {"body": 20_000, "characters": 1_000, "read_timeout": 2.0}
    with reversing(limits=limits, tells=False) as served:
        assert asyncio.run(campaign(served.address, 10_000)) == {}
        assert served.ask("ab").json() == {"prediction": "ba"}
        assert served.get("ready").status_code == 200
        assert served.end()[0] == 0


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

"""A served classifier: 64 clients at once, beside the model alone and an echo of the same stack.

    python benchmarks/serve.py --peer "textmill serve" --data train.tsv --cache /tmp
    python benchmarks/serve.py --peer overload --data train.tsv --cache /tmp --seconds 60

The classifier tells the languages of sentence pairs apart, and is served from its ONNX export.
``overload`` asks twice as often as was answered before, whether answers come or not; every answer
is compared with that of the model alone, and its seconds, from when it was due to be asked, with
those of one client that asks alone.
"""

import argparse
import asyncio
import gc
import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import machine

T = TypeVar("T")
PEERS: dict[str, tuple[str, ...]] = {
    "model alone": (),
    "echo": ("fastapi", "uvicorn", "uvloop"),
    "textmill serve": ("fastapi", "uvicorn", "uvloop"),
}
ROWS, TRAINED = 512, 4000
"""Different questions; rows to train on."""
TOGETHER = 64
CONNECTIONS = 450
"""That an overload opens; the server takes 1,000, with requests that begin or end at once."""
TICK = 0.001
ECHO = """
import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic_core import from_json, to_json
app = FastAPI()
@app.post("/predict")
async def echo(request: Request) -> Response:
    return Response(to_json(from_json(await request.body())), media_type="application/json")
config = uvicorn.Config(app, port=0, access_log=False, log_level="error", lifespan="off")
server = uvicorn.Server(config)
started = server.startup
async def startup(sockets=None):
    await started(sockets)
    print(f" at http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/", flush=True)
server.startup = startup
server.run()
"""


def export_of(data: Path, cache: Path) -> Path:
    """A trained classifier that tells the two languages apart, exported."""
    import textmill
    from textmill.runs.export import export as export_run

    folder, export = cache / "serve-run", cache / "serve-export"
    if not export.exists():
        rows = [text for text in texts_of(data, TRAINED) if text[1].strip()]
        file = cache / "languages.tsv"
        file.write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
        words = [f"train_data.path={file}", f"valid_data.path={file}", "reporters.console=false"]
        textmill.train("classification/ngrams/local", words, run_dir=folder)
        export_run(folder, "onnx", out=export)
    return export


def texts_of(data: Path, count: int) -> list[tuple[str, str]]:
    with data.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t")[:2] for line in itertools.islice(file, count // 2)]
    return [pair for line in lines for pair in zip(("source", "target"), line, strict=True)]


class Client(asyncio.Protocol):
    """A connection that asks one question after the other."""

    def __init__(self, asked: "Asked") -> None:
        self.asked, self.number, self.since, self.found = asked, 0, 0.0, b""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.asked.free(self)

    def ask(self, number: int, since: float) -> None:
        self.number, self.since = number % len(self.asked.questions), since
        self.transport.write(self.asked.questions[self.number])

    def data_received(self, data: bytes) -> None:
        self.found += data
        head, start, body = self.found.partition(b"\r\n\r\n")
        if start and len(body) == int(head.partition(b"content-length: ")[2].partition(b"\r")[0]):
            self.found = b""
            self.asked.answered(self, head[9:12], body)

    def connection_lost(self, exc) -> None:
        self.asked.lost += 1


class Asked:
    """Questions to a server, and what came of them."""

    def __init__(self, port: int, texts: list[str]) -> None:
        self.port = port
        head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        bodies = [json.dumps(text).encode() for text in texts]
        self.questions = [f"{head}Content-Length: {len(b)}\r\n\r\n".encode() + b for b in bodies]
        self.statuses: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.answers: set[tuple[int, bytes]] = set()
        self.lost = self.count = self.late = 0
        self.idle: list[Client] = []
        self.closed_loop, self.end = True, 0.0

    def free(self, client: Client) -> None:
        now = time.perf_counter()
        if self.closed_loop and now < self.end:
            client.ask(self.count, now)
            self.count += 1
        else:
            self.idle.append(client)

    def answered(self, client: Client, status: bytes, body: bytes) -> None:
        self.statuses[status.decode()] += 1
        if status == b"200":
            self.seconds.append(time.perf_counter() - client.since)
            self.answers.add((client.number, body))
        self.free(client)

    def wrong(self, right: list[bytes]) -> int:
        """How many different answers are not the model's."""
        return sum(not same(right[number], body) for number, body in self.answers)

    async def closed(self, clients: int, seconds: float) -> None:
        """Each client asks again when it has its answer."""
        self.end = time.perf_counter() + seconds
        await self._connect(clients)
        await asyncio.sleep(seconds)
        while len(self.idle) + self.lost < clients:
            await asyncio.sleep(0.01)

    async def open(self, rate: float, seconds: float) -> None:
        """So many questions a second, whether they are answered or not."""
        self.closed_loop = False
        start = time.perf_counter()
        while (now := time.perf_counter() - start) < seconds:
            for number in range(self.count, int(now * rate)):
                if self.idle:
                    self.idle.pop().ask(number, start + number / rate)
                else:
                    self.late += 1  # all connections wait: the question is not asked
                self.count += 1
            await asyncio.sleep(TICK)
        await asyncio.sleep(1)

    async def _connect(self, clients: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(clients):
            await loop.create_connection(lambda: Client(self), "127.0.0.1", self.port)

    def percentile(self, share: float) -> float:
        found = sorted(self.seconds) or [0.0]
        return 1000 * found[min(len(found) - 1, int(share * len(found)))]


def same(right: bytes, found: bytes) -> bool:
    """Whether an answer is the model's: rows computed together differ in the last digits."""
    if right == found:
        return True
    one, other = json.loads(right), json.loads(found)
    near = all(abs(one["scores"][k] - other["scores"][k]) < 1e-5 for k in one["scores"])
    return one["prediction"] == other["prediction"] and near


def run(asking: Coroutine[Any, Any, T]) -> T:
    """Asks by the quickest means there is, without pauses of one's own."""
    import uvloop

    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        return uvloop.run(asking)
    finally:
        gc.enable()


class Server:
    """A process that serves; its CPU seconds and its memory."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline().rstrip("/\n").rpartition(":")[2])

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=60)


def alone(predictor, texts: list[str], seconds: float) -> dict[str, float]:
    batches = itertools.cycle([texts[i : i + TOGETHER] for i in range(0, len(texts), TOGETHER)])
    predictor(next(batches))
    count, watch = 0, machine.Watch()
    while (read := watch.read())["wall_s"] < seconds:
        count += len(predictor(next(batches)))
    return {"rate": count / read["wall_s"], "us": 1e6 * read["cpu_s"] / count, **read}


def served(
    server: Server, texts: list[str], right: list[bytes] | None, args: argparse.Namespace
) -> dict[str, float]:
    run(Asked(server.port, texts).closed(args.clients, 1.0))
    asked, cpu, watch = Asked(server.port, texts), server.cpu(), machine.Watch()
    run(asked.closed(args.clients, args.seconds))
    read, cpu = watch.read(), server.cpu() - cpu
    count = asked.statuses["200"]
    others = max(0.0, read["others"] - cpu / read["wall_s"])
    return {
        "rate": count / args.seconds, "us": 1e6 * cpu / max(1, count), "others": others,
        "p50_ms": asked.percentile(0.5), "p99_ms": asked.percentile(0.99),
        "wrong": asked.wrong(right) if right else 0,
        "refused": sum(asked.statuses.values()) - count, "lost": asked.lost,
    }  # fmt: skip


def overload(
    server: Server, texts: list[str], right: list[bytes], args: argparse.Namespace
) -> dict[str, float]:
    """Twice what it can; before it, one client alone."""
    lone = served(server, texts, right, argparse.Namespace(clients=1, seconds=3.0))
    most = served(server, texts, right, argparse.Namespace(clients=64, seconds=3.0))["rate"]

    async def paced(rate: float, seconds: float) -> Asked:
        asked = Asked(server.port, texts)
        asked.closed_loop = False
        await asked._connect(CONNECTIONS)
        await asked.open(rate, seconds)
        return asked

    run(paced(most * 2, min(5.0, args.seconds)))  # what a busy server holds is held now
    before = server.megabytes()
    watch, asked = machine.Watch(), run(paced(most * 2, args.seconds))
    client = watch.read()["cpu_s"] / args.seconds
    return {
        "rate": asked.statuses["200"] / args.seconds, "most": most, "asked": 2 * most,
        "statuses": dict(asked.statuses), "not_asked": asked.late, "lost": asked.lost,
        "wrong": asked.wrong(right), "p50_ms": asked.percentile(0.5),
        "p99_ms": asked.percentile(0.99), "lone_p50_ms": lone["p50_ms"],
        "lone_p99_ms": lone["p99_ms"], "client_cores": client,
        "growth": server.megabytes() / before - 1, "exit": server.end(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", choices=[*PEERS, "overload"], required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    export = export_of(args.data, args.cache)
    texts = [text for _, text in texts_of(args.data, ROWS)]
    if args.peer == "echo":
        server = Server([sys.executable, "-c", ECHO])
        found = served(server, texts, None, args)
        server.end()
        print(json.dumps(found))
        return
    import textmill.exported
    from textmill.serving.app import _json

    predictor = textmill.exported.load(export)
    if args.peer == "model alone":
        print(json.dumps(alone(predictor, texts, args.seconds)))
        return
    right = [bytes(_json(answer).body) for _, answer in predictor.answered(texts)]
    code = "import sys; from textmill.cli.main import main; sys.exit(main())"
    server = Server([sys.executable, "-c", code, "serve", str(export), "--port", "0"])
    if args.peer == "overload":
        print(json.dumps(overload(server, texts, right, args)))
    else:
        found = served(server, texts, right, args)
        print(json.dumps({**found, "exit": server.end()}))


if __name__ == "__main__":
    main()

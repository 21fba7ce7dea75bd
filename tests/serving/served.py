"""A server of a model that is told how long to compute, as a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NotRequired

import httpx
from typing_extensions import TypedDict

from tests.waiting import wait_until
from tests.warm_textmill import warm_programs
from textmill.errors import DataError
from textmill.exported.row_predictor import RowPredictor

TOLD = "asked "
"""What the process prints of each batch, before its number of rows."""


class ReversedRow(TypedDict):
    """A text from its end."""

    prediction: str


class Reversed(RowPredictor):
    """Reverses texts; ``hold FILE`` waits until the file is there, ``fail`` raises."""

    tells = True

    def answers(self, rows):
        texts = [row["text"] for row in rows]
        if self.tells:  # to a pipe, which somebody has to read
            print(f"{TOLD}{len(texts)}", flush=True)
        for text in texts:
            if not isinstance(text, str):
                raise DataError("Row 0, column 'text': wanted text.")
            if text.startswith("hold "):
                hold(Path(text.split()[1]))
            if text == "fail":
                raise RuntimeError("a bug")
        if "no" in texts:
            raise DataError(f"Row {texts.index('no')}, column 'text': no.")
        return [text[::-1] for text in texts]

    def check(self, row):
        if row["text"] == "no":
            raise DataError("Row 0, column 'text': no.")

    def answer_row(self, answer) -> ReversedRow:
        return {"prediction": answer}


class Told(RowPredictor):
    """Answers what the column ``answer`` says, as JSON."""

    def answers(self, rows):
        for row in rows:
            self.check(row)
        return [json.loads(row["answer"]) for row in rows]

    def check(self, row):
        try:
            json.loads(row["answer"])
        except ValueError:
            raise DataError("Row 0, column 'answer': no JSON.") from None

    def answer_row(self, answer):
        return answer


class FoundRow(TypedDict):
    """A text with its first word."""

    text: str
    spans: NotRequired[list[dict]]
    error: NotRequired[str]


@dataclass
class Found:
    """A text of :class:`FirstWords`."""

    text: str
    line: int = 1
    error: str | None = None

    def row(self) -> FoundRow:
        if self.error:
            return {"text": self.text, "error": self.error}
        end = len(self.text.split(" ")[0])
        span = {"kind": f"kind {self.line}", "text": self.text[:end], "start": 0, "end": end}
        fields = {span["kind"]: span["text"]}
        row = {"text": self.text, "page": self.line, "spans": [span], "fields": fields}
        if self.text.startswith("told "):  # as another pipeline answers
            row |= json.loads(self.text.partition(" ")[2])
            del row["fields"]
        return row


class FirstWords:
    """A pipeline: the first word of each text, or of each line of a file."""

    name, extensions, result_class = "first-words", (".txt", ".pdf"), Found

    def predict(self, given, type=None):
        return [Found(text, error="no." if text == "no" else None) for text in given]

    def read(self, stream, name, *, seconds=None):
        if Reversed.tells:
            print(f"{TOLD}a file", flush=True)
        end = time.monotonic() + seconds
        for number, line in enumerate(stream.read().decode("latin-1").splitlines(), start=1):
            if line.startswith("hold "):
                hold(Path(line.split()[1]))
            if line == "damaged":
                raise DataError(f"{name}: page {number}: it is damaged")
            if line == "fail":
                raise RuntimeError("a bug")
            if time.monotonic() > end:
                raise DataError(f"{name}: it takes too long")
            if line == "slow":
                time.sleep(0.05)
            yield Found(line, line=number, error="no." if line == "no" else None)


def hold(path):
    path.with_suffix(".begun").touch()
    while not path.exists():
        time.sleep(0.005)


@dataclass
class Served:
    """A running server."""

    url: str
    process: subprocess.Popen

    @property
    def address(self):
        return "127.0.0.1", int(self.url.rpartition(":")[2].strip("/"))

    def ask(self, rows, **more):
        return httpx.post(f"{self.url}predict", json=rows, timeout=20, **more)

    def send(self, content, kind="application/octet-stream"):
        """Asks with a body as it is, by default a file."""
        headers = {"Content-Type": kind}
        return httpx.post(f"{self.url}predict", content=content, headers=headers, timeout=60)

    def get(self, path, **more):
        return httpx.get(f"{self.url}{path}", timeout=20, **more)

    @contextmanager
    def connection(self, data=b""):
        with socket.create_connection(self.address, timeout=10) as raw:
            raw.sendall(data)
            yield raw

    @contextmanager
    def held(self, path):
        """While the block runs, the model computes; the connection that it answers after it."""
        with self.connection(question(f"hold {path}")) as raw:
            try:
                wait_until(path.with_suffix(".begun").exists)
                yield raw
            finally:
                path.touch()

    @contextmanager
    def waiting(self, texts):
        """Connections whose questions wait for the model."""
        with ExitStack() as stack:
            raws = [stack.enter_context(self.connection(question(text))) for text in texts]
            wait_until(lambda: f"textmill_waiting_rows {len(texts)}.0" in self.get("metrics").text)
            yield raws

    def said(self, data):
        """All that is answered to bytes on a connection of their own."""
        with self.connection(data) as raw:
            return read_all(raw)

    def end(self, number=signal.SIGTERM):
        """Its exit code, and what it printed."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        out, _ = self.process.communicate(timeout=20)
        return self.process.returncode, out


def read_all(raw):
    """What comes until the other side closes."""
    found = b""
    try:
        while part := raw.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found


def read_answer(raw):
    """An answer in JSON, on a connection that goes on: its head and its body come apart."""
    found = b""
    while not found.endswith(b"}") and (part := raw.recv(1 << 16)):
        found += part
    return found


def question(text):
    """A question that is the last of its connection."""
    body = json.dumps(text).encode()
    return head(len(body)).replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body


def head(length):
    """The head of a question with a body of so many bytes."""
    lines = ["POST /predict HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


@contextmanager
def started(command):
    """A server that a command starts, which prints its address last."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        said = ""
        for line in process.stdout:
            said += line
            if " at http://" in line:
                yield Served(line.rsplit(" ", 1)[1].strip(), process)
                break
        else:
            raise AssertionError(f"it did not serve:\n{said}")
    finally:
        process.kill()
        process.wait()
        if not process.stdout.closed:
            process.stdout.read()  # until a command that is forked for the process is gone, too
            process.stdout.close()


def reversing(**settings):
    """A server of :class:`Reversed`; ``limits`` and the rest as a service takes them."""
    return started([warm_programs() / "warm-python", "-m", "tests.serving.served", repr(settings)])


def main():
    from textmill.cli.serve import read_table
    from textmill.serving.app import Service
    from textmill.serving.documents import PipelineRows
    from textmill.serving.limits import Limits
    from textmill.serving.server import bound, serve

    settings = eval(sys.argv[1])
    columns = settings.pop("columns", ["text"])
    limits = Limits(**settings.pop("limits", {}))
    if settings.pop("pipeline", False):
        predictor = PipelineRows(FirstWords(), limits.timeout)
    else:
        predictor = Told(columns) if "answer" in columns else Reversed(columns)
    Reversed.tells = settings.pop("tells", True)
    if settings.pop("tables", False):
        settings["read_table"] = partial(read_table, columns, {})
    service = Service(
        predictor=predictor,
        name="reversed",
        limits=limits,
        examples=[dict.fromkeys(columns, "<b>abc</b>")],
        **settings,
    )
    with bound("127.0.0.1", 0) as listener:
        serve(service, listener, lambda url: print(f"reversed at {url}/", flush=True))


if __name__ == "__main__":
    main()

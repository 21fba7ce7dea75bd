"""A PDF to a document: read by a process of its own, within limits."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import IO

from textmill.errors import MissingExtraError, UserError, worded
from textmill.pipelines.documents.document import Document, DocumentError, Line, Parts, Passage
from textmill.runtime.files import opened

MIB = 1 << 20
HEAD = 1024
"""Bytes within which a PDF says that it is one, as readers of PDFs take them."""
LONGEST_PASSWORD = 127
"""Bytes: no PDF has a longer one."""
LOCKED = "is encrypted and needs a password"
"""What the process says of a file that wants one."""


@dataclass(frozen=True, kw_only=True)
class PdfLimits:
    """Limits of reading a PDF; beyond one is an error, whatever the file holds."""

    bytes: int = 256 * MIB
    """Of the file."""
    pages: int = 2000
    page_characters: int = 200_000
    """On one page; a page of small print has 10,000."""
    characters: int = 20_000_000
    """On all pages; 2,000 pages of small print."""
    lines: int = 500_000
    """On all pages; 2,000 pages of small print in two columns."""
    seconds: float = 120
    """Of waiting, from start to end; 500 dense pages take 10 of a processor."""
    memory: int = 1024 * MIB
    """Bytes that the process takes to read, beside those of the file and of the program."""


def read_pdf(
    source: str | Path | bytes,
    *,
    name: str | None = None,
    limits: PdfLimits | None = None,
    password: str | None = None,
) -> Document:
    """The lines of a PDF in reading order, without running heads, page and line numbers.

    A process of its own reads it, and finds its references, abstract and body, so that a file that
    crashes the reader, or has it take all time or memory, ends in an error.

    Args:
        source: A path, or what the file holds.
        name: What errors call it; else its path.
        limits: What reading it may take.
        password: Of one that is encrypted; others are read without.

    Raises:
        DocumentError: It is no PDF, damaged, without text, or beyond a limit; or it is encrypted,
            and the password is not given, or another.
        UserError: A password can be none of a PDF.
        MissingExtraError: The package pypdfium2 is not installed.
    """
    limits, secret = limits or PdfLimits(), _secret(password)
    if find_spec("pypdfium2") is None:
        raise MissingExtraError("pypdfium2", extra="pdf", what="Reading a PDF")
    if isinstance(source, bytes):
        name = name or "the PDF"
        with tempfile.TemporaryFile(buffering=0) as copy:
            copy.write(source)
            return _read(copy, len(source), name, limits, secret=secret)
    name = name or str(source)

    def refuse(reason: str) -> DocumentError:
        reason = reason.removeprefix(f"{name}: ")
        return DocumentError(name, "there is no such file" if reason == "missing" else reason)

    with opened(Path(source), refuse, name=name, links=True) as (file, size):
        try:
            return _read(file, size, name, limits, secret=secret)
        except DocumentError as error:
            if error.reason != LOCKED:
                raise
            how = worded("--password WORD", "password=")
            raise DocumentError(name, f"{LOCKED}: give it with {how}") from None


def _secret(password: str | None) -> bytes | None:
    """A password as bytes."""
    if password is None:
        return None
    found = password.encode("utf-8", "surrogateescape")
    if len(found) > LONGEST_PASSWORD or b"\0" in found:
        raise UserError(
            f"{worded('--password', 'password')}: that of a PDF has {LONGEST_PASSWORD} bytes at "
            f"most, and no NUL; this one has {len(found):,}."
        )
    return found


def _read(
    file: IO[bytes], size: int, name: str, limits: PdfLimits, *, secret: bytes | None
) -> Document:
    if size > limits.bytes:
        raise DocumentError(name, f"{size:,} bytes are more than the {limits.bytes:,} allowed")
    if b"%PDF-" not in os.pread(file.fileno(), HEAD, 0):
        raise DocumentError(name, f"is no PDF: '%PDF-' was not found in its first {HEAD:,} bytes")
    bounds = (limits.memory + size, ceil(limits.seconds), limits.pages, limits.page_characters)
    with tempfile.TemporaryFile() as said, _piped(secret) as pipe:
        process = subprocess.Popen(  # noqa: S603  # this Python, a module of ours
            [sys.executable, "-P", "-m", "textmill.pipelines.documents.pdf_worker"]
            + [str(n) for n in (*bounds, limits.characters, limits.lines, *(pipe or [0]))],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy's threads would take memory
            pass_fds=pipe,
            stdin=file.fileno(),
            stdout=subprocess.PIPE,
            stderr=said,
        )
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(limits.seconds, end)
        timer.start()
        try:
            return _told(process, name, late, limits)
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def _piped(secret: bytes | None) -> Iterator[list[int]]:
    """The end of a pipe that a password is read from: arguments are seen by other people."""
    if secret is None:
        yield []
        return
    reads, writes = os.pipe()
    os.write(writes, secret)  # a pipe holds more than any password has
    os.close(writes)
    try:
        yield [reads]
    finally:
        os.close(reads)


def _told(
    process: subprocess.Popen[bytes], name: str, late: threading.Event, limits: PdfLimits
) -> Document:
    """The document that the process writes; if it ends before that, the file is at fault."""
    assert process.stdout is not None
    lines, page = list[Line](), None
    passages: dict[str, list[Passage]] = {"reference": [], "abstract": [], "body": []}
    for row in process.stdout:
        if not row.endswith(b"\n"):
            break
        what, told = json.loads(row)
        if what == "error":
            raise DocumentError(name, told, page=page)
        if what == "page":
            page = told
        elif what == "line":
            lines.append(Line(*told))
        elif what == "end":
            abstract = next(iter(passages["abstract"]), None)
            parts = Parts(passages["reference"], abstract, passages["body"][0])
            return Document(name, told, lines, parts)
        else:
            text, label, starts = told
            passages[what].append(Passage(text, label, tuple(map(tuple, starts))))
    process.wait()
    if late.is_set() or process.returncode in (-24, -9):  # SIGXCPU, and SIGKILL a second later
        raise DocumentError(name, f"takes longer than {limits.seconds:g} s to read", page=page)
    raise DocumentError(
        name,
        f"is damaged, or needs more than {limits.memory // MIB:,} MiB: the reader of PDFs ended "
        f"with code {process.returncode}",
        page=page,
    )

"""PDFs of any kind end in lines or in an error that says what they are, within limits."""

import io
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from tests.pipelines.documents import hostile_pdfs
from tests.pipelines.documents.layouts import WRITTEN_AGAINST
from tests.pipelines.documents.paper_pdf import paper
from textmill.errors import MissingExtraError, UserError
from textmill.pipelines.documents import (
    DocumentError,
    PdfLimits,
    find_abstract,
    find_references,
    pdf,
    read_pdf,
)
from textmill.pipelines.documents.page_layout import written
from textmill.pipelines.documents.pdf_worker import _characters

T = TypeVar("T")
FONT = ("Helvetica", 12)
PAPER = paper(WRITTEN_AGAINST["journal, numbered, 2 col."], seed=3).content


def drawn(*texts: str, turn: int = 0, encrypt=None) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, encrypt=encrypt)
    for number, text in enumerate(texts):
        canvas.saveState()
        if turn:
            canvas.translate(300, 400)
            canvas.rotate(turn)
        canvas.drawString(20, 100 - 14 * number, text)
        canvas.restoreState()
    canvas.save()
    return file.getvalue()


def refusal(content: bytes, **limits: int) -> str:
    with pytest.raises(DocumentError) as caught:
        read_pdf(content, name="it.pdf", limits=PdfLimits(**limits))
    return str(caught.value)


def test_a_path_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(PAPER)
    by_path, by_bytes = read_pdf(tmp_path / "paper.pdf"), read_pdf(PAPER)
    assert by_path.lines == by_bytes.lines
    assert by_path.name == str(tmp_path / "paper.pdf")


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.pdf: there is no such file"):
        read_pdf(tmp_path / "none.pdf")
    with pytest.raises(DocumentError, match="not a regular file"):
        read_pdf(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>no</html>", "is no PDF: '%PDF-' was not found"),
        (PAPER[: len(PAPER) // 2], "is no PDF, or a damaged one"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 100, "is no PDF, or a damaged one"),
        (hostile_pdfs.one_page(b""), "has no text on any of its pages (1): it was scanned"),
        (hostile_pdfs.cyclic(), "has no text on any of its pages (1,000)"),
        (hostile_pdfs.of_pages(5000), "has 5,000 pages, more than the 2,000 allowed"),
        (drawn("a", encrypt=StandardEncryption("secret")), "is encrypted and needs a password"),
    ],
    ids=["html", "half", "noise", "empty", "cycle", "pages", "encrypted"],
)
def test_what_cannot_be_read_is_told(content: bytes, reason: str) -> None:
    assert refusal(content).startswith(f"it.pdf: {reason}")


def test_what_only_its_owner_has_a_password_for_is_read() -> None:
    content = drawn("open to all", encrypt=StandardEncryption("", ownerPassword="secret"))
    assert read_pdf(content).text == "open to all"


def test_what_is_encrypted_is_read_with_its_password(tmp_path: Path, monkeypatch) -> None:
    begun, began = [], pdf.subprocess.Popen
    monkeypatch.setattr(
        pdf.subprocess,
        "Popen",
        lambda *given, **named: begun.append(given) or began(*given, **named),
    )
    for word, other in (("secret", "Secret"), ("p\u00e4ss wort", "")):
        content = drawn("for some", encrypt=StandardEncryption(word))
        (tmp_path / "it.pdf").write_bytes(content)
        assert read_pdf(tmp_path / "it.pdf", password=word).text == "for some"
        with pytest.raises(DocumentError, match="is encrypted, and its password is another"):
            read_pdf(content, password=other)
    assert len(begun) == 4
    assert "secret" not in str(begun)
    with pytest.raises(DocumentError, match=r"needs a password: give it with password=$"):
        read_pdf(tmp_path / "it.pdf")
    for wrong in ("a" * 128, "a\0"):
        with pytest.raises(UserError, match="has 127 bytes at most, and no NUL"):
            read_pdf(content, password=wrong)
    assert read_pdf(drawn("open"), password="any").text == "open"


def test_limits_hold() -> None:
    assert "bytes are more than the 100 allowed" in refusal(PAPER, bytes=100)
    many = hostile_pdfs.of_characters(3000)
    told = "it.pdf: page 1: 3,004 characters on one page are more than the 3,000 allowed"
    assert refusal(many, page_characters=3000) == told
    assert refusal(many, characters=3000) == told


def test_what_takes_all_memory_or_time_ends_in_an_error() -> None:
    # Each form read takes memory: 1 GiB lasts less than two seconds on some machines.
    forms = refusal(hostile_pdfs.nested_forms(30), seconds=1, memory=8 << 30)
    assert "takes longer than 1 s to read" in forms
    memory = refusal(hostile_pdfs.of_characters(3_000_000), memory=256 << 20)
    assert "page 1: is damaged, or needs more than 256 MiB" in memory


def test_a_small_file_of_a_long_word_is_read_soon() -> None:
    content = hostile_pdfs.one_long_word(180_000)
    assert len(content) < 1000
    references = find_references(read_pdf(content, limits=PdfLimits(seconds=30)))
    assert [len(each.text) for each in references] == [180_022, 8]


def test_whatever_is_slow_of_a_pdf_is_in_its_process() -> None:
    content = hostile_pdfs.of_rows(4_000)
    before = resource.getrusage(resource.RUSAGE_SELF)
    document = read_pdf(content, limits=PdfLimits(seconds=60))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before.ru_utime
    assert len(document.lines) == 8_000
    assert (find_references(document), find_abstract(document)) == ([], None)
    assert used < 0.4  # of more than one that it takes in all
    assert len(read_pdf(hostile_pdfs.of_rows(30_000), limits=PdfLimits(seconds=60)).lines) == 30_000
    told = refusal(hostile_pdfs.of_rows(20), lines=19)
    assert told == "it.pdf: page 1: has more than the 19 lines allowed"
    assert "takes longer than 0.2 s to read" in refusal(content, seconds=0.2)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends it")
def test_the_process_that_reads_ends_with_the_one_that_asked(tmp_path: Path) -> None:
    path = tmp_path / "forms.pdf"
    path.write_bytes(hostile_pdfs.nested_forms(30))
    asks = "import sys; from textmill.pipelines.documents import read_pdf; read_pdf(sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", asks, str(path)]) as asking:
        children = Path(f"/proc/{asking.pid}/task/{asking.pid}/children")
        reading = Path("/proc", until(children.read_text).split()[0])
        until(lambda: b"pypdfium2" in (reading / "maps").read_bytes())
        asking.send_signal(signal.SIGTERM)
    until(lambda: not reading.exists() or "\nState:\tZ" in (reading / "status").read_text(), 1)


def until(holds: Callable[[], T], seconds: float = 20) -> T:
    """The first true value, within so many seconds."""
    end = time.monotonic() + seconds
    while not (told := holds()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return told


def test_damage_anywhere_ends_in_lines_or_an_error() -> None:
    told = list[str]()
    for count in (3, 30, 300):
        rng, content = random.Random(count), bytearray(PAPER)
        for _ in range(count):
            content[rng.randrange(len(content))] = rng.randrange(256)
        try:
            find_references(read_pdf(bytes(content)))
        except UserError as error:
            told.append(str(error))
    assert all(each.startswith("the PDF: ") for each in told)


def test_what_runs_upwards_is_read_and_a_stamp_beside_it_is_not() -> None:
    assert read_pdf(drawn("first line", "second line", turn=90)).text == "first line\nsecond line"
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(100, 400, "What the page says at length.")
    canvas.rotate(90)
    canvas.drawString(100, -20, "arXiv:1706.03762")
    canvas.save()
    assert read_pdf(file.getvalue()).text == "What the page says at length."


def test_ligatures_are_letters() -> None:
    assert written("e\ufb03cient  \ufb02ow") == "efficient flow"
    assert written("x² and a\u00adb") == "x² and ab"
    assert written("53:252{263, a{b") == "53:252–263, a{b"


def test_an_accent_belongs_to_the_letter_that_it_is_drawn_over() -> None:
    """Whether it is drawn before its letter, after it, or once the line is written."""
    file = io.BytesIO()
    canvas = Canvas(file)

    def over(start: str, accent: str, letter: str, raised: float = 0) -> None:
        middle = (stringWidth(letter, *FONT) - stringWidth(accent, *FONT)) / 2
        canvas.drawString(100 + stringWidth(start, *FONT) + middle, 400 + raised, accent)

    over("", "´", "E", raised=2.5)
    canvas.drawString(100, 400, "E. G")
    over("E. G", "¨", "o")
    canvas.drawString(100 + stringWidth("E. G", *FONT), 400, "odel and a Francois’ e")
    over("E. Godel and a Fran", "¸", "c")
    canvas.save()
    assert read_pdf(file.getvalue()).text == "É. Gödel and a François’ e"


def test_letters_beyond_16_bits_are_whole() -> None:
    assert _characters([0xD835, 0xDC65, 0x41]) == "\U0001d465A"  # two units of UTF-16
    assert _characters([0x1D465, 2, 0, 0xD835]) == "\U0001d465-\ufffd\ufffd"


def test_without_its_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'textmill\[pdf\]'"):
        read_pdf(PAPER)

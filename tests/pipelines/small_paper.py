"""A paper of two pages: abstract, a body that goes on over the page, and a list of references."""

from functools import cache
from io import BytesIO

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from tests.pipelines.small_models import REFERENCES

PAGES = [
    [
        ("A paper of mine", 16),
        ("Abstract", 12),
        ("It is new. We train on CIFAR-10.", 10),
        ("1 Introduction", 12),
        ("The DBLP data is old. This is the first page and it is filled", 10),
        ("with words until it ends. Nothing else is to be said of", 10),
    ],
    [
        ("what is there. We train on CIFAR-10.", 10),
        ("References", 12),
        *((f"[{number}] {text}", 10) for number, (text, _) in enumerate(REFERENCES, 1)),
    ],
]


@cache
def paper(password: str | None = None) -> bytes:
    """The PDF; encrypted where it has a password."""
    file = BytesIO()
    canvas = Canvas(file, pagesize=A4, invariant=1, encrypt=password)
    for lines in PAGES:
        y = 780.0
        for text, size in lines:
            y -= 14 if size == 10 else 30
            canvas.setFont("Helvetica-Bold" if size > 10 else "Helvetica", size)
            canvas.drawString(72, y, text)
        canvas.showPage()
    canvas.save()
    return file.getvalue()

"""PDFs written by hand, object by object: such as no program writes."""

import zlib


def pdf(objects: list[bytes], *, root: int = 1) -> bytes:
    """A file of objects numbered from 1, with a table of where they are."""
    content, places = b"%PDF-1.7\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(content)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    content += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, rows)
    trailer = b"<< /Size %d /Root %d 0 R >>" % (len(objects) + 1, root)
    return content + b"trailer\n%s\nstartxref\n%d\n%%%%EOF\n" % (trailer, start)


def stream(content: bytes, *, packed: int = 0) -> bytes:
    """A stream, packed as often as said."""
    for _ in range(packed):
        content = zlib.compress(content, 9)
    filters = b"/Filter [%s]" % (b"/FlateDecode " * packed) if packed else b""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), filters, content)


def one_page(content: bytes, *, packed: int = 1) -> bytes:
    """A page with this content, in Helvetica."""
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>"
    )
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page, stream(content, packed=packed),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
    )  # fmt: skip


def of_characters(count: int) -> bytes:
    """A page with as many characters, in lines of 1,000."""
    lines = b"(" + b"x" * 1000 + b") Tj T*\n"
    return one_page(b"BT /F1 1 Tf 1 TL 0 780 Td\n" + lines * (count // 1000) + b"ET")


def cyclic() -> bytes:
    """A tree of pages that has itself as a branch."""
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 1000 /Parent 3 0 R >>",
            b"<< /Type /Pages /Kids [2 0 R] /Count 1000 /Parent 2 0 R >>",
        ]
    )


def of_pages(count: int) -> bytes:
    """A tree with as many empty pages."""
    kids = b" ".join(b"%d 0 R" % (number + 3) for number in range(count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"
    tree = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count)
    return pdf([b"<< /Type /Catalog /Pages 2 0 R >>", tree, *[page] * count])


def nested_forms(depth: int) -> bytes:
    """A form that draws a form twice, and so on: exponential in the depth."""
    head = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] "
    forms = []
    for number in range(depth):
        inner = b"/Resources << /XObject << /A %d 0 R >> >>" % (number + 7)
        if number == depth - 1:
            inner = b"/Resources << /Font << /F1 5 0 R >> >>"
        content = b"/A Do /A Do" if number < depth - 1 else b"BT /F1 9 Tf (deep) Tj ET"
        length = b"/Length %d >>\nstream\n%s\nendstream" % (len(content), content)
        forms.append(head + inner + length)
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /XObject << /A 6 0 R >> >> >>"
    )
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page, stream(b"/A Do"), b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            *forms,
        ]
    )  # fmt: skip


def one_long_word(letters: int) -> bytes:
    """A list of two references, between which a word fills a line: 740 bytes, packed twice."""
    piece = b"(" + b"x" * 30_000 + b") Tj "
    content = b"BT /F1 9 Tf 12 TL 40 780 Td (References) Tj T* ([1] Knuth 1984) Tj T* "
    content += piece * (letters // 30_000) + b"T* (Gries 1999) Tj T* ([2] Lee 1999) Tj ET"
    return one_page(content, packed=2)


def of_rows(count: int) -> bytes:
    """A page with as many rows, each in two columns."""
    row = b"1 0 0 1 10 %d Tm (a) Tj 1 0 0 1 400 %d Tm (b) Tj "
    rows = b"".join(row % (-2 * number, -2 * number) for number in range(count))
    return one_page(b"BT /F1 1 Tf " + rows + b"ET")

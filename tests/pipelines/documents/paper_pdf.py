"""Papers as PDFs: text broken into lines, lines flowed through columns and pages, by reportlab."""

import io
import random
import re
from dataclasses import dataclass, field

from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from tests.pipelines.documents import paper_text

VOWELS = "aeiouyáéíóúäöüåøèê"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a paper is set; lengths are in points."""

    columns: int = 1
    paper: tuple[float, float] = (612, 792)
    margin: float = 72
    gutter: float = 18
    font: str = "Times-Roman"
    bold: str = "Times-Bold"
    size: float = 10
    leading: float = 12
    justify: bool = True
    hyphenate: bool = True
    spaces: bool = False  # whether spaces are written, as by Word, or only skipped, as by TeX
    style: str = "acl"
    label: str = ""  # "[{}]", "{}." ... or nothing, for lists by author
    raised: bool = False  # whether labels are superscripts
    label_width: float = 18
    label_right: bool = False
    hang: float = 10
    first_indent: float = 0
    gap: float = 4  # between references
    list_size: float | None = None
    heading: str = "References"
    heading_align: str = "left"
    heading_size: float = 12
    head: str = ""  # a running head; {n} is the page
    head_odd: str | None = None
    foot: str = "{n}"
    foot_align: str = "center"
    abstract: bool = True
    contents: bool = False
    after: str = ""  # a section behind the references
    footnotes: bool = False
    line_numbers: int = 0
    count: int = 30
    first_page: int = 1
    centred_title: bool = True
    row_by_row: bool = False  # whether lines of both columns are written alternately
    caption: bool = False  # a full-width caption at the top of a page


@dataclass
class Style:
    """A paragraph's."""

    size: float
    leading: float
    font: str
    left: float = 0
    first: float = 0
    before: float = 0
    justify: bool = True
    align: str = "left"
    hyphenate: bool = True


@dataclass
class Paper:
    """A PDF, and what is in it."""

    content: bytes
    references: list[str]
    abstract: str
    pages: int
    body: list[str] = field(default_factory=list)


def pieces(word: str) -> list[str]:
    """Where a word may end a line: behind hyphens of its own, in an address behind its signs."""
    if re.match(r"(https?:|www\.|doi:)", word):
        return re.findall(r"[^/._]*[/._]+|[^/._]+", word)
    return (
        re.findall(r"[^-–]+[-–]?|[-–]", word)
        if "–" not in word
        else re.findall(r"[^-–]*[-–]|[^-–]+", word)
    )


def syllables(word: str) -> list[int]:
    """Places in a word where it may be broken with a hyphen: a vowel before, a consonant behind."""
    if not word.isalpha() or len(word) < 6 or word[1:].lower() != word[1:]:
        return []
    return [
        n
        for n in range(3, len(word) - 2)
        if word[n - 1] in VOWELS and word[n] not in VOWELS and word[n + 1] in VOWELS
    ]


class Typesetter:
    """Pages filled column by column."""

    def __init__(self, layout: Layout, rng: random.Random) -> None:
        self.layout, self.rng = layout, rng
        self.file = io.BytesIO()
        self.canvas = Canvas(self.file, pagesize=layout.paper, pageCompression=1)
        self.page, self.column = 0, 0
        self.top = [0.0] * layout.columns
        self.drawn: list[tuple[float, list[tuple[float, str, str, float]], float]] = []
        self.new_page()

    @property
    def width(self) -> float:
        lay = self.layout
        return (lay.paper[0] - 2 * lay.margin - lay.gutter * (lay.columns - 1)) / lay.columns

    @property
    def x(self) -> float:
        return self.layout.margin + self.column * (self.width + self.layout.gutter)

    def new_page(self) -> None:
        if self.page:
            self.finish_page()
        self.page += 1
        self.column = 0
        self.bottom = [self.layout.margin] * self.layout.columns
        top = self.layout.paper[1] - self.layout.margin
        if self.layout.caption and self.page % 2 == 0:
            size = self.layout.size - 1
            text = f"Figure {self.page}: " + paper_text.sentence(self.rng)
            self.canvas.setFont(self.layout.font, size)
            wide = self.layout.paper[0] - 2 * self.layout.margin
            for line in self.broken(text, Style(size, 11, self.layout.font, hyphenate=False), wide):
                self.canvas.drawString(self.layout.margin, top, " ".join(line))
                top -= 11
            top -= 10
        self.y = self.start = top
        if self.layout.footnotes and self.page % 2 == 1 and self.page > 1:
            self.footnote()

    def footnote(self) -> None:
        size, y, width = self.layout.size - 2, self.bottom[0] + 16, self.width
        self.canvas.line(self.x, y + 10, self.x + 60, y + 10)
        self.canvas.setFont(self.layout.font, size - 2)
        self.canvas.drawString(self.x, y + 2, str(self.page))
        self.canvas.setFont(self.layout.font, size)
        words = paper_text.sentence(self.rng).split()
        for _ in range(2):
            line = list[str]()
            while (
                words
                and stringWidth(" ".join([*line, words[0]]), self.layout.font, size) < width - 10
            ):
                line.append(words.pop(0))
            self.canvas.drawString(self.x + 5, y, " ".join(line))
            y -= size + 2
        self.bottom[0] += 30

    def finish_page(self) -> None:
        lay, canvas = self.layout, self.canvas
        number = self.page - 1 + lay.first_page
        width, height = lay.paper
        canvas.setFont(lay.font, lay.size - 1)
        head = lay.head if self.page % 2 == 0 or lay.head_odd is None else lay.head_odd
        if head and self.page > 1:
            for at, text in zip(
                (lay.margin, width - lay.margin), head.format(n=number).split("|"), strict=False
            ):
                draw = canvas.drawString if at == lay.margin else canvas.drawRightString
                draw(at, height - lay.margin + 24, text)
        if lay.foot:
            place = {"center": width / 2, "left": lay.margin, "right": width - lay.margin}[
                lay.foot_align
            ]
            canvas.drawCentredString(place, lay.margin - 30, lay.foot.format(n=number))
        lines = sorted(self.drawn, key=lambda line: -line[0]) if lay.row_by_row else self.drawn
        for y, words, space in lines:
            for x, text, font, size in words:
                canvas.setFont(font, size)
                canvas.drawString(x, y, text, wordSpace=space)
        if lay.line_numbers:
            canvas.setFont("Helvetica", 6)
            heights = sorted(
                {y for y, words, _ in self.drawn if words[0][0] < lay.margin + self.width},
                reverse=True,
            )
            for n, y in enumerate(heights, 1):
                if n % lay.line_numbers == 0:
                    canvas.drawRightString(lay.margin - 14, y, str((self.page - 1) * 60 + n))
        self.drawn = []
        canvas.showPage()

    def next_column(self) -> None:
        self.column += 1
        self.y = self.start
        if self.column == self.layout.columns:
            self.new_page()

    def broken(self, text: str, style: Style, width: float) -> list[list[str]]:
        """Words of each line, greedily."""
        lines, line = list[list[str]](), list[str]()
        room = width - style.left - style.first
        used, space = 0.0, stringWidth(" ", style.font, style.size)

        def wide(what: str) -> float:
            return stringWidth(what, style.font, style.size)

        def end() -> None:
            nonlocal line, used, room
            lines.append(line)
            line, used, room = [], 0.0, width - style.left

        for word in text.split():
            parts, fresh = pieces(word), True
            while parts:
                part = parts[0]
                gap = space if fresh and line else 0.0
                if used + gap + wide(part) <= room:
                    if fresh or not line:
                        line.append(part)
                    else:
                        line[-1] += part
                    used += gap + wide(part)
                    parts.pop(0)
                    fresh = False
                    continue
                at = next(
                    (
                        n
                        for n in reversed(syllables(part))
                        if style.hyphenate
                        and self.layout.hyphenate
                        and used + gap + wide(part[:n] + "-") <= room
                    ),
                    None,
                )
                if at is not None and self.rng.random() < 0.8:
                    if fresh or not line:
                        line.append(part[:at] + "-")
                    else:
                        line[-1] += part[:at] + "-"
                    parts[0] = part[at:]
                    end()
                    fresh = True
                elif line:
                    end()
                    fresh = True
                else:  # wider than a line
                    line.append(part)
                    parts.pop(0)
                    end()
                    fresh = True
        if line:
            lines.append(line)
        return lines

    def paragraph(self, text: str, style: Style, label: str = "") -> None:
        lay = self.layout
        if label and lay.raised:
            style.first += stringWidth(label, style.font, style.size * 0.65) + 0.5
        lines = self.broken(text, style, self.width)
        if self.y != self.start:
            self.y -= style.before
        for n, words in enumerate(lines):
            if self.y - style.leading < self.bottom[self.column]:
                self.next_column()
            self.y -= style.leading
            x = self.x + style.left + (style.first if n == 0 else 0)
            room = self.width - style.left - (style.first if n == 0 else 0)
            found = list[tuple[float, str, str, float]]()
            if n == 0 and label:
                size = style.size * 0.65 if lay.raised else style.size
                at = self.x
                if lay.label_right:
                    at = self.x + style.left - 5 - stringWidth(label, style.font, size)
                if lay.raised:
                    self.drawn.append(
                        (self.y + 0.35 * style.size, [(at, label, style.font, size)], 0.0)
                    )
                else:
                    found.append((at, label, style.font, style.size))
            natural = stringWidth(" ".join(words), style.font, style.size)
            extra = 0.0
            if style.justify and n < len(lines) - 1 and len(words) > 1:
                extra = max(0.0, (room - natural) / (len(words) - 1))
            if style.align == "center":
                x += (room - natural) / 2
            if lay.spaces:
                self.drawn.append((self.y, [(x, " ".join(words), style.font, style.size)], extra))
                if found:
                    self.drawn.append((self.y, found, 0.0))
                continue
            space = stringWidth(" ", style.font, style.size) + extra
            for word in words:
                found.append((x, word, style.font, style.size))
                x += stringWidth(word, style.font, style.size) + space
            self.drawn.append((self.y, found, 0.0))

    def heading(self, text: str, size: float | None = None, align: str = "left") -> None:
        size = size or self.layout.heading_size
        if self.y - 4 * self.layout.leading < self.bottom[self.column]:
            self.next_column()
        self.paragraph(
            text,
            Style(
                size, size + 6, self.layout.bold, before=8, justify=False, align=align,
                hyphenate=False,
            ),
        )  # fmt: skip
        self.y -= 3

    def title(self, text: str, authors: str) -> None:
        lay = self.layout
        middle, y = lay.paper[0] / 2, self.y - 20
        self.canvas.setFont(lay.bold, 15)
        draw = self.canvas.drawCentredString if lay.centred_title else self.canvas.drawString
        at = middle if lay.centred_title else lay.margin
        draw(at, y, text)
        self.canvas.setFont(lay.font, 11)
        draw(at, y - 22, authors)
        draw(at, y - 36, "Department of Computer Science, University of Somewhere")
        self.y = self.start = y - 60


def paper(layout: Layout, seed: int, references: list[str] | None = None) -> Paper:
    """A paper set so, with content drawn by the seed; with references of its own or these."""
    rng = random.Random(seed)
    setter = Typesetter(layout, rng)
    body = Style(
        layout.size, layout.leading, layout.font, first=12 if layout.justify else 0,
        justify=layout.justify,
    )  # fmt: skip
    setter.title(paper_text.title(rng)[:60], ", ".join(rng.sample(paper_text.SURNAMES, 3)))
    abstract = paper_text.paragraph(rng, 4)
    written = list[str]()
    if layout.abstract:
        setter.heading("Abstract")
        setter.paragraph(
            abstract,
            Style(layout.size - 1, layout.leading - 1, layout.font, justify=layout.justify),
        )
    if layout.contents:
        setter.heading("Contents")
        for n, name in enumerate(["Introduction", "Method", "Results", "References"], 1):
            setter.paragraph(
                f"{n} {name} {' . ' * 20} {n * 3}",
                Style(layout.size, layout.leading, layout.font, justify=False),
            )
        setter.heading("List of references to standards")
    for n, name in enumerate(["Introduction", "Method", "Results"], 1):
        setter.heading(f"{n} {name}")
        for _ in range(rng.randint(2, 5)):
            written.append(paper_text.paragraph(rng, rng.randint(3, 7)))
            setter.paragraph(written[-1], body)
    references = references or paper_text.references(
        rng, layout.style, layout.count, by_author=not layout.label
    )
    setter.heading(layout.heading, align=layout.heading_align)
    size = layout.list_size or layout.size
    left = layout.label_width if layout.label else layout.hang
    for n, text in enumerate(references, 1):
        style = Style(
            size, layout.leading * size / layout.size, layout.font, left=left,
            first=0 if layout.label else layout.first_indent - layout.hang,
            before=layout.gap if n > 1 else 0, justify=layout.justify,
        )  # fmt: skip
        setter.paragraph(text, style, layout.label.format(n) if layout.label else "")
    if layout.after:
        setter.heading(layout.after)
        for _ in range(3):
            setter.paragraph(paper_text.paragraph(rng), body)
    setter.finish_page()
    setter.canvas.save()
    return Paper(setter.file.getvalue(), references, abstract, setter.page, written)

"""Headings of sections: of the references, of what follows them, of abstract and introduction."""

import re
from collections import Counter
from collections.abc import Sequence

from textmill.pipelines.documents.document import Line

REFERENCES = frozenset(
    re.sub(r"\s", "", name)
    for name in """
    references / reference list / list of references / references and notes / notes and references
    references cited / cited references / literature cited / literature / works cited / bibliography
    selected bibliography / references and further reading / cited literature / citations / sources
    literaturverzeichnis / literatur / quellenverzeichnis / quellen / literaturangaben / referenzen
    références / références bibliographiques / bibliographie / ouvrages cités
    referencias / referencias bibliográficas / bibliografía / obras citadas
    riferimenti / riferimenti bibliografici / bibliografia
    referências / referências bibliográficas / literatuur / literatuurlijst / referenties
    referenser / källor / litteratur / referencer / litteraturliste / referanser / kilder
    lähteet / kirjallisuus / literatura / piśmiennictwo / spis literatury / seznam literatury
    irodalomjegyzék / kaynaklar / kaynakça / литература / список литературы / список літератури
    βιβλιογραφία / 参考文献 / 參考文獻 / 引用文献 / 참고문헌 / المراجع / daftar pustaka
    tài liệu tham khảo
    """.casefold()
    .replace("\n", "/")
    .split("/")
    if name.strip()
)
"""What the section of the references is called, white taken out."""
AFTER = re.compile(
    r"appendi(?:x|ces)\b.*|annex(?:es)?\b.*|anhang\b.*|annexe?s?\b.*|supplement(?:ary|al)?\b.*"
    r"|support(?:ing|ive) information\b.*|acknowledg\w*|danksagung|remerciements"
    r"|authors?['’]? (?:biograph|contribution|information|detail)\w*|about the authors?"
    r"|biograph(?:y|ies)|author index|subject index|index|glossary|funding|financial support"
    r"|conflicts? of interests?|competing interests?|declarations?|(?:data|code) availability.*"
    r"|ethic\w* statement|list of (?:figures|tables)|figure (?:captions|legends)|figures|tables"
    r"|publisher['’]s note|additional information|.{0,20}checklist|notes|endnotes|curriculum vitae"
)
"""What a section after the references is called."""
NUMBERED = re.compile(
    r"\A(?:§\s*|section |chapter )?(?:\d{1,2}(?:\.\d{1,2})*|[ivxl]{1,6}|[a-z])[.):]?\s+"
)
LONGEST = 80
"""Characters of a heading."""
SAME_SIZE = 0.3
"""Points: by how much the sizes of headings of one level differ."""


def heading_key(text: str) -> str:
    """What a heading says: no number before it, no sign after it, small letters.

    Example:
        >>> heading_key("7. References:"), heading_key("VII REFERENCES")
        ('references', 'references')
    """
    text = text.casefold().strip(" .:—–-")
    return NUMBERED.sub("", text, count=1) if not _is_name(text) else text


def _is_name(text: str) -> bool:
    return re.sub(r"\s", "", text) in REFERENCES


def is_reference_heading(line: Line) -> bool:
    """Whether a line is the heading of a list of references, in letters however spaced.

    Example:
        >>> is_reference_heading(Line("R EFERENCES")), is_reference_heading(Line("References 23"))
        (True, False)
    """
    return len(line.text) <= LONGEST and _is_name(heading_key(line.text))


class HeadingStyle:
    """How one heading is set, by which others of its level are known.

    Args:
        heading: The one.
        size: Of most of the text below it.
        bold: Whether most of that is.

    Example:
        >>> style = HeadingStyle(Line("References", size=12, bold=True), size=9, bold=False)
        >>> style.ends_section(Line("A Proofs", size=12, bold=True))
        True
        >>> style.ends_section(Line("Smith, J. 2004.", size=9))
        False
    """

    def __init__(self, heading: Line, *, size: float, bold: bool) -> None:
        self._heading, self._size = heading, size
        larger = heading.size > size + SAME_SIZE
        self._is_told_apart = larger or (heading.bold and not bold)

    def ends_section(self, line: Line) -> bool:
        """Whether another section begins here, by its name or by how it is set."""
        if len(line.text) > LONGEST:
            return False
        key = heading_key(line.text)
        heading = self._heading
        is_same = line.bold == heading.bold and abs(line.size - heading.size) <= SAME_SIZE
        if AFTER.fullmatch(key) and line.size >= self._size - SAME_SIZE:
            return is_same or not self._is_told_apart or line.bold or line.size > self._size
        return self._is_told_apart and is_same


def dominant_size(lines: Sequence[Line]) -> float:
    """The size of most characters; 0 of no lines.

    Example:
        >>> dominant_size([Line("a long one", size=9), Line("short", size=12)])
        9
    """
    sizes = Counter[float]()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0

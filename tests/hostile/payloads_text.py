"""Payloads in the text processor: its settings, its tokenizers, SentencePiece models."""

import json
from functools import cache
from pathlib import Path

from tests.hostile.folder import (
    CANARY_CODE,
    Payload,
    in_each,
    manifest_says,
    payload,
    reseal,
    steps,
)
from textmill.runtime.sealed import seal

# -- text

for _file in ("text/text.json", "text/tokenizer/tokenizer.json"):
    for _name, _content in {
        "not JSON": b"{",
        "deep": b"[" * 200_000,
        "huge": b" " * (2 << 20),
        "a list": b"[1]",
        "an import path": b'{"format_version": 1,"type":"@os.system","settings":{}}',
        "a module's path": b'{"format_version": 1,"type":"os.system","settings":{}}',
        "no settings": b'{"format_version": 1,"type":"seq2seq","settings":[]}',
        "more keys": b'{"format_version": 1,"type":"seq2seq","settings":{},"__reduce__":"x"}',
        "another format": b'{"format_version": 2,"type":"seq2seq","settings":{}}',
    }.items():
        payload(f"{_file}: {_name}")(
            lambda run, file=_file, content=_content: in_each(run, file, content)
        )


def setting(file: str, **changes) -> Payload:
    def apply(data: bytes) -> bytes:
        content = json.loads(data)
        content["settings"].update(changes)
        return json.dumps(content).encode()

    return lambda run: in_each(run, file, apply)


_TEXT, _TOKENIZER = "text/text.json", "text/tokenizer/tokenizer.json"
payload("text: a limit below zero")(setting(_TEXT, max_source_length=-5))
payload("text: a huge limit")(setting(_TEXT, max_source_length=10**18))
payload("text: no limit")(setting(_TEXT, max_source_length=None))
payload("text: a limit of text")(setting(_TEXT, max_target_length="9" * 100))
payload("text: an unknown language")(setting(_TEXT, target_lang="../x"))
payload("text: an unknown setting")(setting(_TEXT, model="/etc/passwd"))
payload("tokenizer: a path")(setting(_TOKENIZER, model="/etc/passwd"))
payload("tokenizer: always tags")(setting(_TOKENIZER, tags="always"))
payload("tokenizer: many languages")(
    setting(_TOKENIZER, source_langs=[f"l{i}" for i in range(30_000)], tags="always")
)
payload("tokenizer: no languages")(setting(_TOKENIZER, source_langs=[]))
payload("tokenizer: numbers for languages")(setting(_TOKENIZER, source_langs=[1]))

_MODEL = "text/tokenizer/sentencepiece.model"
for _name, _bytes in {
    "empty": b"",
    "garbage": bytes(range(256)) * 64,
    "zeros": b"\0" * 4096,
    "a pickle": b"\x80\x04cos\nsystem\n(S'touch CANARY'\ntR.",
    "a length over the end": b"\x0a\xff\xff\xff\xff\x7f",
    "nested groups": b"\x0b" * 100_000,
}.items():
    payload(f"sentencepiece: {_name}")(lambda run, raw=_bytes: in_each(run, _MODEL, raw))
for _part in (0.1, 0.5, 0.9):
    payload(f"sentencepiece: the first {_part:.0%}")(
        lambda run, part=_part: in_each(run, _MODEL, lambda raw: raw[: int(len(raw) * part)])
    )


@payload("sentencepiece: 10 GB of nothing")
def _(run: Path) -> None:
    for step in steps(run):
        with (step / _MODEL).open("r+b") as file:
            file.truncate(10 << 30)
    manifest_says(
        files=lambda files: {**files, _MODEL: {**files[_MODEL], "size": 10 << 30}},
    )(run)


@payload("text: a file more")
def _(run: Path) -> None:
    for step in steps(run):
        (step / "text" / "setup.py").write_text(CANARY_CODE)


@cache
def many_words() -> bytes:
    """Ten million, which take a second to write down."""
    return b"".join(b"%011d\n" % i for i in range(10_000_000))


@payload("words: 120 MB for weights of some thousand bytes")
def _(run: Path) -> None:
    for step in steps(run):
        folder = step / "text" / "tokenizer"
        for path in folder.iterdir():
            path.unlink()
        settings = {"lowercase": "yes", "marks": "yes"}
        content = {"format_version": 1, "type": "words", "settings": settings}
        (folder / "tokenizer.json").write_text(json.dumps(content))
        (folder / "words.txt").write_bytes(many_words())
        manifest = json.loads((step / "manifest.json").read_text())
        manifest.pop("digest")
        kept = {n: e for n, e in manifest["files"].items() if not n.startswith("text/tokenizer/")}
        made = {f"text/tokenizer/{path.name}": {} for path in folder.iterdir()}
        (step / "manifest.json").write_bytes(seal({**manifest, "files": {**kept, **made}}))
    reseal(run)

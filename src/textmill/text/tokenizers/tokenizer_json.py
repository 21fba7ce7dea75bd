"""Reading a ``tokenizer.json`` of Hugging Face's ``tokenizers``, which may be a stranger's.

The library that runs it trusts the file: an expression can take for ever, a chain of replacements
can double a text sixty times, an id can ask for a matrix of billions of rows. So the file is
checked here first, and what is not known is refused.
"""

import base64
import json
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers.regex_safety import danger

__all__ = ["LARGEST_FILE", "TokenizerJson", "parse_tokenizer_json"]

LARGEST_FILE = 1 << 27
"""Bytes; Gemma's, with 262,000 pieces, has 33 million."""
LARGEST_VOCABULARY = 1 << 20
"""Pieces; XLM-V, the largest that is published, has 901,629."""
MOST_HOLES = 1_000
"""Ids that no piece has: each costs a row of the embedding."""
MOST_STEPS = 32
MOST_GROWTH = 1_000
"""How many times longer the steps may make a text; SentencePiece's own rules reach 132."""
LONGEST_WORD = 1_000
"""Characters; WordPiece takes time quadratic in a word's length."""

_STEPS = {
    "normalizer": {
        *("Sequence", "Replace", "Prepend", "Strip", "StripAccents", "Lowercase", "Precompiled"),
        *("NFC", "NFD", "NFKC", "NFKD", "Nmt", "BertNormalizer", "ByteLevel"),
    },
    "pre_tokenizer": {
        *("Sequence", "Split", "Whitespace", "WhitespaceSplit", "CharDelimiterSplit", "Digits"),
        *("Punctuation", "UnicodeScripts", "BertPreTokenizer", "Metaspace", "ByteLevel"),
    },
    "decoder": {
        *("Sequence", "Replace", "Strip", "Fuse", "ByteFallback", "ByteLevel", "Metaspace"),
        *("BPEDecoder", "WordPiece", "CTC"),
    },
}
_MODELS = ("BPE", "Unigram", "WordPiece", "WordLevel")


@dataclass
class TokenizerJson:
    """A checked file, its special tokens renamed to what nobody can write.

    A text that holds ``</s>`` is then text like any other. The new names are drawn at each reading;
    ids do not depend on them.
    """

    content: dict[str, Any]
    """For the library: no truncation, padding or template, special tokens renamed."""
    ids: dict[str, int]
    """Id of each piece, by the name the file gives it."""
    special: frozenset[int]
    """Ids of special tokens, the unknown one among them."""
    unk: str | None
    """The unknown piece, by its name in the file."""
    renamed: dict[str, str] = field(default_factory=dict)
    """New names of the special tokens."""

    @property
    def size(self) -> int:
        """Number of ids."""
        return max(self.ids.values()) + 1


def parse_tokenizer_json(raw: bytes, path: Path, marks: tuple[str, ...] = ()) -> TokenizerJson:
    """Checks a file's bytes; ``marks`` are special, whether it says so or not.

    Raises:
        SavedTextError: It is no tokenizer.json, or one that cannot be run safely; says why.
    """
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SavedTextError(f"{path} is not JSON: {error}.") from None
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise SavedTextError(
            f"{path} is not a tokenizer.json of the package 'tokenizers': it has no 'model'."
        )
    try:
        model = _model(content["model"])
        added = _added(content.get("added_tokens") or [])
        ids = _ids(model, added)
        growth = 1.0
        steps = {name: content.get(name) for name in _STEPS}
        for name, step in steps.items():
            growth = _checked_steps(name, step, growth=1.0 if name == "decoder" else growth)
        special = [token["content"] for token in added if token["special"]]
        unk = _unknown(model)
        names = dict.fromkeys([*special, *(m for m in marks if m in ids), *([unk] if unk else [])])
        out = TokenizerJson(
            content={"version": "1.0", "added_tokens": added, "model": model} | steps,
            ids=ids,
            special=frozenset(ids[name] for name in names),
            unk=unk,
            renamed={name: f"<{secrets.token_hex(12)}>" for name in names},
        )
        _rename(model, added, out.renamed)
    except _RefusedError as error:
        raise SavedTextError(f"{path} is not used: {error}.") from None
    return out


class _RefusedError(Exception):
    """Why a file is not used."""


def _model(model: dict[str, Any]) -> dict[str, Any]:
    """The model with its type, which old files leave out."""
    vocab = model.get("vocab")
    if "type" not in model:
        kind = "BPE" if "merges" in model else "Unigram" if isinstance(vocab, list) else "WordPiece"
        model = {"type": kind} | model
    kind = model["type"]
    if kind not in _MODELS:
        raise _RefusedError(f"its model is {kind!r:.40}, not one of {', '.join(_MODELS)}")
    if kind == "Unigram":
        pairs = isinstance(vocab, list) and all(isinstance(p, list) and len(p) == 2 for p in vocab)
        if not pairs or not all(isinstance(p[0], str) and _is_number(p[1]) for p in vocab or []):
            raise _RefusedError("the vocabulary of a Unigram must be a list of [piece, score]")
        unk = model.get("unk_id")
        if unk is not None and not (_is_id(unk) and unk < len(vocab or [])):
            raise _RefusedError(f"its unk_id is {unk!r:.40}, which no piece has")
    elif not isinstance(vocab, dict):
        raise _RefusedError("its vocabulary must be a mapping of pieces to ids")
    if model.get("dropout"):
        raise _RefusedError(
            f"its dropout is {model['dropout']!r:.40}, with which the same text has other ids each "
            "time; set it to null"
        )
    longest = model.get("max_input_chars_per_word", 0)
    if not _is_id(longest) or longest > LONGEST_WORD:
        raise _RefusedError(
            f"its max_input_chars_per_word is {longest!r:.40}, but may be {LONGEST_WORD:,} at most"
        )
    return model


def _added(added: Any) -> list[dict[str, Any]]:
    fits = isinstance(added, list) and all(
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and token["content"]
        and _is_id(token.get("id"))
        and isinstance(token.get("special", False), bool)
        for token in added
    )
    if not fits:
        raise _RefusedError("each of its added_tokens must have a content and an id from 0")
    flags = {"special", "single_word", "lstrip", "rstrip", "normalized"}
    return [dict.fromkeys(flags, False) | token for token in added]


def _ids(model: dict[str, Any], added: list[dict[str, Any]]) -> dict[str, int]:
    """Id of each piece; no id twice, none far beyond the number of pieces."""
    vocab = model["vocab"]
    if len(vocab) + len(added) > LARGEST_VOCABULARY:
        raise _RefusedError(
            f"it has {len(vocab) + len(added):,} pieces, but {LARGEST_VOCABULARY:,} are the most "
            "that are read"
        )
    ids = {pair[0]: i for i, pair in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)
    bad = next((name for name, index in ids.items() if not _is_id(index)), None)
    if bad is not None:
        raise _RefusedError(f"the id of {bad!r:.40} is {ids[bad]!r:.40}, not a number from 0")
    if isinstance(vocab, list) and len(ids) < len(vocab):
        raise _RefusedError("a piece is in its vocabulary twice")
    for token in added:
        if ids.setdefault(token["content"], token["id"]) != token["id"]:
            raise _RefusedError(f"the added token {token['content']!r:.40} has two ids")
    if not ids:
        raise _RefusedError("its vocabulary is empty")
    if len(set(ids.values())) < len(ids):
        raise _RefusedError("two of its pieces have the same id")
    if max(ids.values()) >= len(ids) + MOST_HOLES:
        raise _RefusedError(f"it has an id of {max(ids.values()):,}, but only {len(ids):,} pieces")
    return ids


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _unknown(model: dict[str, Any]) -> str | None:
    if model["type"] == "Unigram":
        unk = model.get("unk_id")
        return None if unk is None else str(model["vocab"][unk][0])
    unk = model.get("unk_token")
    return unk if isinstance(unk, str) and unk in model["vocab"] else None


def _rename(model: dict[str, Any], added: list[dict[str, Any]], names: dict[str, str]) -> None:
    vocab = model["vocab"]
    if isinstance(vocab, list):
        model["vocab"] = [[names.get(name, name), score] for name, score in vocab]
    else:
        model["vocab"] = {names.get(name, name): index for name, index in vocab.items()}
        if "unk_token" in model:
            unk = model["unk_token"]
            model["unk_token"] = names.get(unk) if isinstance(unk, str) else None
            if model["type"] in ("WordPiece", "WordLevel") and model["unk_token"] is None:
                model["unk_token"] = ""
    for token in added:
        token["content"] = names.get(token["content"], token["content"])
    if "merges" in model:  # a merge that makes a special token would make it of plain text
        prefix = model.get("continuing_subword_prefix") or ""
        if not isinstance(model["merges"], list):
            raise _RefusedError(f"its merges must be a list, but are {model['merges']!r:.40}")
        model["merges"] = [m for m in model["merges"] if _merged(m, prefix) not in names]


def _merged(merge: Any, prefix: str) -> str:
    pair = merge.split(" ", 1) if isinstance(merge, str) else merge
    try:
        first, second = pair
        return str(first + second.removeprefix(prefix))
    except (TypeError, ValueError, AttributeError):
        raise _RefusedError(f"a merge must be two pieces, but is {merge!r:.80}") from None


def _checked_steps(name: str, step: Any, *, growth: float) -> float:
    """Times the steps make a text longer, at most; refuses what is not known or makes it huge."""
    steps = list(_each(step, 0))
    if len(steps) > MOST_STEPS:
        raise _RefusedError(f"its {name} has more than {MOST_STEPS} steps")
    for one in steps:
        kind = one.get("type")
        if not isinstance(kind, str) or kind not in _STEPS[name]:
            raise _RefusedError(f"its {name} has a step {kind!r:.40}, which is unknown")
        growth *= _growth(one)
        if growth > MOST_GROWTH:
            raise _RefusedError(f"its {name} can make a text {MOST_GROWTH:,} times longer")
    return growth


def _each(step: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The steps one by one, sequences taken apart."""
    if step is None:
        return
    if not isinstance(step, dict) or depth > MOST_STEPS:
        raise _RefusedError(f"a step must be a mapping with a type, but is {step!r:.40}")
    yield step
    if step.get("type") == "Sequence":
        for value in step.values():
            for inner in value if isinstance(value, list) else []:
                yield from _each(inner, depth + 1)


def _growth(step: dict[str, Any]) -> float:
    kind, pattern = step["type"], step.get("pattern")
    expression = pattern.get("Regex") if isinstance(pattern, dict) else None
    if isinstance(expression, str) and (why := danger(expression)):
        raise _RefusedError(f"its expression {expression!r:.60} has {why}")
    if kind == "Replace":
        plain = pattern.get("String") if isinstance(pattern, dict) else pattern
        inserted = len(str(step.get("content", "")))
        # An expression can match at every place, and nothing; a string matches itself.
        return max(1.0, inserted / len(plain)) if plain and isinstance(plain, str) else inserted + 1
    if kind == "Prepend":
        return len(str(step.get("prepend", "")))
    if kind == "Precompiled":
        return _longest_replacement(step.get("precompiled_charsmap"))
    return {"ByteLevel": 4, "Metaspace": 2}.get(kind, 1)


def _longest_replacement(charsmap: Any) -> float:
    """The bytes that SentencePiece's compiled rules write for one character, at most."""
    try:
        rules = base64.b64decode(charsmap, validate=True)
        trie = struct.unpack_from("<I", rules)[0] if rules else 0
    except (TypeError, ValueError, struct.error):
        raise _RefusedError("its precompiled_charsmap is damaged") from None
    if rules and (trie % 4 or 4 + trie > len(rules)):
        raise _RefusedError("its precompiled_charsmap is damaged")
    return max(map(len, rules[4 + trie :].split(b"\0")), default=1) or 1

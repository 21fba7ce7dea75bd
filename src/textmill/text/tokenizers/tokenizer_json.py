"""Reading a ``tokenizer.json`` of Hugging Face's package ``tokenizers``."""

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textmill.text.metadata import SavedTextError

LARGEST_FILE = 1 << 27
"""Bytes; Gemma's, with 262,000 pieces, has 33 million."""


@dataclass
class TokenizerJson:
    """A parsed file whose special tokens have random names, so that ``</s>`` in a text is text.

    The library's own ``encode_special_tokens`` is not enough: a Unigram model, or words split at
    spaces, find ``</s>`` among the pieces of the model. Ids do not depend on the random names.
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
    """Parses a file's bytes; tokens named in ``marks`` are special even if the file says otherwise.

    Types of values, steps and expressions are for the library to check, when it loads the content.

    Raises:
        SavedTextError: It is not a tokenizer.json, gives an id twice, or has dropout.
    """
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SavedTextError(f"{path} is not JSON: {error}.") from None
    try:
        return _parsed(content, marks)
    except _RefusedError as error:
        raise SavedTextError(f"{path} is not used: {error}.") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SavedTextError(
            f"{path} is not a tokenizer.json of the package 'tokenizers': {error!r:.200}."
        ) from None


class _RefusedError(Exception):
    """Why a file is not used."""


def _parsed(content: dict[str, Any], marks: tuple[str, ...]) -> TokenizerJson:
    model = content["model"]
    if model.get("dropout"):
        raise _RefusedError(
            f"its dropout is {model['dropout']!r:.40}, with which the same text has other ids each "
            "time; set it to null"
        )
    flags = dict.fromkeys(("special", "single_word", "lstrip", "rstrip", "normalized"), False)
    added = [flags | token for token in content.get("added_tokens") or []]
    ids = _ids(model["vocab"], added)
    special = [token["content"] for token in added if token["special"]]
    unk = _unknown(model)
    special += [mark for mark in marks if mark in ids] + ([] if unk is None else [unk])
    renamed = {name: f"<{secrets.token_hex(12)}>" for name in dict.fromkeys(special)}
    steps = {name: content.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")}
    return TokenizerJson(
        content={
            "version": "1.0",
            "added_tokens": [
                t | {"content": renamed.get(t["content"], t["content"])} for t in added
            ],
            "model": _renamed(model, renamed),
            **steps,
        },
        ids=ids,
        special=frozenset(ids[name] for name in renamed),
        unk=unk,
        renamed=renamed,
    )


def _ids(vocab: Any, added: list[dict[str, Any]]) -> dict[str, int]:
    """Id of each piece, each once; a Unigram lists its pieces with their scores."""
    ids = {name: i for i, (name, _) in enumerate(vocab)} if isinstance(vocab, list) else {**vocab}
    if len(ids) < len(vocab):
        raise _RefusedError("a piece is in its vocabulary twice")
    for token in added:
        if ids.setdefault(token["content"], token["id"]) != token["id"]:
            raise _RefusedError(f"the added token {token['content']!r:.40} has two ids")
    if not ids:
        raise _RefusedError("its vocabulary is empty")
    if len(set(ids.values())) < len(ids):
        raise _RefusedError("two of its pieces have the same id")
    return ids


def _unknown(model: dict[str, Any]) -> str | None:
    vocab, unk = model["vocab"], model.get("unk_token")
    if isinstance(vocab, list):
        return None if model.get("unk_id") is None else str(vocab[model["unk_id"]][0])
    return unk if unk in vocab else None


def _renamed(model: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    vocab, unk = model["vocab"], model.get("unk_token")
    if isinstance(vocab, list):
        return model | {"vocab": [[names.get(name, name), score] for name, score in vocab]}
    model = model | {"vocab": {names.get(name, name): i for name, i in vocab.items()}}
    if unk is not None:
        model["unk_token"] = names.get(unk, None if "merges" in model else "")
    if "merges" in model:  # a merge that makes a special token would make it of plain text
        prefix = model.get("continuing_subword_prefix") or ""
        pairs = [m.split(" ", 1) if isinstance(m, str) else m for m in model["merges"]]
        model["merges"] = [[a, b] for a, b in pairs if a + b.removeprefix(prefix) not in names]
    return model

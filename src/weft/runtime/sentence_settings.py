"""What the folder of a sentence encoder says beside its architecture, as Sentence-BERT's has it."""

import json
from dataclasses import dataclass
from typing import Any

from weft.errors import UserError
from weft.runtime.bounded_files import parse_json, read_all
from weft.runtime.pretrained import SENTENCE_FILES, PretrainedFolder

__all__ = ["LENGTHS", "MODULES", "POOLING", "POOLINGS", "SentenceSettings", "sentence_settings"]

MODULES, POOLING, LENGTHS, PROMPTS = SENTENCE_FILES
TOKENIZER = "tokenizer_config.json"
UNLIMITED = 1 << 30
"""Tokens that a tokenizer without a limit says it takes, or more: 10 to the 30th."""
POOLINGS = {"cls": "first", "lasttoken": "last", "max": "max", "mean": "mean"}
"""What poolings are called there, and here."""
BEFORE = "pooling_mode_"
LARGEST = 1 << 20
"""Bytes of such a file."""


@dataclass(frozen=True)
class SentenceSettings:
    """How a sentence encoder was trained to make one vector of a text."""

    pooling: str
    """The registered name of the pooling."""
    normalize: bool
    """Whether a vector is divided by its length."""
    max_length: int | None
    """Most tokens of a text, marks included; None: as many as the encoder takes."""


def sentence_settings(folder: PretrainedFolder) -> SentenceSettings | None:
    """Reads ``modules.json`` and what it names; None where a folder has no such.

    Raises:
        UserError: It says something that weft does not do, as another layer behind the pooling.
    """
    if not (folder.path / MODULES).is_file():
        return None
    modules = _read(folder, MODULES, list)
    kinds = [str(each.get("type")).rpartition(".")[2] for each in modules if isinstance(each, dict)]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UserError(
            f"{folder.path / MODULES}: wanted a Transformer, a Pooling, and perhaps a Normalize; "
            f"found {', '.join(kinds) or 'none'}. Set model.pooling and model.normalize to use its "
            "Transformer alone."
        )
    told = _read(folder, LENGTHS, dict) if (folder.path / LENGTHS).is_file() else {}
    prompts = _read(folder, PROMPTS, dict) if (folder.path / PROMPTS).is_file() else {}
    if told.get("do_lower_case") or prompts.get("default_prompt_name"):
        raise UserError(
            f"{folder.path} wants texts in lower case, or with a prompt before each, which weft "
            "does not do. Set model.pooling and model.normalize, and write texts in that way."
        )
    tokenizer = _read(folder, TOKENIZER, dict) if (folder.path / TOKENIZER).is_file() else {}
    said = told.get("max_seq_length"), tokenizer.get("model_max_length")
    longest = next((n for n in said if isinstance(n, int) and 0 < n < UNLIMITED), None)
    return SentenceSettings(_pooling(folder), "Normalize" in kinds, longest)


def _pooling(folder: PretrainedFolder) -> str:
    told = _read(folder, POOLING, dict)
    said = told.get("pooling_mode")
    if said is None:
        said = [name for name, on in told.items() if name.startswith(BEFORE) and on is True]
    modes = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    names = [str(mode).removeprefix(BEFORE).removesuffix("_tokens") for mode in modes]
    names = [name.removesuffix("_token") if name == "cls_token" else name for name in names]
    if len(names) != 1 or names[0] not in POOLINGS:
        raise UserError(
            f"{folder.path / POOLING}: wanted one of the poolings {', '.join(POOLINGS)}; found "
            f"{', '.join(names) or 'none'}. Set model.pooling."
        )
    return POOLINGS[names[0]]


def _read(folder: PretrainedFolder, name: str, kind: type) -> Any:
    path = folder.path / name
    data = read_all(
        path, LARGEST, UserError, name=str(path), links=True
    )  # the hub's cache has such
    found = parse_json(data, str(path), UserError)
    if not isinstance(found, kind):
        raise UserError(f"{path}: wanted {kind.__name__}, found {json.dumps(found):.60}.")
    return found

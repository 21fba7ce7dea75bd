"""What the folder of a sentence encoder says beside its architecture, as Sentence-BERT's has it."""

import json
from dataclasses import dataclass
from typing import Any

from textmill.errors import UserError
from textmill.runtime.files import parse_json, read_all
from textmill.runtime.pretrained import SENTENCE_FILES, PretrainedFolder

MODULES, POOLING, LENGTHS, PROMPTS = SENTENCE_FILES
TOKENIZER_CONFIG = "tokenizer_config.json"
UNLIMITED = 1 << 30
"""Tokens that a tokenizer without a limit says it takes, or more: 10 to the 30th."""
POOLINGS = {"cls": "first", "max": "max", "mean": "mean"}
"""What poolings are called there, and here."""
BEFORE = "pooling_mode_"
LARGEST = 1 << 20
"""Bytes of such a file."""
SET_BOTH = (
    "Say yourself how its Transformer's vectors are pooled, and whether they are normalized: "
    "model.pooling.type and model.normalize of a run, --pooling and --normalize (or "
    "--no-normalize) of textmill embed, pooling and normalize of load_encoder"
)
"""What to do where textmill does not do what a folder says; with both it is not read."""


@dataclass(frozen=True)
class SentenceSettings:
    """How a sentence encoder was trained to make one vector of a text."""

    pooling: str
    """The registered name of the pooling."""
    normalize: bool
    """Whether a vector is divided by its length."""


def sentence_settings(folder: PretrainedFolder) -> SentenceSettings | None:
    """Reads ``modules.json`` and what it names; None where a folder has no such.

    Raises:
        UserError: It says something that textmill does not do, as another layer behind the pooling.
    """
    if not (folder.path / MODULES).is_file():
        return None
    modules = _read(folder, MODULES, list)
    kinds = [str(each.get("type")).rpartition(".")[2] for each in modules if isinstance(each, dict)]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UserError(
            f"{folder.path / MODULES}: wanted a Transformer, a Pooling, and perhaps a Normalize; "
            f"found {', '.join(kinds) or 'none'}. {SET_BOTH}."
        )
    told, prompts = (_read_if_there(folder, name) for name in (LENGTHS, PROMPTS))
    if told.get("do_lower_case") or prompts.get("default_prompt_name"):
        raise UserError(
            f"{folder.path} needs texts in lower case, or with a prompt before each, which "
            f"textmill does not do. Write them in that way. {SET_BOTH}."
        )
    return SentenceSettings(_pooling(folder), "Normalize" in kinds)


def longest_text(folder: PretrainedFolder) -> int | None:
    """The most tokens that a folder says a text may have, marks included; None: it says none.

    Raises:
        UserError: A file that may say it cannot be read.
    """
    told, tokenizer = (_read_if_there(folder, name) for name in (LENGTHS, TOKENIZER_CONFIG))
    said = told.get("max_seq_length"), tokenizer.get("model_max_length")
    return next((n for n in said if isinstance(n, int) and 0 < n < UNLIMITED), None)


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
            f"{', '.join(names) or 'none'}. {SET_BOTH}."
        )
    return POOLINGS[names[0]]


def _read_if_there(folder: PretrainedFolder, name: str) -> Any:
    return _read(folder, name, dict) if (folder.path / name).is_file() else {}


def _read(folder: PretrainedFolder, name: str, kind: type) -> Any:
    path = folder.path / name
    data = read_all(
        path, LARGEST, UserError, name=str(path), links=True
    )  # the hub's cache has such
    found = parse_json(data, str(path), UserError)
    if not isinstance(found, kind):
        raise UserError(f"{path}: wanted {kind.__name__}, found {json.dumps(found):.60}.")
    return found

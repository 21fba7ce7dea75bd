"""The architecture of a model of Hugging Face's transformers, and what makes it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from textmill.errors import MissingExtraError, TextmillError, UserError
from textmill.runtime.pretrained import find_pretrained

_LEFT_OUT = (
    *("architectures", "dtype", "torch_dtype", "transformers_version"),
    *("attn_implementation", "auto_map", "experts_implementation", "quantization_config"),
    *("finetuning_task", "id2label", "label2id", "num_labels", "problem_type"),
    *("chunk_size_feed_forward", "return_dict", "task_specific_params", "torchscript"),
    *("output_attentions", "output_hidden_states", "pruned_heads", "use_bfloat16"),
)
"""Settings of a ``config.json`` that say nothing of the architecture, or name code to be run or
fetched: none of them reaches transformers, nor does what begins with ``_``."""
_COUNTS = re.compile("layer|group|block|repeat")
"""In the names of settings that say how often something is there."""
_MOST = 10_000
"""How often; the deepest published models have a hundred layers."""
_DROPOUTS = (
    *("dropout", "dropout_rate", "embd_pdrop", "embedding_dropout", "hidden_dropout"),
    *("hidden_dropout_prob", "mlp_dropout", "resid_pdrop"),
)
"""What architectures call the probability of dropping a feature."""


@dataclass(frozen=True)
class PretrainedSource:
    """What a fresh run of textmill's own layers begins with."""

    path: str
    """A folder, or a name on the Hugging Face hub."""
    revision: str | None
    """Of the hub."""
    kind: str
    """The architecture's ``model_type``."""


def architecture_of(
    path: str, *, revision: str | None = None, setting: str = "model.encoder.path"
) -> dict[str, Any]:
    """What ``config.json`` says of the model in a folder, or of the hub's.

    Args:
        path: The folder, or the name.
        revision: Of the hub's.
        setting: Where the path is set, for messages.

    Raises:
        UserError: ``path`` is empty, or there is no such model.
    """
    if not path:
        raise UserError(
            f"{setting} is not set: name a folder with config.json, tokenizer.json and "
            "model.safetensors, or a model of the Hugging Face hub as "
            "sentence-transformers/all-MiniLM-L6-v2."
        )
    return find_pretrained(path, revision=revision).config()


def banned_ids(told: Mapping[str, Any], path: str) -> list[int]:
    """The tokens that an architecture bans from answers alone, not as a part of words.

    Raises:
        UserError: It names something else.

    Example:
        >>> banned_ids({"vocab_size": 9, "bad_words_ids": [[8], [3, 4]]}, "marian")
        [8]
    """
    found, size = told.get("bad_words_ids") or (), vocabulary_of(told, path)
    if not isinstance(found, list | tuple) or not all(
        isinstance(ids, list | tuple) and all(type(i) is int and 0 <= i < size for i in ids)
        for ids in found
    ):
        raise UserError(
            f"config.json of {path or 'the run'} says bad_words_ids={found!r:.80}, where lists of "
            "tokens' ids are wanted."
        )
    return [ids[0] for ids in found if len(ids) == 1]


def plain_architecture(told: Mapping[str, Any]) -> dict[str, Any]:
    """An architecture without what says nothing of it, or names code; also that of a run.

    Raises:
        UserError: It has so many layers that making them would not end.
    """
    for name, count in _counts(told):
        if count > _MOST:
            raise UserError(f"The architecture has {name}={count}: at most {_MOST:,} are made.")
    return {k: v for k, v in told.items() if k not in _LEFT_OUT and not k.startswith("_")}


def pretrained_config(told: Mapping[str, Any], path: str, *, needed_by: str) -> Any:
    """The settings that transformers makes of an architecture.

    Args:
        told: A plain one, with its ``model_type``.
        path: Where it is from, for messages; empty is the run.
        needed_by: What needs the package transformers.

    Raises:
        MissingExtraError: The package transformers is not installed.
        UserError: It has no such architecture, or refuses the settings.
    """
    try:
        import transformers
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise MissingExtraError("transformers", extra="huggingface", what=needed_by) from None
    settings = dict(told)
    kind = settings.pop("model_type", None)
    if kind not in transformers.CONFIG_MAPPING:
        raise UserError(f"{path or 'The run'} is a {kind!r:.40}, which transformers does not have.")
    try:
        return transformers.AutoConfig.for_model(kind, **settings)
    except Exception as error:  # each architecture has checks of its own
        raise _unmade(kind, path, error) from error


@contextmanager
def building(told: Mapping[str, Any], config: Any) -> Iterator[None]:
    """Refuses by name an architecture that makes no model, while it is open.

    Args:
        told: The architecture.
        config: Settings with a ``path``; without an ``architecture`` where that is read from there.

    Raises:
        UserError: It makes none.
    """
    path, fresh = config.path, not getattr(config, "architecture", None)
    try:
        yield
    except TextmillError:
        raise
    except Exception as error:  # each architecture has checks of its own
        if isinstance(error, RuntimeError) and not fresh:
            raise  # of a model without memory, which whoever loads a run knows of
        raise _unmade(told.get("model_type"), path, error) from error


def vocabulary_of(told: Mapping[str, Any], path: str) -> int:
    """How many tokens an architecture has; 0 where it does not say so.

    Raises:
        UserError: It says something else.
    """
    size = told.get("vocab_size", 0)
    if type(size) is not int or size < 0:
        raise UserError(
            f"config.json of {path or 'the run'} says vocab_size={size!r:.40}, where the number of "
            "tokens is wanted."
        )
    return size


def _counts(told: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in told.items():
        if isinstance(value, Mapping):
            yield from _counts(value)
        for count in value if isinstance(value, list | tuple) else [value]:
            if isinstance(count, int) and _COUNTS.search(str(name)):
                yield name, count


def _unmade(kind: object, path: str, error: Exception) -> UserError:
    """The refusal of settings, with the first line of what a package says of them."""
    lines = str(error).strip().splitlines()[:1]
    if isinstance(error, LookupError) or not lines:  # whose text is what was looked up alone
        lines.insert(0, type(error).__name__)
    where = f"config.json of {path or 'the run'}"
    return UserError(f"{where} makes no {kind!s:.40}: {': '.join(lines)}")


def dropout_settings(
    made: Any, share: float, *, setting: str = "model.dropout"
) -> dict[str, float]:
    """Settings of an architecture with which features are dropped with another probability.

    Args:
        made: Its settings; those that its ``config.json`` leaves out have the values of
            transformers.
        share: The probability.
        setting: Where it is set, for messages.

    Raises:
        UserError: The architecture drops no features.
    """
    found = {name: share for name in _DROPOUTS if hasattr(made, name)}
    if not found:
        raise UserError(
            f"{setting} is {share}, but a {made.model_type} drops no features. Leave it out."
        )
    return found


@contextmanager
def silent_transformers() -> Iterator[None]:
    """Nothing is said of how far transformers has come, and no warning, while it is open."""
    from transformers.utils import logging

    shows, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shows:
            logging.enable_progress_bar()

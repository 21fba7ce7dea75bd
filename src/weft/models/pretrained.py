"""Models of Hugging Face's transformers: their architecture and weights, and no stranger's code."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import MissingExtraError, UserError, WeftError
from weft.models.lora import own_weights
from weft.runtime.module_size import at_most
from weft.runtime.pretrained import COMPUTED, find_pretrained

__all__ = [
    "PretrainedSource",
    "architecture_of",
    "banned_ids",
    "building",
    "copy_weights",
    "dropout_settings",
    "plain_architecture",
    "pretrained_config",
    "silent_transformers",
    "vocabulary_of",
]

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
_RENAMED = (
    ("LayerNorm.gamma", "LayerNorm.weight"),  # in checkpoints of TensorFlow's time
    ("LayerNorm.beta", "LayerNorm.bias"),
    ("embed_out.", "lm_head."),  # in those of GPT-NeoX
)
"""What checkpoints call parameters, and what the models of transformers do."""
_DROPOUTS = (
    *("dropout", "dropout_rate", "embd_pdrop", "embedding_dropout", "hidden_dropout"),
    *("hidden_dropout_prob", "mlp_dropout", "resid_pdrop"),
)
"""What architectures call the probability of dropping a feature."""
_NEW = 0.5
"""Share of a tokenizer's tokens that may have no row: a person may have added many of a field's."""
_BEHIND = re.compile(r"(classifier|cls|lm_head|pooler)\b")
"""What stands behind a model of vectors, and is another's where weft puts a task's own there."""


@dataclass(frozen=True)
class PretrainedSource:
    """What a fresh run of weft's own layers begins with."""

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
        config: Settings with a ``path`` and a ``revision``; without an ``architecture`` where that
            is read from there: then the headers of the weights are read, too.

    Raises:
        UserError: It makes none, or one larger than its weights.
    """
    path, fresh = config.path, not getattr(config, "architecture", None)
    with ExitStack() as stack:
        if fresh:
            folder = find_pretrained(path, revision=config.revision)
            if not folder.kept:
                why = f"config.json of {path} makes a larger model than its weights. Use theirs."
                stack.enter_context(at_most(folder.size(), lambda: UserError(why)))
        try:
            yield
        except WeftError:
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


def copy_weights(
    model: Any,
    path: str,
    *,
    revision: str | None = None,
    beside: Mapping[str, nn.Linear] = MappingProxyType({}),
) -> str:
    """Takes the weights of ``path`` into a model of transformers; returns a line that says so.

    Args:
        model: The model.
        path: A folder, or a name on the hub.
        revision: Of the hub.
        beside: Layers by the names that they may have there; one that is not there stays as it is.

    Raises:
        UserError: They are not there, or not those of the architecture.
    """
    found = dict(find_pretrained(path, revision=revision).tensors())
    prefix = f"{model.base_model_prefix}."  # which names in a file may begin with, or not
    given = {_former(name.removeprefix(prefix)): value for name, value in found.items()}
    missing, wrong = _copy(model, given)
    names: Iterable[str] = found
    if missing and (converted := _converted(model, found)):
        values, names = converted
        missing, wrong = _copy(model, values)
    outside, unused = _unused(model, names)
    lacks = [f"{name} is missing" for name in missing]
    misfits = [*wrong, *lacks, *(f"{name} has no place" for name in outside)]
    if misfits:
        raise UserError(
            f"The weights of {path} do not fit its architecture {model.config.model_type}: "
            f"{', '.join(misfits[:5])}, {len(misfits)} in all."
        )
    for name, layer in beside.items():
        kept = {part: given.get(f"{name}.{part}") for part in ("weight", "bias")}
        if all(v is not None and v.shape == getattr(layer, n).shape for n, v in kept.items()):
            layer.load_state_dict(kept)
    every = [*model.parameters()]
    learning = sum(p.numel() for p in every if p.requires_grad)
    total = sum(p.numel() for p in every)
    learn = f", of which {learning:,} learn" if learning < total else ""
    rest = _said_of_rows(model, given, path)
    if unused:
        rest += f" Without a place in it: {', '.join(unused[:5])}, {len(unused)} in all."
    return f"Pretrained weights of {path}: {total:,} parameters{learn}.{rest}"


def _said_of_rows(model: Any, given: Mapping[str, Tensor], path: str) -> str:
    """How many tokens have no row in a file, if any.

    Raises:
        UserError: They are so many that the tokenizer is another model's.
    """
    table = model.get_input_embeddings().weight
    name = next((name for name, each in own_weights(model).items() if each is table), "")
    found = given.get(name.removeprefix(f"{model.base_model_prefix}."))
    lacks = 0 if found is None else len(table) - len(found)
    if lacks > len(table) * _NEW:
        raise UserError(
            f"The tokenizer of {path} has {len(table):,} tokens, but the weights have rows of "
            f"{len(table) - lacks:,}: it is that of another model. Take its own tokenizer.json."
        )
    return f" Tokens that begin at random, without a row there: {lacks:,}." if lacks > 0 else ""


def _unused(model: Any, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Names in a file that a model has no place for: those of its layers, and others in it.

    What is computed, stands behind the model, or is known to be left aside is not among them.
    """
    prefix, every = f"{model.base_model_prefix}.", [*names]
    wanted = {name.removeprefix(prefix) for name in own_weights(model)}
    stacks = {found[0] for name in wanted if (found := re.match(r".*?\.(?=\d+\.)", name))}
    whole = any(name.startswith(prefix) for name in every)
    aside = getattr(model, "_keys_to_ignore_on_load_unexpected", None) or ()
    layers, others = [], []
    for name in every:
        own = _former(name.removeprefix(prefix))
        known = any(re.search(pattern, each) for pattern in aside for each in (name, own))
        if own in wanted or known or COMPUTED.search(own):
            continue
        if (found := re.match(r".*?\.(?=\d+\.)", own)) and found[0] in stacks:
            layers.append(name)
        elif (name.startswith(prefix) or not whole) and not _BEHIND.match(own):
            others.append(name)
    return layers, others


def _converted(
    model: Any, found: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], list[str]] | None:
    """Weights as transformers changes those of its own files: experts that a layer has as one.

    Also the names that have no place. None, where it does not know all that are wanted.
    """
    config = copy.deepcopy(model.config)
    try:
        with silent_transformers():
            made, info = type(model).from_pretrained(
                None, config=config, state_dict={**found}, output_loading_info=True
            )
    except Exception:  # what is wrong is said by the names that are missing
        return None
    if info["missing_keys"] or info["mismatched_keys"]:
        return None
    prefix = f"{model.base_model_prefix}."
    values = {name.removeprefix(prefix): value for name, value in made.state_dict().items()}
    return values, sorted(info["unexpected_keys"])


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


def _copy(model: Any, given: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
    """Copies weights by name; the names of those that are missing, and of other shapes.

    Names given are without that of the whole model, as ``bert.``; a tied table is there once.
    Tables of tokens may have fewer rows than the tokenizer has ids: those they lack stay at random.
    """
    wanted, prefix = own_weights(model), f"{model.base_model_prefix}."
    named = ("get_input_embeddings", "get_output_embeddings")
    ends = [getattr(model, name)() for name in named if hasattr(model, name)]
    tables = [table for end in ends if end is not None for table in end.parameters()]
    made = set(getattr(model, "_keys_to_ignore_on_load_missing", None) or ())  # as sines
    missing, wrong, copied = dict[str, Tensor](), [], set[int]()
    with torch.no_grad():
        for name, parameter in wanted.items():
            value = given.get(name.removeprefix(prefix))
            if value is None:
                computed = name in made or name.endswith(".inv_freq")
                missing |= {} if computed else {name: parameter}
                continue
            copied.add(id(parameter))
            if parameter.is_floating_point() and not value.is_floating_point():
                wrong += [f"{name} is {value.dtype}"]
            elif value.shape == parameter.shape:
                parameter.copy_(value)
            elif any(parameter is table for table in tables) and (
                value.shape[1:] == parameter.shape[1:]
            ):
                parameter[: len(value)].copy_(value[: len(parameter)])
            elif name == "final_logits_bias" and len(value) == len(parameter) == 1:
                width = min(value.shape[1], parameter.shape[1])
                parameter[:, :width].copy_(value[:, :width])
            else:
                wrong += [f"{name} is {list(value.shape)}, not {list(parameter.shape)}"]
    _share_tables(model, missing, copied)
    return [name for name, parameter in missing.items() if id(parameter) not in copied], wrong


def _share_tables(model: Any, missing: dict[str, Tensor], copied: set[int]) -> None:
    """Fills a table of scores that a file lacks as one of its own: it is that of the tokens."""
    source: Any = model.get_input_embeddings()
    target: Any = getattr(model, "lm_head", None)
    lacks = "lm_head.weight" in missing and isinstance(target, torch.nn.Module)
    if lacks and id(source.weight) in copied and source.weight.shape == target.weight.shape:
        with torch.no_grad():
            target.weight.copy_(source.weight)
        copied.add(id(target.weight))


def _former(name: str) -> str:
    """Today's name of a parameter."""
    for former, now in _RENAMED:
        name = name.replace(former, now)
    return name

"""Weights of files as Hugging Face lays them out, taken into the models of transformers."""

import copy
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from textmill.errors import UserError
from textmill.models.lora import own_weights
from textmill.models.pretrained.architecture import silent_transformers
from textmill.runtime.pretrained import COMPUTED, find_pretrained

_RENAMED = (
    ("LayerNorm.gamma", "LayerNorm.weight"),  # in checkpoints of TensorFlow's time
    ("LayerNorm.beta", "LayerNorm.bias"),
    ("embed_out.", "lm_head."),  # in those of GPT-NeoX
)
"""What checkpoints call parameters, and what the models of transformers do."""
_MOST_NEW = 0.5
"""Share of a tokenizer's tokens that may have no row: a person may have added many of a field's."""
_BEHIND = re.compile(r"(classifier|cls|lm_head|pooler)\b")
"""Pretraining heads, dropped because the task adds its own."""


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
    if lacks > len(table) * _MOST_NEW:
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

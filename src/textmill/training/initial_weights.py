"""Weights of another run, or of a part of it, to begin with; and what the two have otherwise.

One rule holds for labels, slots, characters, numbers and all else that was fitted with data: where
what is saved of it differs, no tensor is taken that is below a submodule built with it. Settings
are compared for what no tensor shows: two encoders of the same shapes may still read text
otherwise.
"""

import inspect
import logging
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from textmill.checkpoint.layout import has_checkpoints, is_checkpoint, text_folder
from textmill.checkpoint.manifest import Manifest
from textmill.checkpoint.parts import load_part, plain_parts
from textmill.checkpoint.store import Checkpoints
from textmill.config.component import Component, Config
from textmill.config.values.raw_values import untyped
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import CheckpointError, TextmillError, UserError, refuse_all
from textmill.models.lora import own_name
from textmill.tasks.task import Task
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import TextProcessor, load_text_processor
from textmill.text.tokenizers.tokenizer import Tokenizer

LOG = logging.getLogger("textmill")

SHOWN = 8
"""Names in a line of the report; a foreign model differs in all of them."""
WHOLE = "model"
"""The part of a checkpoint that is the module."""


WHERE = ("name", "column", "text", "separator", "multiple", "format", "length", "limit")
"""What is saved of a column and says where its values stand in the rows, or how many are read, and
not what they are."""
OUTPUTS = ("output_weight", "output_bias")
"""Parameters that score each token where no table of tokens does."""
FREE = ("dropout", "vectors", "frozen", "max_length")
"""Parts of names of settings that another run may well have otherwise."""


class OtherIngredient(NamedTuple):
    """An ingredient that another run had otherwise: how, and what is not to be taken of it."""

    name: str
    said: str
    tensors: tuple[str, ...]


class _Found(NamedTuple):
    """What another run has, and what of it fits."""

    place: Path  # the checkpoint
    pairs: dict[str, str]  # the name there of each name here
    tensors: dict[str, Tensor]  # all that are there, by their names there
    fit: dict[str, str]  # the pairs of the same name and shape
    taken: dict[str, str]  # those of the same meaning, too
    others: list[OtherIngredient]  # what is not taken, for it was built with something else there


class Initial:
    """Fills a task's module from another run before the first step, and reports on every tensor.

    A tensor is taken where name and shape are the same, or where only a submodule around it is not
    (``text.encoder`` here, ``encoder`` there); what is not there, or has another shape, stays as
    the recipe made it. Numbers are converted to the types here. Vectors of tokens are refused where
    they were learned for another vocabulary. What is built with labels, characters, numbers or
    anything else that was fitted otherwise there stays as it was, and is refused if it is named.

    Args:
        source: A run folder (its best checkpoint is taken), a checkpoint, or the ``modules`` that a
            run with ``trainer.save_modules`` left; None for a start from nothing.
        names: What is taken: the name of a submodule here, and its name there; ``""`` is all of
            it. Empty takes whatever matches.
        task: Whose module is filled.
    """

    def __init__(self, source: str | None, names: Mapping[str, str], *, task: Task) -> None:
        self.source, self.names, self.task = source, names, task
        self.found: _Found | None = None

    def check(self) -> None:
        """Refuses a source that cannot be read or has nothing that fits, before the run starts.

        What was read is kept for :meth:`load`, so that a source is read once.
        """
        if self.source is not None:
            self.found = self._matched()

    def begin(self) -> list[str]:
        """Initializes the task, then takes the weights; returns the lines of both reports."""
        return [*self.task.initialize(), *self.load()]

    def load(self) -> list[str]:
        """Takes the weights; returns the lines of the report."""
        if self.source is None:
            return []
        place, pairs, found, fit, taken, others = self.found or self._matched()
        self.found = None
        wanted = self.task.module.state_dict(keep_vars=True)
        with torch.no_grad():
            for here, there in taken.items():
                wanted[here].detach().copy_(found[there])
        lines = [f"Initialized from {place}: {len(taken)} of {len(wanted)} tensors."]
        elsewhere = {} if self.names else moved_modules(wanted, found)
        if said := [f"{h} ({there} there)" for h, there in elsewhere.items() if below(taken, h)]:
            lines.append(f"Of these, by another name: {_few(said)}.")
        other = [h for h, there in pairs.items() if there in found and h not in fit]
        if settings := other_settings(Path(self.source), self.task.module, taken):
            LOG.warning(
                f"Weights are taken from {place} where they were trained with other settings: "
                f"{_few(settings)}. Set them alike, unless this is meant."
            )
        lines += [
            f"Of other {one.name} ({one.said}), so left as they were: {_few(one.tensors)}."
            for one in others
        ]
        if other:
            both = ((h, _shape(found[pairs[h]]), _shape(wanted[h])) for h in other)
            shapes = [f"{h} {there} there, {here} here" for h, there, here in both]
            lines.append(f"Of another shape, so left as they were: {_few(shapes)}.")
        if missing := [h for h in wanted if h not in fit and h not in other]:
            lines.append(f"Not taken from it, so left as they were: {_few(missing)}.")
        if unused := sorted(set(found) - {pairs[h] for h in [*fit, *other]}):
            lines.append(f"Not used of it: {_few(unused)}.")
        return lines

    def _matched(self) -> _Found:
        """All that can be wrong is found here; the processor there is read once, where needed."""
        wanted = self.task.module.state_dict()
        place, found = _read(Path(str(self.source)))
        pairs = dict[str, str]()
        names: Mapping[str, str] = self.names
        if not names:
            pairs = {name: name for name in wanted}
            names = moved_modules(wanted, found)
        unknown: list[TextmillError] = []
        for here, there in names.items():
            inside, outside = below(wanted, here), below(found, there)
            for name, keys, among, whose in (
                (here, inside, wanted, "the module here"),
                (there, outside, found, str(place)),
            ):
                if not keys:
                    text = f"trainer.initialize_from names '{name}', which {whose} does not have."
                    unknown.append(UserError(f"{text} {_nearest(name, among)}"))
            pairs |= {key: moved(key, here, there) for key in inside}
        refuse_all(unknown)
        pairs = _without_adapters(pairs, found, place)
        if not any(fits(wanted, found, here, there) for here, there in pairs.items()):
            raise UserError(
                f"trainer.initialize: nothing in {place} has the name and shape of a tensor here. "
                f"There: {_few(sorted(found))}. Here: {_few(sorted(pairs))}. "
                'Name what is to go where: trainer.initialize_from={"encoder": "encoder"}'
            )
        other_text = cache(partial(text_of, place))
        self._refuse_vocabulary(
            place, [h for h, there in pairs.items() if there in found], other_text
        )
        fit = {here: there for here, there in pairs.items() if fits(wanted, found, here, there)}
        others = self._others(place, list(fit), other_text)
        left = {key for other in others for key in other.tensors}
        taken = {here: there for here, there in fit.items() if here not in left}
        return _Found(place, pairs, found, fit, taken, others)

    def _others(
        self, place: Path, fit: Sequence[str], other_text: Callable[[], TextProcessor | None]
    ) -> list[OtherIngredient]:
        """What cannot be taken, for it was built with something else; refuses to do without."""
        others = other_ingredients(self.task.module, self.task.text, other_text, fit)
        errors: list[TextmillError] = [
            UserError(
                f"trainer.initialize_from names '{here}', but {_few(inside)} would be taken from "
                f"{place}, which has other {other.name} ({other.said}). Set {other.name} as they "
                "are there, or name what to take without these."
            )
            for other in others
            for here in self.names
            if here and (inside := below(other.tensors, here))
        ]
        refuse_all(errors)
        if set(fit) == {key for other in others for key in other.tensors}:
            said = "; ".join(f"other {other.name} ({other.said})" for other in others)
            raise UserError(
                f"trainer.initialize: nothing in {place} can be taken but {_few(fit)}, and it has "
                f"{said}. Name another run, or set these as they are there."
            )
        return others

    def _refuse_vocabulary(
        self, place: Path, taken: Sequence[str], other_text: Callable[[], TextProcessor | None]
    ) -> None:
        """Refuses vectors of tokens that were learned for other pieces."""
        table = next((t for t in tables(self.task.module, self.task.text) if t in taken), None)
        if table is None:
            return
        if differs := difference(self.task.text, other_text()):
            what = "number" if table.endswith("bias") else "vector"
            raise UserError(
                f"trainer.initialize: {table} has a {what} for each token, but {place} has another "
                f"vocabulary ({differs}). Take its tokenizer: tokenizer.type=of_run "
                f"tokenizer.path={self.source}. Or name what to take without these vectors: "
                'trainer.initialize_from={"encoder": "encoder"}'
            )


def _read(source: Path) -> tuple[Path, dict[str, Tensor]]:
    """The checkpoint that is meant, and its tensors by name."""
    if has_checkpoints(source):
        used = Checkpoints.of(source).use("best", lambda path: (path, _tensors(path)))
        if used is not None:
            return used
    elif is_checkpoint(source):
        return source, _tensors(source)
    raise UserError(
        f"trainer.initialize is '{source}', where no checkpoint is; wanted a run folder, one of "
        "its checkpoints/step-..., or its modules."
    )


def _without_adapters(pairs: dict[str, str], found: Iterable[str], place: Path) -> dict[str, str]:
    """Names here and there, where layers have adapters here and none there."""
    adapted = [name for name in found if ".lora_" in name]
    if adapted and not any(".lora_" in name for name in pairs):
        raise UserError(
            f"trainer.initialize: in {place} adapters have learned ({_few(adapted)}), which the "
            "model here does not have. Set lora as it is there, or begin with the merged weights: "
            "textmill export RUN --format huggingface."
        )
    return {h: there if there in found else own_name(there) for h, there in pairs.items()}


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        names = plain_parts(path, Manifest.read(path))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    if WHOLE in names:
        state = load_part(path, WHOLE)
    else:
        state = {f"{n}.{key}": value for n in names for key, value in load_part(path, n).items()}
    return {key: value for key, value in state.items() if isinstance(value, Tensor)}


def _shape(value: Any) -> str:
    return str(list(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more


def _nearest(name: str, keys: Iterable[str]) -> str:
    parts = [key.split(".")[:-1] for key in keys]
    known = {".".join(words[:count]) for words in parts for count in range(1, len(words) + 1)}
    near = get_close_matches(name, sorted(known), n=1)
    tops = sorted({key for key in known if "." not in key})
    return f"Did you mean '{near[0]}'?" if near else f"It has: {_few(tops)}."


def moved_modules(wanted: Mapping[str, Any], found: Mapping[str, Tensor]) -> dict[str, str]:
    """Submodules that the other model has one level further out or further in.

    The ``text.encoder`` of a classifier is the ``encoder`` of a tagger. A submodule is looked for
    elsewhere only where the other model has nothing of its name, and found where one place alone
    has a tensor of the same name; of several, one of the same shape. Names there by those here.

    Example:
        >>> import torch
        >>> here = {"text.encoder.weight": torch.zeros(2), "scores.bias": torch.zeros(3)}
        >>> moved_modules(here, {"encoder.weight": torch.zeros(2), "bias": torch.zeros(9)})
        {'text.encoder': 'encoder'}
        >>> moved_modules({"encoder.weight": torch.zeros(2)}, here)
        {'encoder': 'text.encoder'}
    """
    tops = sorted({key.partition(".")[0] for key in found if "." in key})
    pairs = dict[str, str]()
    for here in _submodules(wanted):
        if below(found, here) or any(here.startswith(f"{name}.") for name in pairs):
            continue
        inner, keys = here.partition(".")[2], below(wanted, here)
        places = [inner] if inner else [f"{top}.{here}" for top in tops]
        for like in (_named, fits):
            places = [
                there
                for there in places
                if any(like(wanted, found, key, moved(key, here, there)) for key in keys)
            ]
            if len(places) == 1:
                pairs[here] = places[0]
                break
    return pairs


def _submodules(keys: Iterable[str]) -> list[str]:
    parts = [key.split(".")[:-1] for key in keys]
    names = dict.fromkeys(".".join(words[:depth]) for depth in (1, 2) for words in parts)
    return [name for name in names if name]


def _named(wanted: Mapping[str, Any], found: Mapping[str, Tensor], here: str, there: str) -> bool:
    return here in wanted and there in found


def below(keys: Iterable[str], name: str) -> list[str]:
    """The keys of a submodule, or all for ``""``."""
    return [key for key in keys if not name or key == name or key.startswith(f"{name}.")]


def moved(key: str, here: str, there: str) -> str:
    """What a key in ``here`` is called in ``there``."""
    return f"{there}.{key[len(here) :].lstrip('.')}".strip(".")


def fits(wanted: Mapping[str, Any], found: Mapping[str, Tensor], here: str, there: str) -> bool:
    """Whether a tensor here can take the numbers of one there."""
    value = wanted[here]
    return isinstance(value, Tensor) and there in found and value.shape == found[there].shape


def text_of(checkpoint: Path) -> TextProcessor | None:
    """The text processor that a checkpoint was trained with; None where it has none."""
    try:
        if not Manifest.read(checkpoint).verify_text(checkpoint):
            return None
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint}: {error}") from error
    return load_text_processor(text_folder(checkpoint))


def _tokenizer(text: TextProcessor) -> Tokenizer | None:
    found = text.ingredients.get("tokenizer")
    return found if isinstance(found, Tokenizer) else None


def difference(here: TextProcessor, there: TextProcessor | None) -> str | None:
    """How the pieces of a text processor differ from another's; None where they do not."""
    tokenizer, other = _tokenizer(here), None if there is None else _tokenizer(there)
    if tokenizer is None or other is None:
        return None
    pieces = [
        each.create_decoder().batch([[number] for number in range(each.vocab_info.size)])
        for each in (tokenizer, other)
    ]
    if pieces[0] == pieces[1]:
        return None
    said = f"{len(pieces[0]):,} ids here, {len(pieces[1]):,} there"
    both = enumerate(zip(*pieces, strict=False))
    first = (f"; id {i} is {one!r} here and {two!r} there" for i, (one, two) in both if one != two)
    return said + next(first, "")


def tables(module: nn.Module, text: TextProcessor) -> list[str]:
    """The names of a module's tensors that have a row for each id of the vocabulary."""
    tokenizer = _tokenizer(text)
    if tokenizer is None:
        return []
    size = tokenizer.vocab_info.size
    layers = [(n, m) for n, m in module.named_modules() if isinstance(m, nn.Embedding)]
    found = [f"{name}.weight".lstrip(".") for name, m in layers if m.num_embeddings == size]
    outputs = module.named_parameters(remove_duplicate=False)
    return found + [n for n, p in outputs if n.split(".")[-1] in OUTPUTS and len(p) == size]


def other_ingredients(
    module: nn.Module,
    text: TextProcessor,
    other_text: Callable[[], TextProcessor | None],
    taken: Collection[str],
) -> list[OtherIngredient]:
    """The ingredients of which something else is saved there, with the tensors built with them.

    A tokenizer is none of them: its vocabulary has to be the same.
    """
    found = []
    for name, made in sorted(text.ingredients.items()):
        tensors = () if name == "tokenizer" else built_with(module, name, made, taken)
        if tensors and (there := other_text()) is not None:
            said = _difference(_saved(text, name), _saved(there, name))
            found += [OtherIngredient(name, said, tensors)] if said else []
    return found


def built_with(module: nn.Module, name: str, made: Any, taken: Collection[str]) -> tuple[str, ...]:
    """The names of the tensors below submodules that are built with an ingredient.

    They are below a submodule of its name; where there is none, outside of the components that do
    not take it. There those of labels are known by their rows, one for each, or two more in a
    random field. Of a vocabulary they are also beside a table with a row for each id, whoever has
    it. A tensor too many begins anew; one too few would begin as something else.
    """
    if named := [key for key in taken if name in key.split(".")[:-1]]:
        return tuple(named)
    components = ((key, m) for key, m in module.named_modules() if isinstance(m, Component) and key)
    apart = tuple(f"{key}." for key, component in components if not _takes(component, name))
    state = module.state_dict()
    shapes = {key: state[key].shape for key in taken if not key.startswith(apart)}
    size = len(made) if isinstance(made, Sequence) else getattr(made, "size", None)
    rows = (size, size + 2) if isinstance(size, int) else ()
    found = [key for key, shape in shapes.items() if shape and (not rows or shape[0] in rows)]
    ids = getattr(getattr(made, "vocab_info", None), "size", None)
    held = [key for key, m in module.named_modules() if _has_rows(m, ids)]
    beside = tuple(f"{key.rpartition('.')[0] or key}." for key in held)
    return tuple(key for key in taken if key in found or key.startswith(beside))


def _has_rows(module: nn.Module, count: int | None) -> bool:
    return isinstance(module, nn.Embedding) and module.num_embeddings == count


def _takes(component: Component, name: str) -> bool:
    given = inspect.signature(type(component).__init__).parameters.values()
    return any(one.name == name or one.kind is one.VAR_KEYWORD for one in given)


def _saved(text: TextProcessor, name: str) -> dict[str, Any]:
    """What is saved of the columns of an ingredient: settings by their name, files by theirs."""
    columns: dict[str, Any] = text.all if isinstance(text, ColumnsText) else {}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="textmill-columns-") as folder:
        for column in columns.values():
            if name in column.fitted:
                found |= {
                    k: v for k, v in column.save_files(Path(folder)).items() if k not in WHERE
                }
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return found | {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _difference(here: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    if here and not there:
        return "none there"
    other = [key for key in {**here, **there} if here.get(key) != there.get(key)]
    return f"other {', '.join(other)}" if other else ""


def other_settings(source: Path, module: nn.Module, taken: Mapping[str, str]) -> list[str]:
    """Settings of submodules that are others in the run that their weights come from.

    Number of heads, positions, activations: with others, weights of the same shapes mean nothing.
    """
    there = _model_of(source)
    said = []
    for name, inner in module.named_modules():
        config, elsewhere = getattr(inner, "config", None), _elsewhere(name, taken)
        if elsewhere is None:
            continue
        saved = there.get(elsewhere.rpartition(".")[2]) if elsewhere else there
        if not (isinstance(config, Config) and isinstance(saved, Mapping)):
            continue
        others = dict(_flat(saved))
        for setting, value in _flat(plain(config)):
            free = any(word in setting for word in FREE)
            if setting in others and others[setting] != value and not free:
                said.append(f"{name}.{setting} is {value} here and {others[setting]} there")
    return said


def _elsewhere(name: str, taken: Mapping[str, str]) -> str | None:
    for key, there in taken.items():
        inside = key[len(name) :]
        within = name and key.startswith(f"{name}.")
        if within and f".{there}".endswith(inside):
            return f".{there}".removesuffix(inside).lstrip(".")
    return None


def _model_of(source: Path) -> Mapping[str, Any]:
    """The saved settings of the model that a source belongs to; empty where there are none."""
    for folder in (source, source.parent, source.parent.parent):
        if (folder / "config.yaml").is_file():
            try:
                settings = read_yaml(folder / "config.yaml").entries.get("settings")
            except UserError:
                return {}
            model = untyped(settings).get("model") if settings is not None else None
            return model if isinstance(model, Mapping) else {}
    return {}


def _flat(data: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(data, Mapping):
        yield before, data
        return
    for name, value in data.items():
        yield from _flat(value, f"{before}.{name}" if before else str(name))

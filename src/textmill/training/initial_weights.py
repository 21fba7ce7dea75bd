"""Weights of another run, or of a part of it, to begin with; and what the two have otherwise.

One rule holds for everything that is fitted to data (labels, slots, characters, numbers ...): if
its saved files differ, no tensor below a submodule that is built with it is taken, and the report
says so. Settings are compared as well, for no tensor shows them: two encoders of the same shapes
may still read text differently.
"""

import inspect
import logging
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from textmill.config.registry import suggest
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
WHERE = ("name", "column", "text", "separator", "multiple", "format", "length", "limit")
"""Saved settings of a column that say where its values stand in the rows, or how many are read."""
FREE = ("dropout", "vectors", "frozen", "max_length")
"""Parts of the names of settings that may differ without a warning."""
OtherText = Callable[[], TextProcessor | None]
"""Reads the text processor of the other run when it is first needed."""


class _Match(NamedTuple):
    """What another run has, and what of it fits."""

    place: Path  # the checkpoint
    there: dict[str, Tensor]  # all its tensors, by their names there
    pairs: dict[str, str]  # the name there of each name here
    fit: dict[str, str]  # the pairs of the same shape
    others: dict[str, tuple[str, tuple[str, ...]]]  # ingredient: difference, tensors not taken

    @property
    def taken(self) -> dict[str, str]:
        left = {key for _, tensors in self.others.values() for key in tensors}
        return {here: there for here, there in self.fit.items() if here not in left}


class Initial:
    """Fills a task's module from another run before the first step, and reports on every tensor.

    A tensor is taken if name and shape are the same, or if only a submodule around it differs
    (``text.encoder`` here, ``encoder`` there). Every other tensor stays as the recipe made it.
    Numbers are converted to the types here. Vectors of tokens are refused if they were learned for
    another vocabulary. Tensors built with something that was fitted otherwise there are left out,
    and are refused if they are named.

    The source is a run folder (its best checkpoint is taken), a checkpoint, or the ``modules``
    that a run with ``trainer.save_modules`` left; None for a start from nothing. ``names`` are
    submodules to take, their names here and there, ``""`` being all of it, and the longest name
    that a tensor is below counts; empty takes whatever matches.
    """

    def __init__(self, source: str | None, names: Mapping[str, str], *, task: Task) -> None:
        self.source, self.names, self.task = source, names, task
        self._match: _Match | None = None

    def check(self) -> None:
        """Refuses a source that cannot be read or has nothing that fits, before the run starts.

        :meth:`load` uses what was read, so that a source is read once.
        """
        if self.source is not None:
            self._match = self._matched()

    def begin(self) -> list[str]:
        """Initializes the task, then takes the weights; returns the lines of both reports."""
        return [*self.task.initialize(), *self.load()]

    def load(self) -> list[str]:
        """Takes the weights; returns the lines of the report."""
        if self.source is None:
            return []
        match, self._match = self._match or self._matched(), None
        place, there, taken, fit = match.place, match.there, match.taken, match.fit
        wanted = self.task.module.state_dict(keep_vars=True)
        with torch.no_grad():
            for key, name in taken.items():
                wanted[key].detach().copy_(there[name])
        lines = [f"Initialized from {place}: {len(taken)} of {len(wanted)} tensors."]
        elsewhere = {} if self.names else moved_modules(wanted, there)
        if moves := [f"{h} ({name} there)" for h, name in elsewhere.items() if below(taken, h)]:
            lines.append(f"Of these, by another name: {_few(moves)}.")
        if settings := other_settings(Path(self.source), self.task.module, taken):
            LOG.warning(
                f"Weights are taken from {place} where they were trained with other settings: "
                f"{_few(settings)}. Set them alike, unless this is meant."
            )
        lines += [
            f"Of other {name} ({difference}), so left as they were: {_few(tensors)}."
            for name, (difference, tensors) in match.others.items()
        ]
        reshaped = [h for h, name in match.pairs.items() if name in there and h not in fit]
        if reshaped:
            shapes = [
                f"{h} {_shape(there[match.pairs[h]])} there, {_shape(wanted[h])} here"
                for h in reshaped
            ]
            lines.append(f"Of another shape, so left as they were: {_few(shapes)}.")
        if missing := [h for h in wanted if h not in fit and h not in reshaped]:
            lines.append(f"Not taken from it, so left as they were: {_few(missing)}.")
        if unused := sorted(set(there) - {match.pairs[h] for h in [*fit, *reshaped]}):
            lines.append(f"Not used of it: {_few(unused)}.")
        return lines

    def _matched(self) -> _Match:
        """Finds everything that can be wrong; the text processor there is read once, if needed."""
        wanted = self.task.module.state_dict()
        place, there = _read(Path(str(self.source)))
        pairs = _without_adapters(self._pairs(wanted, there, place), there, place)
        fit = {here: name for here, name in pairs.items() if fits(wanted, there, here, name)}
        if not fit:
            raise UserError(
                f"trainer.initialize: nothing in {place} has the name and shape of a tensor here. "
                f"There: {_few(sorted(there))}. Here: {_few(sorted(pairs))}. "
                'Name what is to go where: trainer.initialize_from={"encoder": "encoder"}'
            )
        other_text: OtherText = cache(partial(text_of, place))
        self._refuse_vocabulary(
            place, [h for h, name in pairs.items() if name in there], other_text
        )
        others = other_ingredients(self.task.module, self.task.text, other_text, fit)
        match = _Match(place, there, pairs, fit, others)
        refuse_all(
            [
                UserError(
                    f"trainer.initialize_from names '{here}', but {_few(inside)} would be taken "
                    f"from {place}, which has other {name} ({difference}). Set {name} as they are "
                    "there, or name what to take without these."
                )
                for name, (difference, tensors) in others.items()
                for here in self.names
                if here and (inside := below(tensors, here))
            ]
        )
        if not match.taken:
            listed = "; ".join(f"other {name} ({why})" for name, (why, _) in others.items())
            raise UserError(
                f"trainer.initialize: nothing in {place} can be taken but {_few(fit)}, and it has "
                f"{listed}. Name another run, or set these as they are there."
            )
        return match

    def _pairs(
        self, wanted: Mapping[str, Any], there: Mapping[str, Tensor], place: Path
    ) -> dict[str, str]:
        """The name there of each tensor here; refuses names of submodules that do not exist."""
        if not self.names:
            pairs = {name: name for name in wanted}
            for here, name in moved_modules(wanted, there).items():
                pairs |= {key: moved(key, here, name) for key in below(wanted, here)}
            return pairs
        unknown: list[TextmillError] = [
            UserError(
                f"trainer.initialize_from names '{name}', which {whose} does not have. "
                f"{_nearest(name, keys)}"
            )
            for here, other in self.names.items()
            for name, keys, whose in (
                (here, wanted, "the module here"),
                (other, there, str(place)),
            )
            if not below(keys, name)
        ]
        refuse_all(unknown)
        return {
            key: moved(key, here, other)
            for here, other in sorted(self.names.items(), key=lambda names: len(names[0]))
            for key in below(wanted, here)
        }

    def _refuse_vocabulary(self, place: Path, taken: Sequence[str], other_text: OtherText) -> None:
        """Refuses vectors of tokens that were learned for another vocabulary."""
        table = next((t for t in tables(self.task.module, self.task.text) if t in taken), None)
        if table and (differs := vocabulary_difference(self.task.text, other_text())):
            what = "number" if table.endswith("bias") else "vector"
            raise UserError(
                f"trainer.initialize: {table} has a {what} for each token, but {place} has another "
                f"vocabulary ({differs}). Take its tokenizer: tokenizer.type=of_run "
                f"tokenizer.path={self.source}. Or name what to take without these vectors: "
                'trainer.initialize_from={"encoder": "encoder"}'
            )


def _read(source: Path) -> tuple[Path, dict[str, Tensor]]:
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


def _without_adapters(pairs: dict[str, str], there: Iterable[str], place: Path) -> dict[str, str]:
    """Pairs of names for a model with adapters here and a source that has none."""
    adapted = [name for name in there if ".lora_" in name]
    if adapted and not any(".lora_" in name for name in pairs):
        raise UserError(
            f"trainer.initialize: in {place} adapters have learned ({_few(adapted)}), which the "
            "model here does not have. Set lora as it is there, or begin with the merged weights: "
            "textmill export RUN --format huggingface."
        )
    return {here: name if name in there else own_name(name) for here, name in pairs.items()}


def _tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of the module: of the part ``model``, or of all submodules saved apart."""
    try:
        names = plain_parts(path, Manifest.read(path))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    parts = {"": "model"} if "model" in names else {f"{name}.": name for name in names}
    states = {start: load_part(path, name) for start, name in parts.items()}
    return {
        f"{start}{key}": value
        for start, state in states.items()
        for key, value in state.items()
        if isinstance(value, Tensor)
    }


def _shape(value: Any) -> str:
    return str(list(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more


def _nearest(name: str, keys: Iterable[str]) -> str:
    parts = [key.split(".")[:-1] for key in keys]
    known = {".".join(words[:count]) for words in parts for count in range(1, len(words) + 1)}
    tops = sorted({key for key in known if "." not in key})
    return suggest(name, sorted(known)).rstrip() or f"It has: {_few(tops)}."


def moved_modules(wanted: Mapping[str, Any], there: Mapping[str, Tensor]) -> dict[str, str]:
    """Submodules that the other model has one level further out or in; names there by those here.

    The ``text.encoder`` of a classifier is the ``encoder`` of a tagger. Only a submodule whose name
    the other model does not have is looked for elsewhere. It is found if one place alone has a
    tensor of the same name, or else one place alone has one of the same name and shape.
    """
    tops = sorted({key.partition(".")[0] for key in there if "." in key})
    paths = [key.split(".")[:-1] for key in wanted]
    submodules = dict.fromkeys(".".join(words[:depth]) for depth in (1, 2) for words in paths)
    pairs = dict[str, str]()
    for here in filter(None, submodules):
        if below(there, here) or any(here.startswith(f"{name}.") for name in pairs):
            continue
        inner, keys = here.partition(".")[2], below(wanted, here)
        places = [
            place
            for place in ([inner] if inner else [f"{top}.{here}" for top in tops])
            if any(moved(key, here, place) in there for key in keys)
        ]
        if len(places) > 1:
            places = [
                place
                for place in places
                if any(fits(wanted, there, key, moved(key, here, place)) for key in keys)
            ]
        if len(places) == 1:
            pairs[here] = places[0]
    return pairs


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
    """The text processor that a checkpoint was trained with; None if it has none."""
    try:
        if not Manifest.read(checkpoint).verify_text(checkpoint):
            return None
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint}: {error}") from error
    return load_text_processor(text_folder(checkpoint))


def vocabulary_difference(here: TextProcessor, there: TextProcessor | None) -> str | None:
    """How the vocabulary of a text processor differs from another's; None if it does not."""
    tokenizers = [each and each.ingredients.get("tokenizer") for each in (here, there)]
    pieces = [
        each.create_decoder().batch([[number] for number in range(each.vocab_info.size)])
        for each in tokenizers
        if isinstance(each, Tokenizer)
    ]
    if len(pieces) < 2 or pieces[0] == pieces[1]:
        return None
    both = enumerate(zip(*pieces, strict=False))
    first = (f"; id {i} is {one!r} here and {two!r} there" for i, (one, two) in both if one != two)
    return f"{len(pieces[0]):,} ids here, {len(pieces[1]):,} there" + next(first, "")


def tables(module: nn.Module, text: TextProcessor) -> list[str]:
    """The names of a module's tensors that have a row for each id of the vocabulary."""
    tokenizer = text.ingredients.get("tokenizer")
    if not isinstance(tokenizer, Tokenizer):
        return []
    size, outputs = tokenizer.vocab_info.size, ("output_weight", "output_bias")
    named = module.named_parameters(remove_duplicate=False)
    return [f"{name}.weight".lstrip(".") for name in _embeddings(module, size)] + [
        name for name, p in named if name.split(".")[-1] in outputs and len(p) == size
    ]


def _embeddings(module: nn.Module, rows: int | None) -> list[str]:
    layers = module.named_modules()
    return [n for n, m in layers if isinstance(m, nn.Embedding) and m.num_embeddings == rows]


def other_ingredients(
    module: nn.Module, text: TextProcessor, other_text: OtherText, taken: Collection[str]
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The ingredients whose saved files differ: how, and the tensors built with each.

    The tokenizer is not among them: its vocabulary has to be the same.
    """
    others = {}
    for name, made in sorted(text.ingredients.items()):
        tensors = () if name == "tokenizer" else built_with(module, name, made, taken)
        if tensors and (there := other_text()) is not None:
            here, saved = _saved(text, name), _saved(there, name)
            differing = [key for key in {**here, **saved} if here.get(key) != saved.get(key)]
            if differing:
                why = f"other {', '.join(differing)}" if saved else "none there"
                others[name] = why, tensors
    return others


def built_with(module: nn.Module, name: str, made: Any, taken: Collection[str]) -> tuple[str, ...]:
    """The names of the tensors below submodules that are built with an ingredient.

    These are the submodules of its name. If there are none, they are what lies outside the
    components that do not take it. There, labels are known by their rows: one for each, or two more
    in a random field. The tensors beside a table with a row for each id of its vocabulary are built
    with it as well. One tensor too many begins anew; one too few would be misread.
    """
    if named := [key for key in taken if name in key.split(".")[:-1]]:
        return tuple(named)
    components = ((key, m) for key, m in module.named_modules() if isinstance(m, Component) and key)
    apart = tuple(f"{key}." for key, component in components if not _takes(component, name))
    state = module.state_dict()
    size = len(made) if isinstance(made, Sequence) else getattr(made, "size", None)
    rows = (size, size + 2) if isinstance(size, int) else ()
    ids = getattr(getattr(made, "vocab_info", None), "size", None)
    beside = tuple(f"{key.rpartition('.')[0] or key}." for key in _embeddings(module, ids))

    def of_it(key: str) -> bool:
        shape = state[key].shape
        own = bool(shape) and (not rows or shape[0] in rows)
        return (own and not key.startswith(apart)) or key.startswith(beside)

    return tuple(filter(of_it, taken))


def _takes(component: Component, name: str) -> bool:
    parameters = inspect.signature(type(component).__init__).parameters.values()
    return any(one.name == name or one.kind is one.VAR_KEYWORD for one in parameters)


def _saved(text: TextProcessor, name: str) -> dict[str, Any]:
    """What is saved of the columns of an ingredient: settings by their name, files by theirs."""
    columns: dict[str, Any] = text.all if isinstance(text, ColumnsText) else {}
    settings: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="textmill-columns-") as folder:
        for column in columns.values():
            if name in column.fitted:
                settings |= column.save_files(Path(folder))
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {key: value for key, value in settings.items() if key not in WHERE} | contents


def other_settings(source: Path, module: nn.Module, taken: Mapping[str, str]) -> list[str]:
    """Settings of submodules that are others in the run that their weights come from.

    With another number of heads, other positions or activations, weights of the same shapes mean
    something else.
    """
    there = _model_of(source)
    differing = []
    for name, inner in module.named_modules():
        config, elsewhere = getattr(inner, "config", None), _elsewhere(name, taken)
        if elsewhere is None or not isinstance(config, Config):
            continue
        saved = there.get(elsewhere.rpartition(".")[2]) if elsewhere else there
        others = dict(_flat(saved)) if isinstance(saved, Mapping) else {}
        differing += [
            f"{name}.{setting} is {value} here and {others[setting]} there"
            for setting, value in _flat(plain(config))
            if others.get(setting, value) != value and not any(word in setting for word in FREE)
        ]
    return differing


def _elsewhere(name: str, taken: Mapping[str, str]) -> str | None:
    """The name there of a submodule here, by the tensors that are taken below it."""
    for key, there in taken.items():
        inside = key.removeprefix(name)
        if name and key.startswith(f"{name}.") and f".{there}".endswith(inside):
            return f".{there}".removesuffix(inside).lstrip(".")
    return None


def _model_of(source: Path) -> Mapping[str, Any]:
    """The saved settings of the model that a source belongs to; empty if there are none."""
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

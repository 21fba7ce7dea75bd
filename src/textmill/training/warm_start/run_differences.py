"""What another run had otherwise: its vocabulary, what else stands for fitted text, settings.

Beside the tokenizer that is labels, slots, characters, affixes, numbers. Numbers beside a text have
a place each, and what brings them to mean 0 and deviation 1: where these are far from what they
were, a number is another one, or comes in another unit. Of an ingredient of a recipe's own that
names no ids, all that is saved of the columns it made is compared; of a text processor of a
recipe's own that has no such columns nothing is known. Settings are compared for what no tensor
shows: two encoders of the same shapes may still read text otherwise.
"""

import inspect
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from textmill.checkpoint.layout import text_folder
from textmill.checkpoint.manifest import Manifest
from textmill.config.component import Component, Config
from textmill.config.values.raw_values import untyped
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import CheckpointError, UserError
from textmill.models.crf import LinearChainCrf
from textmill.text.columns.numbers import Numbers
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import TextProcessor, load_text_processor
from textmill.text.tokenizers.tokenizer import Tokenizer

NAMED = ("known", "kinds", "names")
"""Where a fitted thing that is no sequence keeps the names of its ids, in their order."""
PLACES = ("prefixes", "suffixes")
"""What else decides which of its ids stands for what."""
OUTPUTS = ("output_weight", "output_bias")
"""Parameters that score each token where no table of tokens does."""
FAR = 2.0
"""A deviation so many times the other's is no chance: of 50 rows it is known to some 10 %."""
FREE = ("dropout", "vectors", "frozen", "max_length")
"""Parts of names of settings that another run may well have otherwise."""


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
    """How the pieces of a text processor differ from another's; None where not, or there are none.

    Example:
        >>> from textmill.text.processors.masked_language_model import MaskedText
        >>> from textmill.text.tokenizers.word_tokenizer import WordTokenizer
        >>> one, two = (WordTokenizer.Config(words=words).build() for words in (("a",), ("b", "c")))
        >>> difference(MaskedText.of(one), MaskedText.of(two))
        "3 ids here, 4 there; id 2 is 'a' here and 'b' there"
    """
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
    """The names of a module's tensors that have a row for each id of a text processor's vocabulary.

    Example:
        >>> from textmill.text.processors.masked_language_model import MaskedText
        >>> from textmill.text.tokenizers.word_tokenizer import WordTokenizer
        >>> text = MaskedText.of(WordTokenizer.Config(words=("a", "b")).build())
        >>> tables(nn.Sequential(nn.Embedding(4, 2), nn.Linear(4, 2)), text)
        ['0.weight']
    """
    tokenizer = _tokenizer(text)
    if tokenizer is None:
        return []
    size = tokenizer.vocab_info.size
    layers = [(n, m) for n, m in module.named_modules() if isinstance(m, nn.Embedding)]
    found = [f"{name}.weight".lstrip(".") for name, m in layers if m.num_embeddings == size]
    outputs = module.named_parameters(remove_duplicate=False)
    return found + [n for n, p in outputs if n.split(".")[-1] in OUTPUTS and len(p) == size]


class FittedInput(NamedTuple):
    """An ingredient that another run had otherwise: how, and what is not to be taken of it."""

    name: str
    said: str
    tensors: tuple[str, ...]


def belonging(
    module: nn.Module, text: TextProcessor, taken: Collection[str]
) -> dict[str, list[str]]:
    """The tensors taken that have rows of a fitted ingredient, by its name; no tokenizer's."""
    found = dict[str, list[str]]()
    for name, made in sorted(text.ingredients.items()):
        if name != "tokenizer" and ids_of(made):
            keys = [key for key in standing_for(module, name, made) if key in taken]
            found |= {name: keys} if keys else {}
    return found


def changed(
    belong: dict[str, list[str]], here: TextProcessor, there: TextProcessor | None
) -> list[FittedInput]:
    """The ingredients whose ids stand for something else in another text processor."""
    others = {} if there is None else {name: there.ingredients.get(name) for name in belong}
    both = ((name, _difference(here.ingredients[name], other)) for name, other in others.items())
    return [FittedInput(name, said, tuple(belong[name])) for name, said in both if said is not None]


def standing_for(module: nn.Module, name: str, made: Any) -> list[str]:
    """The names of a module's tensors with a row for each id of an ingredient.

    They are below a submodule of the ingredient's name, or in the layers of what is built with it:
    an encoder, which is not, has no labels though it be as wide. A tensor too many begins anew; one
    too few would begin as something else.

    Example:
        >>> model = nn.ModuleDict({"scores": nn.Linear(4, 2), "crf": LinearChainCrf(["N", "V"])})
        >>> standing_for(model, "labels", ["N", "V"])
        ['scores.weight', 'scores.bias', 'crf.transitions']
        >>> standing_for(model, "labels", ["N", "V", "X"])
        []
    """
    state = {key: v for key, v in module.state_dict().items() if isinstance(v, Tensor) and v.dim()}
    # Marks such as padding may come before what is known.
    size = None if isinstance(made, Sequence) else getattr(made, "size", None)
    size = size if isinstance(size, int) else len(ids_of(made))
    rows = [key for key, value in state.items() if len(value) == size]
    if named := [key for key in rows if name in key.split(".")[:-1]]:
        return named
    apart = built_without(module, name)
    found = {key for key in rows if not key.startswith(apart)}
    if isinstance(made, Sequence):  # random fields of these labels have two rows more
        fields = [(key, m) for key, m in module.named_modules() if isinstance(m, LinearChainCrf)]
        found |= {f"{key}.transitions".lstrip(".") for key, m in fields if m.names == tuple(made)}
    else:
        tables = [key for key, m in module.named_modules() if isinstance(m, nn.Embedding)]
        found |= {key for key in rows if key.rpartition(".")[0] in tables}
    return [key for key in state if key in found]


def built_without(module: nn.Module, name: str) -> tuple[str, ...]:
    """How the names of tensors begin that are in components built without an ingredient.

    Example:
        >>> from types import SimpleNamespace
        >>> from textmill.models.classifier import Classifier
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0))
        >>> model = Classifier.Config().build(tokenizer=tokenizer, labels=range(7))
        >>> built_without(model, "labels")
        ('text.embedding.', 'text.encoder.', 'text.pooling.')
    """

    def takes(component: Component) -> bool:
        given = inspect.signature(type(component).__init__).parameters.values()
        return any(one.name == name or one.kind is one.VAR_KEYWORD for one in given)

    components = ((key, m) for key, m in module.named_modules() if isinstance(m, Component))
    return tuple(f"{key}." for key, m in components if key and not takes(m))


def ids_of(made: Any) -> list[Any]:
    """What the ids of an ingredient stand for, in order; empty where that is not known."""
    if isinstance(made, Sequence):
        return list(made)
    lists = [getattr(made, name) for name in NAMED if isinstance(getattr(made, name, 0), Sequence)]
    return list(lists[0]) if lists else []


def _difference(here: Any, there: Any) -> str | None:
    if there is None:
        return "none there"
    one, two = ids_of(here), ids_of(there)
    if one != two:
        for number, (a, b) in enumerate(zip(one, two, strict=False)):
            if a != b and isinstance(a, str):
                return f"number {number} is {a!r} here and {b!r} there"
        return f"{len(one):,} here, {len(two):,} there" if len(one) != len(two) else "others there"
    places = [name for name in PLACES if getattr(here, name, ()) != getattr(there, name, ())]
    return f"other {' and '.join(places)}" if places else None


def other_fitted(
    module: nn.Module,
    text: TextProcessor,
    other_text: Callable[[], TextProcessor | None],
    taken: Collection[str],
) -> list[str]:
    """What is said of each ingredient without ids that the weights of another run do not fit.

    Args:
        module: The module here.
        text: Its text processor.
        other_text: Gives that of the weights; only asked where an ingredient is to be compared.
        taken: Names here of the tensors that are.
    """
    state = module.state_dict()
    matrices = [key for key in taken if state[key].dim() > 1]  # they may multiply what it made
    decide = {}
    for name, made in text.ingredients.items():
        apart = built_without(module, name)
        reads = any(not key.startswith(apart) for key in matrices)
        if reads and name != "tokenizer" and not ids_of(made):
            decide[name] = made
    there = other_text() if decide else None
    if there is None:
        return []
    said = list[str]()
    for name, made in decide.items():
        other = there.ingredients.get(name)
        if isinstance(made, Numbers) and isinstance(other, Numbers):
            said += _of_numbers(name, made, other)
        elif other is not None and _saved(text, name) != _saved(there, name):
            said.append(f"{name} is here not what it is there")
    return said


def _of_numbers(name: str, here: Numbers, there: Numbers) -> Iterator[str]:
    """How numbers differ, of which there are as many; else no tensor that reads them is taken."""
    if here.dim != there.dim:
        return
    if here.column != there.column:
        yield f"{name}.column is {here.column} here and {there.column} there"
    ratio = here.deviation / there.deviation
    moved = np.abs(here.mean - there.mean) > np.maximum(here.deviation, there.deviation)
    far = np.flatnonzero(moved | (ratio > FAR) | (ratio < 1 / FAR))
    for number in far[:1].tolist():
        one, two = (
            f"mean {of.mean[number]:.4g} and deviation {of.deviation[number]:.4g}"
            for of in (here, there)
        )
        yield f"{name} has as number {number} one of {one} here and {two} there"


def _saved(text: TextProcessor, name: str) -> dict[str, bytes]:
    """All that is saved of the columns of an ingredient, by the files' names; none without."""
    columns: dict[str, Any] = text.all if isinstance(text, ColumnsText) else {}
    with tempfile.TemporaryDirectory(prefix="textmill-columns-") as folder:
        for role, column in columns.items():
            if name in column.fitted:
                column.save(Path(folder) / role)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def other_settings(source: Path, module: nn.Module, taken: Mapping[str, str]) -> list[str]:
    """Settings of submodules that are others in the run that their weights come from.

    Number of heads, positions, activations: with others, weights of the same shapes mean nothing.

    Args:
        source: A run folder, one of its checkpoints, or its modules; it may have no settings.
        module: The module here.
        taken: Names of tensors there by those here.
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
    """What a submodule is called there, ``""`` for all of it; None where nothing of it is taken."""
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
    """Each setting by its dotted name."""
    if not isinstance(data, Mapping):
        yield before, data
        return
    for name, value in data.items():
        yield from _flat(value, f"{before}.{name}" if before else str(name))

"""What another run had otherwise: its vocabulary, its other fitted ingredients, its settings.

One rule holds for labels, slots, characters, numbers and all else that was fitted with data: where
what is saved of it differs, no tensor is taken that is below a submodule built with it. Settings
are compared for what no tensor shows: two encoders of the same shapes may still read text
otherwise.
"""

import inspect
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from textmill.checkpoint.layout import text_folder
from textmill.checkpoint.manifest import Manifest
from textmill.config.component import Component, Config
from textmill.config.values.raw_values import untyped
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import CheckpointError, UserError
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import TextProcessor, load_text_processor
from textmill.text.tokenizers.tokenizer import Tokenizer

WHERE = ("name", "text", "separator", "format", "length", "limit")
"""What is saved of a column and says where its values stand in the rows, or how many are read, and
not what they are."""
OUTPUTS = ("output_weight", "output_bias")
"""Parameters that score each token where no table of tokens does."""
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


class OtherIngredient(NamedTuple):
    """An ingredient that another run had otherwise: how, and what is not to be taken of it."""

    name: str
    said: str
    tensors: tuple[str, ...]


def other_ingredients(
    module: nn.Module,
    text: TextProcessor,
    other_text: Callable[[], TextProcessor | None],
    taken: Collection[str],
) -> list[OtherIngredient]:
    """The ingredients of which something else is saved there, with the tensors built with them.

    A tokenizer is none of them: its vocabulary has to be the same.

    Args:
        module: The module here.
        text: Its text processor.
        other_text: Gives that of the weights; only asked where an ingredient is to be compared.
        taken: Names here of the tensors that fit.
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

    Example:
        >>> model = nn.ModuleDict({"scores": nn.Linear(4, 2), "hidden": nn.Linear(3, 3)})
        >>> built_with(model, "labels", ["N", "V"], model.state_dict())
        ('scores.weight', 'scores.bias')
        >>> built_with(model, "hidden", object(), model.state_dict())
        ('hidden.weight', 'hidden.bias')
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
    """Whether a component is built with an ingredient."""
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
    """The first difference, in words; empty where there is none.

    Example:
        >>> _difference({"names": ["V", "N"]}, {"names": ["N", "V"]})
        "number 0 of names is 'V' here and 'N' there"
        >>> _difference({"names": ["N", "V"]}, {})
        'none there'
    """
    if here and not there:
        return "none there"
    other = [key for key in [*here, *there] if here.get(key) != there.get(key)]
    for key in other[:1]:
        one, two = here.get(key), there.get(key)
        if isinstance(one, list) and isinstance(two, list):
            pairs = enumerate(zip(one, two, strict=False))
            texts = (
                f"number {n} of {key} is {a!r} here and {b!r} there"
                for n, (a, b) in pairs
                if a != b
            )
            return next(texts, f"{len(one):,} here, {len(two):,} there")
    return f"other {other[0]}" if other else ""


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

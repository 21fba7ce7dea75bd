"""A component: a class with a nested, frozen, keyword-only dataclass ``Config``.

The Config's Python type is the key in code; a registered name is the key in files. Config holds
what a person may set; what the object needs at run time (a tokenizer) comes to ``build`` by name.
Each setting is of its annotation, or is refused by its name. What a file may write may be written
in Python: a dictionary where a structure is wanted, ``"15m"`` for a time.
"""

import dataclasses
import functools
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform, get_args, get_type_hints
from weakref import WeakKeyDictionary

from typing_extensions import override

from textmill.config.code_names import CodeNames
from textmill.config.merge import Settings
from textmill.config.parameters import MISSING, settings_of
from textmill.config.values.annotations import hints, is_of, is_settable, structure_of, type_name
from textmill.config.values.raw_values import Entries, Value
from textmill.config.values.typed_values import plain
from textmill.errors import Place, UserError, refuse_all


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of one component. Subclass it, nested as ``Config``, in the component's class.

    Subclasses are made frozen, keyword-only dataclasses by themselves: no decorator is needed.
    A setting may be given as a file has it, ``"15m"`` or a dictionary of a structure's settings;
    what is unknown or of another type is refused by its name.
    """

    owner: ClassVar[type["Component"]]
    shown_first: ClassVar[frozenset[str] | None] = None
    """The settings that ``textmill help`` shows without ``--all``; None: all of them."""

    @override
    def __init_subclass__(cls, first: Sequence[str] | None = None, **kwargs: Any) -> None:
        """Makes the class a dataclass; ``first`` are its own settings that people change first."""
        super().__init_subclass__(**kwargs)
        own = "__init__" in vars(cls)
        cls.__doc__ = cls.__doc__ or "Settings."  # else a dataclass makes one of its signature
        dataclass(frozen=True, kw_only=True)(cls)
        if not own:
            typed_construction(cls)
        inherited = cls.shown_first
        if first is not None:
            cls.shown_first = frozenset(first).union(inherited or ())
        elif inherited is not None:
            before = {field.name for base in cls.__bases__ for field in _fields(base)}
            cls.shown_first = inherited | {f.name for f in _fields(cls) if f.name not in before}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The Config of plain data, as :meth:`to_dict` gives it: settings left out are default.

        A ``type`` may name a registered subclass, as in a file, or one that is imported already, as
        ``@module.name``.

        Raises:
            UserError: With every setting that is unknown, missing or of another type.
        """
        reader = Settings(CodeNames(closed=(_CODE.source,)))  # data may come from anywhere
        found: Self = reader.read(_entries(data), cls, type_name(cls))
        _refuse(reader)
        return found

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain data, with the registered name as ``type`` where there is one.

        Example:
            >>> from textmill.training import AdamW
            >>> data = AdamW.Config(lr=1e-3).to_dict()
            >>> data["type"], data["lr"], AdamW.Config.from_dict(data) == AdamW.Config(lr=1e-3)
            ('adamw', 0.001, True)
        """
        found: dict[str, Any] = plain(self)
        return found

    def build(self, **runtime: Any) -> Any:
        """Makes the object; ``runtime`` are the parameters of the constructor after its config."""
        owner: Any = self.owner
        return owner(self, **runtime)

    def given(self, **names: str) -> "Given":
        """Rebinds what ``build`` needs: ``given(vocabulary="target_vocabulary")``."""
        known = runtime_parameters(self)
        for parameter in names:
            if parameter not in known:
                wanted = ", ".join(known) or "none"
                raise TypeError(
                    f"{type(self).__qualname__}.given: {self.owner.__name__} takes no "
                    f"'{parameter}' at run time; it takes: {wanted}."
                )
        return Given(self, names)


def _fields(kind: type[Any]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


@dataclass(frozen=True)
class Given:
    """A Config whose ``build`` parameters are filled by ingredients of other names."""

    config: Config
    names: Mapping[str, str]


class Component:
    """Base of everything a recipe can name by type.

    Example:
        >>> class Scale(Component):
        ...     class Config(Config):
        ...         by: float = 2.0
        ...
        ...     def __init__(self, config: "Scale.Config", *, offset: float) -> None:
        ...         self.config, self.offset = config, offset
        ...
        ...     def __call__(self, x: float) -> float:
        ...         return self.config.by * x + self.offset
        >>> Scale.Config(by=3.0).build(offset=1.0)(2.0)
        7.0
    """

    Config: ClassVar[type[Any]]

    @override
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_other_methods(cls)
        if "Config" in cls.__dict__:
            config = cls.__dict__["Config"]
            if not (isinstance(config, type) and issubclass(config, Config)):
                raise TypeError(
                    f"{cls.__qualname__}.Config must be a subclass of textmill.config.Config."
                )
            config.owner = cls
        elif hasattr(cls, "Config"):
            # A subclass without a Config of its own still owns one, so that its Config builds it.
            space = {"__module__": cls.__module__, "__doc__": cls.Config.__doc__}
            cls.Config = type("Config", (cls.Config,), space)
            cls.Config.__qualname__ = f"{cls.__qualname__}.Config"
            cls.Config.owner = cls


def runtime_parameters(config: Config | type[Config]) -> dict[str, inspect.Parameter]:
    """What ``build`` needs by name: of an overridden ``build``, else of the owner's constructor.

    The keys of ``**others: Unpack[SomeTypedDict]`` are parameters that a recipe may leave out.
    """
    kind = config if isinstance(config, type) else type(config)
    if kind.build is not Config.build:
        found = list(inspect.signature(kind.build).parameters.values())[1:]
    else:
        found = list(inspect.signature(kind.owner.__init__).parameters.values())[2:]
    typed = [get_args(p.annotation) for p in found if p.kind is p.VAR_KEYWORD]
    for (others,) in filter(None, typed):
        found += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in get_type_hints(others).items()
        ]
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {p.name: p for p in found if p.kind not in variadic}


def setting(default: Any = dataclasses.MISSING, *, in_key: bool = True, factory: Any = None) -> Any:
    """A field with a mark. ``in_key=False``: where and how a run goes, not what it computes.

    Such settings (device, workers, reporting, saving, run length) are left out of the run's key.

    >>> class Saver(Component):
    ...     class Config(Config):
    ...         keep: int = setting(3, in_key=False)
    >>> Saver.Config().keep
    3
    """
    if factory is not None:
        return dataclasses.field(default_factory=factory, metadata={"in_key": in_key})
    return dataclasses.field(default=default, metadata={"in_key": in_key})


K = TypeVar("K", bound=type[Any])
_CODE = Place("Python")
"""Where a value comes from that code gave."""


def typed_construction(kind: K) -> K:
    """A decorator of a dataclass of settings, by which its constructor reads what it is given.

    Raises:
        UserError: With every setting that is unknown, missing or of another type.

    Example:
        >>> @typed_construction
        ... @dataclasses.dataclass(frozen=True)
        ... class Search:
        ...     beam_size: int = 4
        >>> Search(beam_size="many")
        Traceback (most recent call last):
        textmill.errors.UserError: Search.beam_size: wanted int, found 'many'.
    """
    made = kind.__init__

    @functools.wraps(made)
    def constructor(self: Any, *values: Any, **settings: Any) -> None:
        made(self, *values, **_typed(type(self), settings, given=len(values)))
        owner = getattr(type(self), "owner", None)
        of: tuple[Any, ...] = () if owner is None else (type(self), owner)
        refuse_all([UserError(text) for each in of for text in missing_methods(each)])

    kind.__init__ = constructor
    return kind


def _typed(kind: type[Any], settings: Mapping[str, Any], *, given: int) -> Mapping[str, Any]:
    """The settings with those read that are not of their annotations."""
    types, required = _known(kind)
    absent = [name for name in required[given:] if name not in settings]
    other = {
        name: value
        for name, value in settings.items()
        if name not in types or not is_of(value, types[name])
    }
    if not (other or absent):
        return settings
    reader, name = Settings(), type_name(kind)
    known = settings_of(kind)
    reader.refuse_unknown([p.name for p in known], [_entries(other)], name)
    for parameter in known:
        if parameter.name in absent:
            reader.required(parameter, name, None)
        elif parameter.name in other:
            entries = _entries({parameter.name: other[parameter.name]})
            structure = structure_of(parameter.annotation, MISSING)
            if is_settable(parameter.annotation) or (
                structure and type(other[parameter.name]) is dict
            ):  # of other classes any object is taken
                other |= reader.fields([parameter], [entries], name)
    _refuse(reader)
    return {**settings, **other}


def _refuse(reader: Settings) -> None:
    refuse_all([UserError(problem.message) for problem in reader.problems])


def _entries(data: Mapping[str, Any]) -> Entries:
    return Entries({str(key): Value(value, _CODE) for key, value in data.items()}, _CODE)


_KNOWN: WeakKeyDictionary[type[Any], tuple[dict[str, Any], list[str]]] = WeakKeyDictionary()
"""What was found: to evaluate the annotations of one class takes 0.1 ms."""


def _known(kind: type[Any]) -> tuple[dict[str, Any], list[str]]:
    """The annotation of each field, and the names of those without a default, in their order."""
    if kind in _KNOWN:
        return _KNOWN[kind]
    fields = [entry for entry in dataclasses.fields(kind) if entry.init]
    found = hints(kind)
    types = {entry.name: found.get(entry.name, entry.type) for entry in fields}
    none = dataclasses.MISSING
    required = [f.name for f in fields if f.default is none and f.default_factory is none]
    if not any(isinstance(annotation, str) for annotation in types.values()):
        _KNOWN[kind] = types, required  # else a name in them may be defined later
    return types, required


def _is_library(kind: type[Any]) -> bool:
    return kind.__module__.startswith(("textmill.", "torch."))


def refuse_other_methods(kind: type[Any]) -> None:
    """Refuses a subclass one of whose methods cannot be called as textmill calls it."""
    name = kind.__qualname__.rpartition("<locals>.")[2]
    found = (
        text
        for base in (() if _is_library(kind) else kind.__mro__[1:])
        for method in sorted(vars(base).keys() & vars(kind).keys())
        for text in _called_otherwise(vars(base)[method], vars(kind)[method])
    )
    refuse_all([UserError(f"{name}.{text}") for text in found])


def _called_otherwise(hook: Any, own: Any) -> Iterator[str]:
    """What is wrong with a method that does not take what is given to the one it overrides."""
    if not (isinstance(hook, FunctionType) and isinstance(own, FunctionType)):
        return
    named = hook.__qualname__.startswith("Callback.") and not hook.__name__.startswith("_")
    if not (hook.__module__.startswith("textmill.") and (named or _is_abstract(hook))):
        return
    _, *wanted = inspect.signature(hook).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in wanted):
        return
    by_name = {p.name: None for p in wanted if p.kind is p.KEYWORD_ONLY}
    by_place = [None for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = inspect.signature(own)
    try:
        taken.bind(None, *by_place, **by_name)
    except TypeError:
        has = ", ".join(list(taken.parameters)[1:])
        called = f"{hook.__name__}({', '.join(p.name for p in wanted)})"
        yield f"{hook.__name__} takes ({has}), and is called as {called}."


def _is_abstract(hook: Any) -> bool:
    return bool(getattr(hook, "__isabstractmethod__", False))


@lru_cache
def missing_methods(kind: type[Any]) -> tuple[str, ...]:
    """The abstract methods that a user's class lacks, each with its first line of documentation.

    A method whose callers in its class are all overridden is not needed.
    """
    found = []
    for name in () if _is_library(kind) else dir(kind):
        hook = inspect.getattr_static(kind, name)
        if not (isinstance(hook, FunctionType) and _is_abstract(hook)):
            continue
        base = next(each for each in kind.__mro__ if vars(each).get(name) is hook)
        methods = {n: m for n, m in vars(base).items() if isinstance(m, FunctionType)}
        callers = [n for n, m in methods.items() if name in m.__code__.co_names]
        if not callers or any(getattr(kind, each) is methods[each] for each in callers):
            said = (inspect.getdoc(hook) or "").partition("\n")[0]
            said = re.sub(r":math:`([^`]*)`", r"\1", said.replace("*Shape:*", "Shape:"))
            lacks = f"{kind.__qualname__} has no {name}{inspect.signature(hook)}"
            found.append(f"{lacks}, which every {base.__qualname__} has: {said}")
    return tuple(found)

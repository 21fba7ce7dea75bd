"""A component: a class with a nested, frozen, keyword-only dataclass ``Config``.

The Config's Python type is the key in code; a registered name is the key in files. Config holds
what a person may set; what the object needs at run time (a tokenizer) comes to ``build`` by name.
"""

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, dataclass_transform

from typing_extensions import override

from weft.config.construction import from_plain, typed_construction
from weft.config.foreign_names import refuse_foreign_hooks
from weft.config.values.typed_values import plain

__all__ = ["Component", "Config", "Given", "config_fields", "runtime_parameters", "setting"]


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of one component. Subclass it, nested as ``Config``, in the component's class.

    Subclasses are made frozen, keyword-only dataclasses by themselves: no decorator is needed.
    A setting may be given as a file has it, ``"15m"`` or a dictionary of a structure's settings;
    what is unknown or of another type is refused by its name.
    """

    owner: ClassVar[type["Component"]]

    @override
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = "__init__" in vars(cls)
        dataclass(frozen=True, kw_only=True)(cls)
        if not own:
            typed_construction(cls)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The Config of plain data, as :meth:`to_dict` gives it: settings left out are default.

        A ``type`` may name a registered subclass, as in a file, or one that is imported already, as
        ``@module.name``.

        Raises:
            UserError: With every setting that is unknown, missing or of another type.
        """
        found: Self = from_plain(cls, data)
        return found

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain data, with the registered name as ``type`` where there is one.

        Example:
            >>> from weft.training import AdamW
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
        refuse_foreign_hooks(cls)
        if "Config" in cls.__dict__:
            config = cls.__dict__["Config"]
            if not (isinstance(config, type) and issubclass(config, Config)):
                raise TypeError(
                    f"{cls.__qualname__}.Config must be a subclass of weft.config.Config."
                )
            config.owner = cls
        elif hasattr(cls, "Config"):
            # A subclass without a Config of its own still owns one, so that its Config builds it.
            cls.Config = type(
                "Config",
                (cls.Config,),
                {"__module__": cls.__module__, "__doc__": cls.Config.__doc__},
            )
            cls.Config.__qualname__ = f"{cls.__qualname__}.Config"
            cls.Config.owner = cls


def runtime_parameters(config: Config | type[Config]) -> dict[str, inspect.Parameter]:
    """What ``build`` needs by name: of an overridden ``build``, else of the owner's constructor."""
    kind = config if isinstance(config, type) else type(config)
    if kind.build is not Config.build:
        found = list(inspect.signature(kind.build).parameters.values())[1:]
    else:
        found = list(inspect.signature(kind.owner.__init__).parameters.values())[2:]
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {p.name: p for p in found if p.kind not in variadic}


def config_fields(config: Config | type[Config]) -> tuple[dataclasses.Field[Any], ...]:
    """The settable fields of a Config, in the order written."""
    return tuple(f for f in dataclasses.fields(config) if f.init)


def setting(
    default: Any = dataclasses.MISSING,
    *,
    in_key: bool | Literal["set"] = True,
    factory: Any = None,
) -> Any:
    """A field with a mark. ``in_key=False``: where and how a run goes, not what it computes.

    Such settings (device, workers, reporting, saving, run length) are left out of the run's key.
    ``in_key="set"``: left out where it is None, false, 0 or empty, so that runs from before the
    field keep their keys.

    >>> class Saver(Component):
    ...     class Config(Config):
    ...         keep: int = setting(3, in_key=False)
    >>> Saver.Config().keep
    3
    """
    if factory is not None:
        return dataclasses.field(default_factory=factory, metadata={"in_key": in_key})
    return dataclasses.field(default=default, metadata={"in_key": in_key})

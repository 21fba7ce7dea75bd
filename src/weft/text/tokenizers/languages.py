"""The languages of a tokenizer's two sides, and the tags that tell them apart."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypedDict

from typing_extensions import override

from weft.config import Config as BaseConfig
from weft.errors import UserError

__all__ = [
    "LANGUAGE_SETTINGS",
    "HasLanguages",
    "LanguageConfig",
    "LanguageSettings",
    "Languages",
    "Tags",
    "in_order",
]

Tags = Literal["auto", "always", "never"]
LANGUAGE_SETTINGS = (
    "source_langs",
    "target_langs",
    "default_source_lang",
    "default_target_lang",
    "tags",
)
"""The settings that are saved with every tokenizer."""


class HasLanguages(Protocol):
    """What a tokenizer's Config says of its languages."""

    @property
    def source_langs(self) -> tuple[str, ...]:
        """Languages of the source side."""

    @property
    def target_langs(self) -> tuple[str, ...]:
        """Languages of the target side."""

    @property
    def default_source_lang(self) -> str | None:
        """Language of a source whose language is not given; None: the first."""

    @property
    def default_target_lang(self) -> str | None:
        """Language of a target whose language is not given; None: the first."""

    @property
    def tags(self) -> Tags:
        """Which sides have tags."""


class LanguageConfig(BaseConfig):
    """The language settings that tokenizers share."""

    source_langs: tuple[str, ...] = ("source",)
    """Languages of the source side."""
    target_langs: tuple[str, ...] = ("target",)
    """Languages of the target side."""
    default_source_lang: str | None = None
    """Language of a source whose language is not given. None: the first."""
    default_target_lang: str | None = None
    """Language of a target whose language is not given. None: the first."""
    tags: Tags = "auto"
    """Language tags: on sides with several languages (auto), on both (always), or never."""


class LanguageSettings(TypedDict, total=False):
    """The same where a tokenizer is loaded or fitted; what is left out is as there."""

    source_langs: Collection[str]
    """Languages of the source side."""
    target_langs: Collection[str]
    """Languages of the target side."""
    default_source_lang: str | None
    """Language of a source whose language is not given. None: the first."""
    default_target_lang: str | None
    """Language of a target whose language is not given. None: the first."""
    tags: Tags
    """Language tags: on sides with several languages (auto), on both (always), or never."""


@dataclass(frozen=True)
class Languages:
    """The languages of both sides; a language of both sides has one tag.

    >>> two = Languages(("eng",), ("fra", "spa"), "eng", "fra", tags="auto")
    >>> two.tagged, two.offset("target", "spa"), two.offset("source", None)
    (('fra', 'spa'), 1, None)
    """

    source_langs: tuple[str, ...]
    target_langs: tuple[str, ...]
    default_source_lang: str
    default_target_lang: str
    tags: Tags

    @classmethod
    def of(cls, config: HasLanguages) -> "Languages":
        """The languages a Config names, defaults filled in.

        Raises:
            UserError: A side has no language, one twice, or a default that is not its own.
        """
        return cls(
            config.source_langs,
            config.target_langs,
            _default("source", config.default_source_lang, config.source_langs),
            _default("target", config.default_target_lang, config.target_langs),
            config.tags,
        )

    @property
    def tagged(self) -> tuple[str, ...]:
        """The languages that have a tag, in the order of their ids."""
        sides = [side for side in (self.source_langs, self.target_langs) if self._has_tags(side)]
        return tuple(dict.fromkeys(lang for side in sides for lang in side))

    def offset(self, side: str, lang: str | None) -> int | None:
        """Which tag a text of that side gets, from 0; None where the side has no tags.

        Raises:
            UserError: ``lang`` is not a language of that side.
        """
        source = side == "source"
        langs = self.source_langs if source else self.target_langs
        lang = lang or (self.default_source_lang if source else self.default_target_lang)
        if lang not in langs:
            raise UserError(
                f"'{lang}' is not a {side} language of this tokenizer; these are: {_listed(langs)}."
            )
        return self.tagged.index(lang) if self._has_tags(langs) else None

    def settings(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {name: getattr(self, name) for name in LANGUAGE_SETTINGS}

    def _has_tags(self, langs: tuple[str, ...]) -> bool:
        return self.tags == "always" or (self.tags == "auto" and len(langs) > 1)

    @override
    def __str__(self) -> str:
        return f"{'+'.join(self.source_langs)}->{'+'.join(self.target_langs)}"


def in_order(settings: LanguageSettings) -> dict[str, Any]:
    """The settings with languages as tuples; a set is sorted, so that tags have one order.

    >>> in_order({"source_langs": {"fra", "eng"}, "target_langs": "spa", "tags": "always"})
    {'source_langs': ('eng', 'fra'), 'target_langs': ('spa',), 'tags': 'always'}
    """
    found = dict[str, Any](settings)
    for side in ("source_langs", "target_langs"):
        if side in found:
            found[side] = _ordered(found[side])
    return found


def _ordered(langs: Collection[str]) -> tuple[str, ...]:
    if isinstance(langs, str):
        return (langs,)
    return tuple(sorted(langs)) if isinstance(langs, set | frozenset) else tuple(langs)


def _default(side: str, given: str | None, langs: tuple[str, ...]) -> str:
    if not langs or len(set(langs)) < len(langs):
        raise UserError(
            f"{side}_langs must name one language or several different ones, but is {langs!r:.200}."
        )
    if given is not None and given not in langs:
        raise UserError(
            f"default_{side}_lang is '{given}', which is not in {side}_langs: {_listed(langs)}."
        )
    return given or langs[0]


def _listed(langs: Sequence[str]) -> str:
    """The names of 200 languages, no more: a list from a file may be of any length."""
    return ", ".join(langs[:200]) + (", ..." if len(langs) > 200 else "")

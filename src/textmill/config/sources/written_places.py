"""Settings that say where files are written: never taken over from a run folder.

A run folder may come from anyone, and nothing is written outside it but the caches of the person's
own settings: those of the command line, of a recipe, and of textmill itself.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from textmill.config.values.raw_values import Entries, Items, Node, Scalar, is_null

PLACES = ("cache_dir", "tracking_uri")
"""The settings by name; a URI may be one of a file."""


def without_places(settings: Entries) -> tuple[Entries, dict[str, Scalar]]:
    """The settings of a run's file without those that say where something is written.

    Returns:
        The settings, and those that are left out by their dotted names.

    Example:
        >>> from textmill.config.values.yaml_files import yaml_nodes
        >>> settings = yaml_nodes("tokenizer: {cache_dir: /etc, vocab_size: 9}", source="x.yaml")
        >>> kept, left_out = without_places(settings)
        >>> list(kept.entries["tokenizer"].entries), list(left_out)
        (['vocab_size'], ['tokenizer.cache_dir'])
    """
    left_out: dict[str, Scalar] = {}
    kept = _kept(settings, "", left_out)
    assert isinstance(kept, Entries)
    return kept, left_out


def differing(left_out: Mapping[str, Scalar], settings: Mapping[str, Any]) -> list[str]:
    """A line for each setting that was left out and is another now."""
    lines = []
    for name, node in left_out.items():
        now: Any = settings
        for key in name.split("."):
            now = now.get(key) if isinstance(now, Mapping) else None
        if str(now) != node.text:
            lines.append(
                f"{node.place}: {name}={node.text} is not taken over: a run folder does not say "
                f"where files are written. To write there, set it: {name}={node.text}"
            )
    return lines


def _kept(node: Node, name: str, left_out: dict[str, Scalar]) -> Node:
    """The node without what says where; that is left out, by its dotted name."""
    if isinstance(node, Items):
        numbered = enumerate(node.items)
        items = tuple(_kept(item, f"{name}.{number}", left_out) for number, item in numbered)
        return replace(node, items=items)
    if not isinstance(node, Entries):
        return node
    entries = {}
    for key, item in node.entries.items():
        inner = f"{name}.{key}".lstrip(".")
        if key not in PLACES:
            entries[key] = _kept(item, inner, left_out)
        elif isinstance(item, Scalar) and not is_null(item):
            left_out[inner] = item
    return replace(node, entries=entries)

"""Going on with a run under other settings: what may change, and the record of it."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from weft.config.key import key_settings, plan_parts
from weft.errors import UserError
from weft.inference.load import edited_parts
from weft.recipes.planning import Planned
from weft.recipes.run_folder import RunFolder, command_line

__all__ = ["allowed_changes", "flat", "record_changes"]

LOG = logging.getLogger("weft")


def allowed_changes(
    now: Planned, before: Planned, *, moved: Collection[str] = ()
) -> dict[str, Any]:
    """What the command changes in the run that it goes on with.

    Args:
        now: The run as planned with the command's words.
        before: The run as planned without them.
        moved: Settings that name a place, which may be another as long as the content is the same.

    Returns:
        The changed settings by their dotted names, with the values before and now.

    Raises:
        UserError: Some of them decide what the run computes, or code of the recipe's own is not
            what it was; all of these are named.
    """
    assert now.run is not None
    if edited := edited_parts(now.run, plan_parts(now.plan, observers=False)):
        raise UserError(
            f"{now.run} cannot go on: {' and '.join(edited)}, or code it uses, is not as the run "
            "was trained with it. Restore it; or train anew with it: name the recipe itself."
        )
    refused = {
        **_changed(before.plan.swaps, now.plan.swaps),
        **_changed(flat(key_settings(before.plan)), flat(key_settings(now.plan))),
    }
    if blocked := [name for name in refused if name not in moved]:
        raise UserError(
            f"{now.run} cannot go on with another {' and '.join(blocked)}: that is another run. "
            "Its length, saving and reporting can change, and the place of the same data. To train "
            "anew with these settings, name the recipe itself."
        )
    return _changed(flat(before.plan.settings), flat(now.plan.settings))


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"before": before.get(name), "now": now.get(name)}
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    }


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names.

    Example:
        >>> flat({"trainer": {"selection": {"metric": "bleu"}, "seed": 1}})
        {'trainer.selection.metric': 'bleu', 'trainer.seed': 1}
    """
    found: dict[str, Any] = {}
    for name, value in tree.items():
        inner = isinstance(value, Mapping) and value
        found |= flat(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return found


def record_changes(folder: RunFolder, changes: Mapping[str, Any]) -> None:
    """Says what changed, and keeps it in ``run.json`` with the step from which it holds."""
    if not changes:
        return
    newest = folder.newest
    step = None if newest is None else newest.step
    for name, values in changes.items():
        LOG.info("%s: %s -> %s", name, values["before"], values["now"])
    entry = {"step": step, "command": command_line(), "settings": dict(changes)}
    folder.write_info(changes=[*folder.info.get("changes", []), entry])

"""Pulling what was pushed: a folder that is whole and as it was, or not there."""

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

from textmill.checkpoint.run_seal import CONFIG
from textmill.errors import InUseError, StorageError, UserError, worded
from textmill.exported.manifest import is_export
from textmill.runs.sharing.pushed import CARD, LARGEST_CARD, LISTED, Pushed, ShareError
from textmill.runs.sharing.stores import Store, open_store
from textmill.runtime.disk import operations
from textmill.runtime.files import make_folder, new_folder, write_file
from textmill.runtime.lock import owner_of

LOG = logging.getLogger("textmill")


def pull(
    address: str,
    folder: str | Path | None = None,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], object] = lambda done, size: None,
) -> Path:
    """Brings what was pushed to an address into a folder, and compares each byte.

    The folder is there when it is whole. Until then what has come is in ``.NAME.part`` beside it,
    and the same call goes on there. Nothing of it is executed.

    Args:
        address: As for :func:`~textmill.runs.sharing.push.push`; on a hub ``@REVISION`` is a
            branch, a tag or a commit.
        folder: The folder to make; by default the last part of the address, here.
        overwrite: Whether a run or an export that is there gives way.
        progress: Called with the bytes that are done, and all bytes.

    Returns:
        The folder of a run or of an export.

    Raises:
        UserError: The folder is there already, and is not what is at the address; or it is no run
            and no export, and never gives way.
        ShareError: The address cannot be reached, holds nothing whole, or a file is not as it was
            pushed.
        StorageError: There is no room.
    """
    store = open_store(address)
    target = Path(folder or store.name)
    listed = _listed(store)
    if os.path.lexists(target):
        if _is_there(target, listed):
            LOG.info("%s is what %s has already.", target, store.address)
            return target
        _refuse_to_replace(target, store, overwrite=overwrite)
    place = Path(os.path.realpath(target))  # "." has a name, and a link stays one
    make_folder(place.parent)
    with new_folder(place, replace=os.path.lexists(place), resume=True) as made:
        _bring(store, listed, made, progress)
        if not _is_model(made):
            raise ShareError(f"{store.address} holds no run and no export.")
    return target


def _is_model(folder: Path) -> bool:
    """Whether a folder is a run's or an export's."""
    return is_export(folder) or all((folder / name).is_file() for name in (CONFIG, "run.json"))


def _refuse_to_replace(target: Path, store: Store, *, overwrite: bool) -> None:
    """Refuses a folder that must not give way: no model, in use, or around what is pulled."""
    whole = target.resolve()
    if any(each.is_relative_to(whole) for each in (Path.cwd(), store.folder) if each):
        raise UserError(
            f"{target} is the folder in which you or the address are. Name another folder."
        )
    if target.is_dir() and not any(target.iterdir()):
        return
    if not _is_model(target):
        raise UserError(
            f"{target} is there already, and is no run and no export. Name another folder."
        )
    if owner := owner_of(target):
        raise InUseError(f"{target} is in use by {owner}. Pull when that has ended.")
    if not overwrite:
        way = worded("--overwrite", "overwrite=True")
        raise UserError(
            f"{target} is there already, and is not what {store.address} has. Name another folder, "
            f"or let it be replaced: {way}."
        )


def _listed(store: Store) -> Pushed:
    listed, whole = store.pushed()
    if listed is None:
        raise ShareError(
            f"{store.address} has no {LISTED}: nothing was pushed there, or you may not see it."
        )
    if not whole:
        raise ShareError(
            f"A push to {store.address} has not ended. Pull when it has, or push again."
        )
    return listed


def _is_there(target: Path, listed: Pushed) -> bool:
    """Whether a folder has every file as it was pushed; the card, which people edit, aside."""
    try:
        mine = Pushed.read(target)
    except ShareError:
        return False
    both = [{n: e for n, e in each.files.items() if n != CARD} for each in (mine, listed)]
    return both[0] == both[1] and not listed.damage(target, both[1])


def _bring(
    store: Store, listed: Pushed, made: Path, progress: Callable[[int, int], object]
) -> None:
    """Brings each file into the folder; of an earlier try those that are whole stay."""
    there = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
    missing, free = listed.size - there, operations.free(made)
    if missing > free:
        raise StorageError(
            f"There is no room for {store.address}: {missing:,} bytes are missing, {free:,} are "
            "free. Make room, then start again with the same command."
        )
    for name in listed.unlisted(made):
        path = made / name
        if path.is_file() or path.is_symlink():
            path.unlink()
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        progress(done, listed.size)

    for name, entry in listed.files.items():
        path, before = made / name, done
        make_folder(path.parent)
        card = store.read(CARD, LARGEST_CARD) if name == CARD else None
        if card is None:
            store.fetch(name, entry, path, tell)
        else:
            write_file(path, card)
            if hashlib.sha256(card).hexdigest() != entry.sha256:
                LOG.info("%s was edited at %s since the model was pushed.", CARD, store.address)
        tell(entry.size - (done - before))  # what an earlier try had brought
    write_file(made / LISTED, listed.to_bytes())

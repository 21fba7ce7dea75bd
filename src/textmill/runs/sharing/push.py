"""Pushing a run or an export: what others need to answer with it and to measure it again."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from textmill.checkpoint.layout import (
    BEST,
    CALIBRATION,
    CHECKPOINTS,
    LAST,
    MANIFEST,
    STATE,
    TEXT,
    tensor_file,
)
from textmill.checkpoint.run_seal import CONFIG, RunSeal
from textmill.checkpoint.saved import SavedCheckpoints, refuse_changed
from textmill.errors import CheckpointError, InUseError, UserError, worded
from textmill.exported.manifest import BESIDE, ExportManifest, is_export
from textmill.exported.manifest import MANIFEST as EXPORT
from textmill.exported.manifest import read as read_export
from textmill.inference.checkpoints import use_checkpoint
from textmill.run_folder.folder import PRETRAINED, RunFolder, refuse_lightning, refuse_no_run
from textmill.runs.report.model_card import OWN, write_card
from textmill.runs.report.reporter import FILE as REPORT
from textmill.runs.report.reporter import write_report
from textmill.runs.sharing.pushed import CARD, LARGEST_CARD, LISTED, Pushed, unexpected
from textmill.runs.sharing.stores import Store, open_store
from textmill.runtime.lock import LOCK_FILE, owner_of
from textmill.runtime.logging import LOG_FILE
from textmill.runtime.sealed import FileEntry
from textmill.serving.examples import run_of

LOG = logging.getLogger("textmill")

WITH_ROWS = ("predictions", "bad_rows.jsonl", LOG_FILE)
"""What in a run folder may have rows of the data; a report without them is made anew."""
NEVER = (LOCK_FILE, LISTED, CARD, REPORT)
"""What is not taken from the folder as it is, or in another way."""


@dataclass(frozen=True)
class Brought:
    """A push that has ended."""

    address: str
    """Where the model is."""
    files: int
    """Its files."""
    size: int
    """Their bytes."""
    brought: int
    """Files that were not there yet, or were others."""


def push(
    run: str | Path,
    address: str,
    *,
    everything: bool = False,
    rows: bool = False,
    public: bool = False,
    overwrite: bool = False,
    license: str | None = None,
    allow_code: bool = False,
    progress: Callable[[int, int], object] = lambda done, size: None,
) -> Brought:
    """Brings a run or an export to an address, from which ``pull`` has it.

    Of a run that is its best checkpoint without the state of the training, its settings, the
    recipe's own code, values, exports, a report without rows, and the model card, which is written
    anew. Files that are there already do not travel again; one that the run no longer has goes.

    Args:
        run: The folder of a run or of an export.
        address: ``hf://owner/name`` or ``hf://owner/name@BRANCH`` on a Hugging Face hub, a folder,
            or another address of fsspec, as ``s3://bucket/name``.
        everything: Whether all of the run goes, so that training can go on where it is pulled.
        rows: Whether what may have rows of the data goes, too: predictions, bad rows, the log, and
            a report with them.
        public: Whether everyone may see a repository of a hub that is made.
        overwrite: Whether another model at the address gives way.
        license: For the model card, as ``apache-2.0``.
        allow_code: As for :func:`textmill.runs.load_run.load`, for the example of the model card.
        progress: Called with the bytes that are done, and those of all files that travel.

    Raises:
        UserError: The folder is none of a run or an export, or the address holds something else.
        ShareError: The address cannot be reached, gives no permission, or a file changed meanwhile.
        CheckpointError: A file of the run is not as the run wrote it.
    """
    folder = Path(run)
    with TemporaryDirectory(prefix="textmill-push-") as made:
        files = (
            _of_export(folder)
            if is_export(folder)
            else dict(_of_run(folder, Path(made), everything=everything, rows=rows))
        )
        card = folder / CARD
        is_ours = not card.exists() or OWN in card.read_text("utf-8", "replace")
        is_told = card.exists() and _came_without_rows(folder)
        if is_ours and not is_told and not is_export(run_of(folder.resolve())):
            write_card(folder, license=license, allow_code=allow_code)
        elif license is not None:
            raise UserError(
                f"{worded('--license', 'license')}: {card} cannot be written anew, so it would not "
                "have the license. Leave it out; name the license in that file yourself."
            )
        if card.exists():
            files[CARD] = card
        local = _listed(folder, files)
        store = open_store(address, to_push=True, public=public)
        if store.folder and store.folder.is_relative_to(folder.resolve()):
            raise UserError(f"{store.address} is in the folder that is pushed. Name another place.")
        there, whole = store.pushed()
        _refuse_another(store, there, local, overwrite=overwrite)
        new = _with_edited_card(store, local) if there is None or whole else local
        there = there or replace(new, files={})
        changed = {
            name: path
            for name, path in files.items()
            if there.files.get(name) != new.files[name] == local.files[name]
        }
        gone = sorted(there.files.keys() - new.files.keys())
        size, done = sum(new.files[name].size for name in changed), 0

        def tell(more: int) -> None:
            nonlocal done
            done += more
            progress(done, size)

        if changed or not whole or new != there:
            store.put(changed, gone, new, there, tell)
    return Brought(store.address, len(new.files), new.size, len(changed))


# -- what goes


def _of_export(folder: Path) -> dict[str, Path]:
    names = (*read_export(folder).files, EXPORT)
    return {name: folder / name for name in names}


def _of_run(
    folder: Path, made: Path, *, everything: bool, rows: bool
) -> Iterator[tuple[str, Path]]:
    """The files of a run by their names; what is not taken as it is comes from ``made``."""
    refuse_no_run(folder)
    refuse_lightning(folder)
    if owner := owner_of(folder):
        raise InUseError(f"{folder} is in use by {owner}. Push it when that has ended.")
    refuse_changed(folder, code=True)
    checkpoint = use_checkpoint(folder, "best", lambda opened: opened.path)
    problems = unexpected(SavedCheckpoints.of(folder).verify(checkpoint), checkpoint)
    if problems:
        raise CheckpointError(f"{checkpoint}: {'; '.join(problems[:3])}. It is not pushed.")
    report = folder / REPORT
    if not report.is_file() or not (rows or _came_without_rows(folder)):
        report = write_report(folder, target=made / REPORT, private=rows)
    yield REPORT, report
    names = _below(folder, ".") if everything else _needed(folder, checkpoint)
    names += [name for top in WITH_ROWS * rows for name in _below(folder, top)]
    for name in dict.fromkeys(names):
        if rows or name.partition("/")[0] not in WITH_ROWS:
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()) or path.is_symlink():
                raise UserError(
                    f"{path} is a link, which is not pushed. Put the file in its place."
                )
            yield name, path


def _came_without_rows(folder: Path) -> bool:
    """Whether a run was pulled without its answers, of which its report and card were made."""
    return (folder / LISTED).is_file() and not any((folder / name).exists() for name in WITH_ROWS)


def _needed(folder: Path, checkpoint: Path) -> list[str]:
    """What one needs to answer with a run and to measure it again."""
    saved, at = SavedCheckpoints.of(folder), f"{CHECKPOINTS}/{checkpoint.name}"
    names = [CONFIG, "run.json", "metrics.jsonl", f"{CHECKPOINTS}/{CALIBRATION}"]
    seal = RunSeal.read(folder)
    names += [] if seal is None else [*seal.code]
    for which, name in (("best", BEST), ("last", LAST)):
        pointer = saved.pointer(which)  # type: ignore[arg-type]  # both are
        if pointer is not None and pointer.folder == checkpoint.name:
            names.append(f"{CHECKPOINTS}/{name}")
    kept = (STATE, tensor_file("model"))
    listed = saved.manifest(checkpoint).files
    names += [f"{at}/{n}" for n in listed if n in kept or n.startswith(f"{TEXT}/")]
    names.append(f"{at}/{MANIFEST}")
    names += _below(folder, PRETRAINED)
    for export in sorted((folder / "export").glob("*")):
        if is_export(export):
            listed = ExportManifest.read(export).files
            names += [f"export/{export.name}/{name}" for name in (*listed, EXPORT)]
    return [name for name in names if (folder / name).is_file()]


def _below(folder: Path, top: str) -> list[str]:
    """The files below a part of a folder: none that is hidden, half-written or never taken."""
    place = folder / top
    found = [place] if place.is_file() else sorted(place.rglob("*"))
    names = [path.relative_to(folder) for path in found if path.is_file()]
    return [
        name.as_posix()
        for name in names
        if name.as_posix() not in NEVER
        and not any(part.startswith(".") for part in name.parts)
        and not (name.parts[0] == "export" and name.name in BESIDE)
    ]


def _listed(folder: Path, files: dict[str, Path]) -> Pushed:
    """The list of the files, with what the checkpoints' own lists have beside them."""
    info = ExportManifest.read(folder).source if is_export(folder) else RunFolder(folder).info
    left_out = list[str]()
    for name in files:
        at, _, file = name.rpartition("/")
        if file == MANIFEST and at.startswith(f"{CHECKPOINTS}/"):
            listed = SavedCheckpoints.of(folder).manifest(folder / at).files
            left_out += [n for each in listed if (n := f"{at}/{each}") not in files]
    return Pushed(
        files={name: FileEntry.of(path) for name, path in sorted(files.items())},
        source={name: str(info.get(name, "")) for name in ("recipe", "key")},
        left_out=left_out,
    )


# -- what is there


def _refuse_another(store: Store, there: Pushed | None, new: Pushed, *, overwrite: bool) -> None:
    """Refuses an address that holds other files, or another model that is not to give way."""
    if there is None and (others := sorted(store.others())):
        raise UserError(
            f"{store.address} holds other files ({', '.join(others[:3])}). Name a new place."
        )
    if there is not None and there.source != new.source and not overwrite:
        raise UserError(
            f"{store.address} holds another model ({' '.join(there.source.values())}). "
            f"{worded('--overwrite', 'overwrite=True')} puts this one in its place."
        )


def _with_edited_card(store: Store, new: Pushed) -> Pushed:
    """The list with the model card that is there if a person has edited it there, which stays."""
    there, _ = store.pushed()
    card = store.read(CARD, LARGEST_CARD)
    if card is None:
        return new
    entry = FileEntry(size=len(card), sha256=hashlib.sha256(card).hexdigest())
    known = () if there is None else (there.files.get(CARD),)
    if entry in (*known, new.files.get(CARD)):
        return new
    LOG.warning("%s at %s was edited there, and stays as it is.", CARD, store.address)
    return replace(new, files={**new.files, CARD: entry})

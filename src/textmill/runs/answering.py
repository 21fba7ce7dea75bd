"""What answers for a folder: an export, which needs no torch, or the run itself."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textmill.checkpoint.layout import BEST, CHECKPOINTS, LAST, tensor_file
from textmill.checkpoint.manifest import Manifest, Pointer
from textmill.config.registry import suggest_path
from textmill.errors import CheckpointError, UserError, worded
from textmill.exported.formats import FORMATS
from textmill.exported.formats import load as load_export
from textmill.exported.manifest import ExportError, ExportManifest, is_export
from textmill.exported.row_predictor import RowPredictor
from textmill.runtime.devices import may_have_accelerator
from textmill.runtime.memory import few_kernels

if TYPE_CHECKING:
    from textmill.models.layers.precision import Numbers

LOG = logging.getLogger("textmill")


def load_answering(
    folder: Path,
    *,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
    precision: "Numbers" = "fp32",
    itself: bool = False,
) -> RowPredictor:
    """Loads what answers for the folder of a run or of an export.

    A run is answered by its own export where nothing is asked that only the run can do: its best
    checkpoint in float32, on a machine without an accelerator. ``itself`` says that the run is to
    answer; so does a ``device`` that is not ``auto``. The other arguments are those of
    :func:`textmill.runs.load_run.load`.
    """
    if not folder.exists():  # before a run's own packages are imported
        raise UserError(
            f"{folder}: there is no such folder. {suggest_path(folder, folders=True)}Wanted that "
            "of a run, as textmill train prints it, or of an export."
        )
    if is_export(folder):
        if checkpoint != "best":
            raise UserError(
                f"{folder} is an export, which holds one checkpoint. Leave "
                f"{worded(f'--checkpoint {checkpoint}', 'checkpoint')} out, or name the run."
            )
        if precision != "fp32":
            raise UserError(
                f"{folder} is an export, which computes as it was written. Leave "
                f"{worded(f'--precision {precision}', 'precision')} out, or name the run."
            )
        return load_export(folder, device=device)
    is_plain = (checkpoint, device, precision, itself) == ("best", "auto", "fp32", False)
    if is_plain and not may_have_accelerator() and (own := export_of(folder)) is not None:
        try:
            predictor = load_export(own, device="cpu")
        except ExportError as error:
            LOG.warning("%s: the run itself answers.", error)
        else:
            way = worded("--device cpu", "device='cpu'")
            LOG.info("%s answers for %s. To ask the run itself: %s", own, folder, way)
            return predictor
    from textmill.runs.load_run import load

    few_kernels()
    how: dict[str, Any] = {
        "checkpoint": checkpoint,
        "allow_code": allow_code,
        "precision": precision,
    }
    return load(folder, device=device, **how)


def export_of(run: Path) -> Path | None:
    """The export in a run folder that answers as its best checkpoint does; None if there is none.

    It has the weights that ``best.json`` points to, as they were trained, and decodes as the run.
    """
    saved = run / CHECKPOINTS
    try:
        pointer = Pointer.read(saved / BEST) or Pointer.read(saved / LAST)
        if pointer is None or not pointer.fits(saved / pointer.folder):
            return None
        weights = Manifest.read(saved / pointer.folder).files[tensor_file("model")].sha256
        for name in (name for name, form in FORMATS.items() if form.is_readable):
            folder = run / "export" / name
            if is_export(folder) and ExportManifest.read(folder).source.get("weights") == weights:
                return folder
    except (CheckpointError, ExportError, KeyError):  # told when the run is loaded
        pass
    return None

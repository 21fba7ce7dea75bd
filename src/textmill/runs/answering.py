"""What answers for a folder: an export, which needs no torch, or the run itself."""

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from textmill.checkpoint.calibration import DECIDING, deciding_digests
from textmill.checkpoint.layout import BEST, CHECKPOINTS, LAST
from textmill.checkpoint.manifest import Pointer
from textmill.checkpoint.run_seal import RunSeal
from textmill.config.registry import suggest_path
from textmill.errors import CheckpointError, TextmillError, UserError, worded
from textmill.exported.formats import FORMATS
from textmill.exported.formats import load as load_export
from textmill.exported.manifest import ExportManifest, is_export
from textmill.exported.row_predictor import RowPredictor
from textmill.runtime.devices import may_have_accelerator
from textmill.runtime.memory import few_kernels

if TYPE_CHECKING:
    from textmill.inference.load import AnswerPrecision

LOG = logging.getLogger("textmill")


def load_answering(
    folder: str | Path,
    *,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
    precision: "AnswerPrecision" = "fp32",
    itself: bool = False,
) -> RowPredictor:
    """Loads what answers for the folder of a run or of an export.

    A run is answered by its own export to ONNX where nothing is asked that only the run can do: its
    best checkpoint in float32, on a machine without an accelerator. ``itself`` says that the run is
    to answer; so does a ``device`` that is not ``auto``. The other arguments are those of
    :func:`textmill.runs.load_run.load`.
    """
    folder = Path(folder)
    if not folder.exists():  # before a run's own packages are imported
        raise UserError(
            f"{folder}: there is no such folder. {suggest_path(folder, folders=True)}Wanted that "
            "of a run, as textmill train prints it, or of an export."
        )
    if is_export(folder):
        for name, value, usual, why in (
            ("checkpoint", checkpoint, "best", "holds one checkpoint"),
            ("precision", precision, "fp32", "computes as it was written"),
        ):
            if value != usual:
                way = worded(f"--{name} {value}", name)
                raise UserError(
                    f"{folder} is an export, which {why}. Leave {way} out, or name the run."
                )
        return load_export(folder, device=device)
    is_plain = (checkpoint, device, precision, itself) == ("best", "auto", "fp32", False)
    if is_plain and not may_have_accelerator() and (predictor := _own_export(folder)):
        return predictor
    from textmill.runs.load_run import load

    few_kernels()
    return load(
        folder,
        checkpoint=checkpoint,
        device=device,
        allow_code=allow_code,
        precision=precision,
    )


def _own_export(run: Path) -> RowPredictor | None:
    """The export in a run folder that answers as its best checkpoint does; None if there is none.

    It has the weights that ``best.json`` points to, as they were trained, and their calibration.
    Generated text is left to the run: of two beams that score alike another search may find the
    other one.
    """
    folder, form = run / "export" / "onnx", FORMATS["onnx"]
    if not is_export(folder) or not all(map(find_spec, form.reads)) or not _is_whole(run):
        return None
    try:
        source = ExportManifest.read(folder).source
        if {name: source[name] for name in DECIDING if name in source} != _digests_of_best(run):
            return None
        predictor = load_export(folder, device="cpu")
    except (TextmillError, ImportError) as error:
        LOG.warning("%s is not used, and the run itself answers: %s", folder, error)
        return None
    way = worded("--device cpu", "device='cpu'")
    LOG.info("%s answers for %s. To ask the run itself: %s", folder, run, way)
    return predictor


def _is_whole(run: Path) -> bool:
    """Whether settings and code are as the run wrote them; if not, loading the run says so."""
    try:
        seal = RunSeal.read(run)
    except CheckpointError:
        return False
    return seal is not None and not seal.changed_code()


def _digests_of_best(run: Path) -> dict[str, str] | None:
    """What decides the best checkpoint's scores; None if it is not there as it was saved."""
    saved = run / CHECKPOINTS
    try:
        pointer = Pointer.read(saved / BEST) or Pointer.read(saved / LAST)
        if pointer is None or not pointer.fits(saved / pointer.folder):
            return None
        return deciding_digests(saved / pointer.folder)
    except (CheckpointError, KeyError):
        return None

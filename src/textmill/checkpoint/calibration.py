"""The calibration of one of a run's checkpoints: a sealed file beside them."""

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from textmill.checkpoint.layout import CALIBRATION, tensor_file
from textmill.checkpoint.manifest import Manifest, manifest_of, read_small
from textmill.errors import CheckpointError
from textmill.runtime.files import VERSION, check_version, sha256, write_atomic
from textmill.runtime.sealed import seal, unseal

FORMAT = 1
DECIDING = ("weights", "calibration")
"""The names of :func:`deciding_digests`."""
Bin = tuple[float, float, float, float, float]
"""A line: the edges of a bin of scores, its answers, their mean score, the share that is right."""
_logger = logging.getLogger("textmill.checkpoint")


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A temperature and thresholds for a checkpoint, and how well they fit."""

    checkpoint: str
    """The name of its folder."""
    manifest_sha256: str
    """Of its manifest: other weights are not calibrated by it."""
    temperature: float
    """What scores are divided by before they become probabilities."""
    thresholds: Mapping[str, float] | None
    """For each label the probability above which it is an answer; None: the usual rule."""
    correct: float | None
    """The share of answers that the thresholds let be correct; None: there are none."""
    rows: int
    """The number of rows that it was fitted on."""
    errors: tuple[float, float]
    """The calibration error on these rows, before and after."""
    tables: tuple[list[Bin], list[Bin]]
    """The lines of the reliability table, before and after."""

    @classmethod
    def read(cls, folder: Path) -> "Calibration | None":
        """Reads and checks the file in a folder of checkpoints; None if there is none."""
        path = folder / CALIBRATION
        if not path.is_file() and not path.is_symlink():
            return None
        from pydantic import TypeAdapter

        try:
            content = unseal(read_small(path), path.name, CheckpointError)
            check_version(content, FORMAT, path.name, CheckpointError)
            del content[VERSION]
            found: Calibration = TypeAdapter(cls).validate_python(content)
            if not 0 < found.temperature < math.inf:
                raise ValueError(f"its temperature is {found.temperature}")
        except (CheckpointError, ValueError) as error:
            raise CheckpointError(
                f"{path}: not as textmill calibrate wrote it ({error}). Delete it, and calibrate "
                "the run again"
            ) from error
        return found

    @classmethod
    def of(cls, checkpoint: Path) -> "Calibration | None":
        """The calibration of a checkpoint; None if the run has none, or one of another."""
        found = cls.read(checkpoint.parent)
        if found is None or found.manifest_sha256 == manifest_of(checkpoint)[1]:
            return found
        text = (
            "The calibration is of %s: the scores of %s are as it was trained. Calibrate it anew."
        )
        _logger.warning(text, found.checkpoint, checkpoint.name)
        return None

    def write(self, folder: Path) -> None:
        write_atomic(folder / CALIBRATION, seal({VERSION: FORMAT, **asdict(self)}))


def deciding_digests(checkpoint: Path) -> dict[str, str]:
    """The sha256 of what decides a checkpoint's scores: its weights, and its calibration if any."""
    weights = Manifest.read(checkpoint).files[tensor_file("model")].sha256
    path = checkpoint.parent / CALIBRATION
    more = {} if Calibration.of(checkpoint) is None else {"calibration": sha256(path)}
    return {"weights": weights, **more}

"""The text processor of a checkpoint: its files, bounded and verified before any of it is read."""

from pathlib import Path

from weft.checkpoint.layout import tensor_file
from weft.checkpoint.manifest import Manifest
from weft.errors import CheckpointError
from weft.text.columns.dictionary import PHRASES

__all__ = ["verify_text"]

TEXT_OF_WEIGHTS, SHORT_TEXT = 8, 4 << 20
"""Bytes that a file of the text processor may have for each byte of the weights, and on top of
that: a
word or piece takes some ten to a hundred, and its row of an embedding four times its width."""
LARGEST_TEXT = 1 << 30
"""Bytes of a saved text processor; the largest tokenizers have some 20 million."""


def verify_text(folder: Path, manifest: Manifest) -> bool:
    """Refuses text of which a byte is not as saved, or that is longer than weights can need.

    Args:
        folder: The checkpoint, or the modules that a run saved.
        manifest: Its list of files.

    Returns:
        Whether there is any.

    Raises:
        CheckpointError: A file differs, or is too long; says which.
    """
    text = manifest.text
    size = sum(entry.size for entry in text.values())
    if size > LARGEST_TEXT:
        raise CheckpointError(f"text/: {size:,} bytes are more than the {LARGEST_TEXT:,} allowed")
    weights = manifest.files.get(tensor_file("model"))
    most = LARGEST_TEXT if weights is None else TEXT_OF_WEIGHTS * weights.size + SHORT_TEXT
    for name, entry in text.items():
        if not name.endswith(f"/{PHRASES}") and entry.size > most:  # phrases have no own vectors
            raise CheckpointError(
                f"{name}: {entry.size:,} bytes are more than the {most:,} that weights of "
                f"{0 if weights is None else weights.size:,} bytes can need"
            )
    if problems := manifest.unusable(folder, text):
        raise CheckpointError("; ".join(problems[:3]))
    return bool(text)

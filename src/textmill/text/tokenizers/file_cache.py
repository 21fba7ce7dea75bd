"""Files that are made once and found again, each with the sha256 of its bytes beside it."""

import logging
from collections.abc import Callable
from pathlib import Path

from textmill.runtime.files import make_folder, sha256, write_atomic

LOG = logging.getLogger("textmill")


def kept(path: Path, make: Callable[[Path], None]) -> Path:
    """The file, which ``make`` writes where it is not there, or not as it was written.

    A file that was cut off or changed could still be one of its kind, of another vocabulary: so its
    bytes are compared with the sum, not only read.

    Its folder is made, its sum is in ``<name>.sha256``.

    Raises:
        StorageError: It cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = kept(Path(folder, "a.txt"), lambda path: path.write_text("abc") and None)
        ...     kept(path, lambda _: print("made again")).read_text()
        'abc'
    """
    beside = path.with_name(f"{path.name}.sha256")
    if path.exists():
        try:
            if beside.read_bytes().strip() == sha256(path).encode():
                return path
        except OSError:  # one of them cannot be read
            pass
        LOG.warning("%s is not what was written there: it is made again.", path)
    make_folder(path.parent)
    make(path)
    write_atomic(beside, f"{sha256(path)}\n")
    return path

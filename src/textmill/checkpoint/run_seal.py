"""The seal of a run: the last lines of its ``config.yaml``, which its checkpoints name.

``config.yaml`` and the recipe's own code decide what the weights mean. Its last lines have the
sha256 of each file of that code, in the folder or elsewhere, the name of the run, which the
manifest of each checkpoint has too, and the sha256 of every byte before. To YAML they are a
comment: as a recipe, the file may be edited.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from textmill.checkpoint.manifest import read_small
from textmill.errors import CheckpointError, worded
from textmill.runtime.files import sha256

CONFIG = "config.yaml"
LARGEST_CODE = 16 << 20
"""Bytes of a file of code that is read; a person's own has some thousand."""
_CODE = re.compile(rb"# sealed: code ([0-9a-f]{64}) ([^\n]+)\n")
_PART = re.compile(rb"# sealed: part ([0-9a-f]{64}) ([^\n]+)\n")
_RUN = re.compile(rb"# sealed: run ([0-9a-f]{16}), sha256 ([0-9a-f]{64})\n\Z")


def sealed_config(
    text: str, *, run: str, code: Mapping[str, str], parts: Mapping[str, str] | None = None
) -> bytes:
    """The content of ``config.yaml`` with its seal."""
    lines = [f"# sealed: code {digest} {name}\n" for name, digest in code.items()]
    lines += [f"# sealed: part {digest} {name}\n" for name, digest in (parts or {}).items()]
    body = f"{text}{''.join(lines)}".encode()
    digest = hashlib.sha256(body).hexdigest()
    return body + f"# sealed: run {run}, sha256 {digest}\n".encode()


@dataclass(frozen=True)
class RunSeal:
    """What a run folder's ``config.yaml`` says of itself."""

    folder: Path
    """The run folder."""
    run: str
    """The name of the run, which its checkpoints have."""
    code: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of each file of the recipe's own, by its path in the run folder."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of each module of a person's own that is elsewhere, by its name."""

    @classmethod
    def read(cls, folder: Path) -> "RunSeal | None":
        """Reads the seal of a folder and compares it with what it seals; None: it has no config."""
        path = folder / CONFIG
        if not path.exists():
            return None
        try:
            data = read_small(path)
        except CheckpointError as error:
            raise CheckpointError(f"{folder / str(error)}.") from error
        last = _RUN.search(data)
        body = data if last is None else data[: last.start()]
        if last is None or hashlib.sha256(body).hexdigest() != last[2].decode():
            seal = (
                "the comments that seal it, its last lines, are gone"
                if last is None
                else "the seal in its last line does not fit"
            )
            raise CheckpointError(
                f"{path} is not as the run wrote it: {seal}. It says what the weights mean, so "
                "they are not used. Restore it from a copy; an unfinished run writes it anew when "
                "it is started by the command that began it. To train with other settings, name "
                "the file as a recipe: "
                + worded(f"textmill train {path}", f"textmill.train({str(path)!r})")
            )
        code, parts = (
            {name.decode("utf-8", "replace"): digest.decode() for digest, name in of.findall(body)}
            for of in (_CODE, _PART)
        )
        return cls(folder, last[1].decode(), code, parts)

    def changed_code(self) -> list[str]:
        """The files of the recipe's own that are not as the run wrote them."""
        return [name for name, digest in self.code.items() if self._differs(name, digest)]

    def other_run(self, named: str | None) -> str | None:
        """Why a checkpoint that names a run is not of this one; None where it is."""
        if named == self.run:
            return None
        return f"it is of another run ({named or 'one without a name'} instead of {self.run})"

    def _differs(self, name: str, digest: str) -> bool:
        path = self.folder / name
        if ".." in Path(name).parts or not path.is_file() or path.stat().st_size > LARGEST_CODE:
            return True
        return sha256(path) != digest

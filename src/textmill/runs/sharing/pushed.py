"""``pushed.json``: what was pushed of a run or an export, byte for byte. It is written last."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from textmill.errors import RunError, UserError, worded
from textmill.runtime.sealed import FileEntry, SealedFiles

LISTED = "pushed.json"
"""What a whole folder at an address has, and a pulled one keeps."""
UNDER_WAY = "pushing.json"
"""What it has instead while it is pushed: the files that are there already."""
CARD = "README.md"
"""The only file that may be another than the one that was pushed: people edit it where it is."""
LARGEST_CARD = 1 << 20


class ShareError(RunError):
    """What is at an address cannot be had, or nothing can be brought there."""


@dataclass(frozen=True, kw_only=True)
class Pushed(SealedFiles):
    """What ``pushed.json`` says."""

    NAME: ClassVar[str] = LISTED
    LARGEST: ClassVar[int] = 16 << 20
    ERROR: ClassVar[type[Exception]] = ShareError

    source: Mapping[str, str]
    """Recipe and key of the run."""
    left_out: Sequence[str]
    """Files that lists in the folder name and that were not pushed: the state of the training."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files.values())

    @override
    @classmethod
    def _entry(cls, name: str, value: Any) -> FileEntry:
        if any(part.casefold() == ".git" for part in name.split("/")):
            raise ShareError(
                f"{cls.NAME}: {name[:80]!r} is of a repository, which may run programs"
            )
        return super()._entry(name, value)

    @override
    @classmethod
    def _problems(cls, content: Mapping[str, Any]) -> Iterator[str]:
        source, left_out = content["source"], content["left_out"]
        if not isinstance(source, dict) or any(type(v) is not str for v in source.values()):
            yield "'source' must be texts by name"
        if not isinstance(left_out, list) or any(type(name) is not str for name in left_out):
            yield "'left_out' must list names"


def left_out_of(folder: Path) -> list[str]:
    """The files that a pulled folder lacks because they were not pushed; none of any other."""
    try:
        return [name for name in Pushed.read(folder).left_out if not (folder / name).exists()]
    except ShareError:
        return []


def unexpected(problems: Sequence[str], checkpoint: Path) -> list[str]:
    """The problems of a checkpoint but for the files that were not pushed with its run."""
    run = checkpoint.parents[1]
    known = {Path(name).name for name in left_out_of(run) if Path(run, name).parent == checkpoint}
    return [each for each in problems if each not in {f"{name}: missing" for name in known}]


def refuse_without_state(run: Path) -> None:
    """Refuses to go on with a run that was pulled without the state of its training."""
    if left_out_of(run):
        raise UserError(
            f"{run} was pulled without the state of its training, so it cannot go on. Push the run "
            f"with {worded('--all', 'everything=True')}; or begin another one with its weights: "
            f"trainer.initialize={run}."
        )

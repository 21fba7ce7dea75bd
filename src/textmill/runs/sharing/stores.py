"""Where runs are pushed to: a folder or another address of fsspec, or a Hugging Face hub."""

import hashlib
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from typing_extensions import override

from textmill.errors import MissingExtraError, TextmillError, UserError, worded
from textmill.runs.sharing.pushed import CARD, LISTED, UNDER_WAY, Pushed, ShareError
from textmill.runtime.disk import open_in_place, operations, storing, write_all
from textmill.runtime.sealed import FileEntry

LOG = logging.getLogger("textmill")

HUB = "hf://"
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*@")
_OF_HUB = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([^@]+))?", re.ASCII)
BLOCK = 8 << 20
"""Bytes that are asked for at once."""
EMPTY = (CARD, ".gitattributes", UNDER_WAY)
"""What may be at an address although nothing was pushed there."""
Tell = Callable[[int], object]
"""Is told how many bytes are done."""


@contextmanager
def asking(address: str) -> Iterator[None]:
    """Turns what a far place answers, or that it does not, into one clear error."""
    try:
        yield
    except TextmillError:
        raise
    except ImportError as error:  # fsspec says which package is missing
        raise UserError(without_password(f"{address} needs another package: {error}.")) from error
    except Exception as error:
        raise ShareError(without_password(f"{address}: {_why(error)}")) from error


def without_password(text: str) -> str:
    """A text without the names and passwords in its addresses.

    Example:
        >>> without_password("sftp://me:secret@host/runs: no permission")
        'sftp://...@host/runs: no permission'
    """
    return _PASSWORD.sub("...@", text)


def _why(error: Exception) -> str:
    """What went wrong, and what to do."""
    while isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # as of the threads that upload
    status = getattr(getattr(error, "response", None), "status_code", None)
    said = f"{type(error).__name__}: {' '.join(str(error).split()):.300}"
    if (
        isinstance(error, PermissionError)
        or "Credentials" in said
        or "TokenNotFound" in said
        or status in (401, 403)
    ):
        return (
            f"no permission ({said}). For a hub log in, hf auth login, or set HF_TOKEN; for others "
            "set what their package reads, such as AWS_ACCESS_KEY_ID."
        )
    if isinstance(error, FileNotFoundError) or status == 404:
        return f"there is no such place, or you may not see it ({said})."
    if isinstance(error, OSError) or status is not None or "Connect" in said or "Timeout" in said:
        return f"it cannot be reached, or failed ({said}). The same command goes on."
    return f"it failed ({said})."


class Store:
    """A folder at an address of fsspec.

    Raises:
        UserError: The address is none, or a package is missing.
        ShareError: It cannot be reached.
    """

    def __init__(self, address: str, place: str | None = None) -> None:
        self.address = without_password(address)
        try:
            from fsspec.core import url_to_fs
            from fsspec.utils import get_protocol
        except ModuleNotFoundError as error:
            raise MissingExtraError("fsspec", extra="hub", what=f"{self.address}: this") from error
        local = get_protocol(place or address) == "file"
        try:
            with asking(address):
                options = {"auto_mkdir": True} if local else {}
                self.files, root = url_to_fs(place or address, **options)
                self.files.invalidate_cache()
        except ShareError as error:
            if isinstance(error.__cause__, ValueError):
                raise UserError(f"{error} Wanted a folder, s3://…, hf://owner/name.") from error
            raise
        self.root: str = root.rstrip("/")
        self.folder = Path(self.root).resolve() if local else None
        """Where it is on this machine."""

    @property
    def name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(self.root).name

    def read(self, name: str, most: int) -> bytes | None:
        """The content of a small file; None if there is none."""
        with asking(self.address):
            try:
                with self.files.open(self._path(name), "rb", block_size=BLOCK) as file:
                    data: bytes = file.read(most + 1)
            except FileNotFoundError:
                return None
        if len(data) > most:
            raise ShareError(f"{self.address}: {name} is larger than {most:,} bytes.")
        return data

    def pushed(self) -> tuple[Pushed | None, bool]:
        """What is there, and whether that is whole; None: nothing was pushed there."""
        for name in (LISTED, UNDER_WAY):
            if (data := self.read(name, Pushed.LARGEST)) is not None:
                try:
                    return Pushed.from_bytes(data), name == LISTED
                except ShareError as error:
                    raise ShareError(f"{self.address}: {error}.") from error
        return None, False

    def others(self) -> list[str]:
        """What is there and was not pushed, if nothing was."""
        with asking(self.address):
            try:
                found = self.files.ls(self.root, detail=False)
            except FileNotFoundError:
                return []
        return [name for path in found if (name := PurePosixPath(path).name) not in EMPTY]

    def fetch(self, name: str, entry: FileEntry, path: Path, tell: Tell) -> None:
        """Brings a file, going on where ``path`` ends, and compares it with its entry.

        What an earlier pull left may be of another file: then all of it is brought anew.
        """
        was_begun = os.path.lexists(path)
        came = self._fetch(name, entry, path, tell)
        if came != entry and was_begun:
            path.unlink()
            came = self._fetch(name, entry, path, tell)
        if came != entry:
            path.unlink()  # the same command brings it anew
            raise ShareError(
                f"{self.address}: {name} is not as it was pushed: {came.size:,} bytes instead of "
                f"{entry.size:,}, or another sha256. It is damaged, or is being pushed anew: try "
                "again, or push the model again."
            )

    def _fetch(self, name: str, entry: FileEntry, path: Path, tell: Tell) -> FileEntry:
        digest, done = hashlib.sha256(), 0
        descriptor = open_in_place(path, os.O_RDWR | os.O_CREAT)
        try:
            while part := os.pread(descriptor, BLOCK, done):
                digest.update(part)
                done += len(part)
            if done < entry.size:
                with asking(self.address):
                    file = self.files.open(self._path(name), "rb", block_size=BLOCK)
                with file:
                    while done < entry.size:
                        with asking(self.address):
                            file.seek(done)
                            part = file.read(min(BLOCK, entry.size - done))
                        if not part:
                            break
                        with storing(path, entry.size):
                            write_all(descriptor, memoryview(part), done)
                        digest.update(part)
                        done += len(part)
                        tell(len(part))
            with storing(path):
                operations.fsync(descriptor)
        finally:
            os.close(descriptor)
        return FileEntry(size=done, sha256=digest.hexdigest())

    def put(
        self,
        changed: Mapping[str, Path],
        gone: Collection[str],
        new: Pushed,
        there: Pushed,
        tell: Tell,
    ) -> None:
        """Brings the changed files there, and last of all the list of what is whole.

        Until then the list ``UNDER_WAY`` has what is there; a push that was cut off goes on by it.
        """
        from fsspec.callbacks import Callback

        kept = {name: entry for name, entry in there.files.items() if name not in changed}
        with TemporaryDirectory(prefix="textmill-push-") as folder, asking(self.address):
            self._write(UNDER_WAY, replace(new, files=kept), folder)
            self._delete([LISTED])
            for name, path in changed.items():
                told = Told(tell)
                hooks = Callback(hooks={"tell": told})
                self.files.put_file(str(path), self._path(name), callback=hooks)
                tell(new.files[name].size - told.done)  # a copy on this machine says nothing
                if FileEntry.of(path) != new.files[name]:
                    raise changing(name)
                kept[name] = new.files[name]
                self._write(UNDER_WAY, replace(new, files=kept), folder)
            self._delete(gone)
            self._write(LISTED, new, folder)
            self._delete([UNDER_WAY])

    def _write(self, name: str, content: Pushed, folder: str) -> None:
        path = Path(folder, name)
        path.write_bytes(content.to_bytes())
        self.files.put_file(str(path), self._path(name))

    def _delete(self, names: Collection[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self.files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


class Told:
    """Passes on how much more of a file is done, of what fsspec says is done of it."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self.done = tell, 0

    def __call__(self, size: int | None, value: int, **_: object) -> None:
        self._tell(value - self.done)
        self.done = value


class HubStore(Store):
    """A repository for a model on a Hugging Face hub, at one commit.

    Args:
        address: ``hf://owner/name``, or ``hf://owner/name@REVISION``.
        to_push: Whether it is made if it is not there yet.
        public: Whether everyone may see it.
    """

    def __init__(self, address: str, *, to_push: bool, public: bool) -> None:
        found = _OF_HUB.fullmatch(address)
        if found is None:
            raise UserError(
                f"{address}: wanted hf://owner/name, or hf://owner/name@REVISION for a branch, tag "
                "or commit."
            )
        self.repo, self.revision = found[1], found[2]
        try:
            from huggingface_hub import HfApi
            from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "huggingface-hub", extra="hub", what=f"{address}: this"
            ) from error
        if not sys.stderr.isatty():
            disable_progress_bars()
        self.api = HfApi(library_name="textmill")
        with asking(address):
            if to_push:
                self.api.create_repo(self.repo, private=not public, exist_ok=True)
            info = self.api.model_info(self.repo)
            if to_push and not (public or info.private):
                way = worded("--public", "public=True")
                raise UserError(f"{address} is public: everyone would see the model. Say {way}.")
            if to_push and self.revision:
                self.api.create_branch(self.repo, branch=self.revision, exist_ok=True)
            if self.revision:
                info = self.api.model_info(self.repo, revision=self.revision)
        self.commit = info.sha
        super().__init__(address, f"{HUB}{self.repo}@{info.sha}")

    @property
    @override
    def name(self) -> str:
        return self.repo.partition("/")[2]

    @override
    def put(
        self,
        changed: Mapping[str, Path],
        gone: Collection[str],
        new: Pushed,
        there: Pushed,
        tell: Tell,
    ) -> None:
        """Makes one commit: all of it is there, or nothing; what is there does not travel again.

        It follows the commit that was looked at: of two pushes at once the second is refused.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        with asking(self.address):
            adds = [CommitOperationAdd(name, str(path)) for name, path in changed.items()]
            self.api.preupload_lfs_files(self.repo, adds, revision=self.revision)
            for name, path in changed.items():
                if FileEntry.of(path) != new.files[name]:
                    raise changing(name)
            adds.append(CommitOperationAdd(LISTED, new.to_bytes()))
            deletions = [CommitOperationDelete(name) for name in gone]
            message = f"textmill push: {new.source.get('recipe')} {new.source.get('key')}"
            self.api.create_commit(
                self.repo,
                [*adds, *deletions],
                commit_message=message,
                revision=self.revision,
                parent_commit=self.commit,
            )


def changing(name: str) -> ShareError:
    """The error of a file that is not what it was when the push began."""
    return ShareError(f"{name} changed while it was pushed. When nobody writes it, push again.")


def open_store(address: str, *, to_push: bool = False, public: bool = False) -> Store:
    """What is at an address: ``hf://owner/name[@REVISION]``, a folder, or an address of fsspec."""
    if not address.strip():
        raise UserError("The address is empty. Wanted a folder, s3://…, hf://owner/name.")
    if address.startswith(HUB):
        return HubStore(address, to_push=to_push, public=public)
    if public:
        raise UserError(f"{worded('--public', 'public=True')} is for a hub: hf://owner/name.")
    return Store(address)

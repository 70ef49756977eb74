"""Objects as files below one folder: for one machine, for a shared file system, and for tests.

A file appears atomically: it is written under a temporary name in the same folder, synced to disk, and then linked or
renamed. A lock file serializes the writers of a key across threads and processes, which compare-and-swap needs; readers
need no lock.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from cdc_lib.errors import ConfigError, CorruptBatch, StoreError, StoreUnavailable
from cdc_lib.ports import ObjectInfo, StoredObject, Unfinished
from cdc_lib.store.objects.file_lock import FULL_DISK, locked
from cdc_lib.store.objects.full_disk import full_store
from cdc_lib.store.objects.keys import check_key, check_prefix, hint_of_missing
from cdc_lib.store.objects.probe import refuse_broken_conditions

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HIDDEN = "."
_TEMPORARY = ".tmp-"
_WRITE_BUFFER = 1 << 20
_PATIENCE = 60.0
"""Seconds to wait for another writer, which holds its lock for milliseconds unless it was stopped."""
_TRY_AGAIN = {errno.EIO, errno.EAGAIN, errno.EBUSY, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.ENOLCK}


class LocalStore:
    """An object store in a folder, which is created at the first write.

    Args:
        root: the folder.
        patience: seconds to wait for another writer of a key.

    Raises:
        ConfigError: the folder is given by a relative path.
    """

    def __init__(self, root: Path, patience: float = _PATIENCE) -> None:
        if not root.is_absolute():
            raise ConfigError(f"{root} is not an absolute path", hint="Write it as file:///var/lib/cdc.")
        self.root = root
        self._patience = patience

    def __repr__(self) -> str:
        """Text for messages."""
        return f"LocalStore({self.root})"

    def get(self, key: str) -> StoredObject | None:
        """Return a whole object, or None if it does not exist."""
        path = self._path(key)
        with _translate_errors("read an object", key, self.root):
            try:
                data = path.read_bytes()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
        return StoredObject(data, _etag(data))

    def put(self, key: str, data: bytes) -> str:
        """Write or overwrite an object; returns its etag."""
        self._write(key, data, _replace)
        return _etag(data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object if the key is free; returns whether this call wrote it."""
        path = self._path(key)
        with _translate_errors("read an object", key, self.root):
            if path.exists():  # spares the writing; the link decides
                return False
        return self._write(key, data, _link)

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """Overwrite the object if it still has this etag; returns the new etag, else None."""

        def replace_if_match(temporary: Path, path: Path) -> bool:
            try:
                held = _etag(path.read_bytes())
            except FileNotFoundError:
                return False
            if held == etag:
                temporary.replace(path)
            return held == etag

        return _etag(data) if self._write(key, data, replace_if_match) else None

    @contextmanager
    def open_write(self, key: str) -> Iterator[BinaryIO]:
        """Stream a large object; it appears when the block ends without an error, else never."""
        path = self._path(key)
        with _translate_errors("write an object", key, self.root):
            raw = _open_beside(path, key, self.root)
        temporary = Path(raw.name)
        try:
            with io.BufferedWriter(raw, _WRITE_BUFFER) as file:
                yield cast("BinaryIO", file)
            with _translate_errors("write an object", key, self.root):
                _sync(temporary)
                with self._locked(key):
                    temporary.replace(path)
                    _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading with seek; raises CorruptBatch if it does not exist."""
        path = self._path(key)
        with _translate_errors("read an object", key, self.root):
            try:
                return path.open("rb")
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
                raise CorruptBatch(
                    "there is no such object", hint=hint_of_missing(key), folder=str(self.root), key=key
                ) from error

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List every object whose key starts with the prefix, in the order of their keys."""
        folder, _, _ = check_prefix(prefix).rpartition("/")
        with _translate_errors("list objects", prefix, self.root):
            yield from _walk(self.root / folder, f"{folder}/" if folder else "", prefix)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, and folders that become empty; a missing object is no error."""
        for key in keys:
            path = self._path(key)
            with (
                _translate_errors("delete an object", key, self.root),
                suppress(FileNotFoundError, NotADirectoryError),
                self._locked(key),
            ):
                path.unlink()
                self._remove_empty(path.parent)

    def unfinished(self, prefix: str, before: datetime) -> Sequence[Unfinished]:
        """Return the temporary files below a prefix that were last written before a time."""
        folder, _, _ = check_prefix(prefix).rpartition("/")
        with _translate_errors("list temporary files", prefix, self.root):
            return [found for found in _leftovers(self.root / folder, self.root) if found.modified < before]

    def discard(self, writes: Iterable[Unfinished]) -> None:
        """Remove temporary files; a missing one is no error."""
        for one in writes:
            with _translate_errors("remove a temporary file", one.name, self.root):
                (self.root / one.name).unlink(missing_ok=True)

    def url(self, key: str) -> str:
        """Return the URL by which Spark reads the object; Hadoop needs it without percent-encoding."""
        return f"file://{self._path(key)}"

    def probe(self) -> None:
        """Check that the folder is writable and that conditional writes work in it.

        Raises:
            ConfigError: they do not work.
        """
        refuse_broken_conditions(self, str(self.root))

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _write(self, key: str, data: bytes, publish: Callable[[Path, Path], bool]) -> bool:
        """Write a temporary file and publish it under the key's lock; returns the result of ``publish``."""
        path = self._path(key)
        with _translate_errors("write an object", key, self.root):
            raw = _open_beside(path, key, self.root)
            temporary = Path(raw.name)
            try:
                with io.BufferedWriter(raw) as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                with self._locked(key):
                    published = publish(temporary, path)
                    _sync(path.parent)
            finally:
                temporary.unlink(missing_ok=True)
        return published

    def _remove_empty(self, folder: Path) -> None:
        while folder != self.root:
            try:
                folder.rmdir()
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                    raise
                break
            folder = folder.parent
        if folder.is_dir():
            _sync(folder)

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Hold the lock of a key's writers; all keys share 256 lock files, so that their number is bounded."""
        path = self.root / ".locks" / hashlib.sha256(key.encode()).hexdigest()[:2]
        if not path.parent.is_dir():
            _make_folder(path.parent)
        with locked(path, self._patience):
            yield


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _File(io.FileIO):
    """A file that raises this project's errors, for example for a full disk, through any library that writes to it."""

    key = ""
    root = Path()

    def write(self, data: Buffer, /) -> int:
        with _translate_errors("write an object", self.key, self.root):
            return super().write(data)


def _open_beside(path: Path, key: str, root: Path, attempts: int = 100) -> _File:
    """Open a new temporary file in the folder of the path; creates the folder."""
    try:
        _make_folder(path.parent)
        file = _File(str(path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")), "xb")
    except FileNotFoundError:
        # Another process deleted the folder's last object and the folder between the two lines above.
        if attempts == 1:
            raise
        return _open_beside(path, key, root, attempts - 1)
    file.key, file.root = key, root
    return file


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents, each synced to disk: a power failure must not lose the folder of a synced file."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir()
        _sync(folder.parent)


def _replace(temporary: Path, path: Path) -> bool:
    temporary.replace(path)
    return True


def _link(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    return True


def _sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _walk(folder: Path, key: str, prefix: str) -> Iterator[ObjectInfo]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    named = [(f"{key}{e.name}/" if e.is_dir() else f"{key}{e.name}", e) for e in entries if e.name[0] != _HIDDEN]
    # With its slash a folder sorts where its keys do: "a-b" comes before "a/b", and that before "ab".
    for name, entry in sorted(named, key=lambda pair: pair[0]):
        if name.endswith("/"):
            if name.startswith(prefix) or prefix.startswith(name):
                yield from _walk(Path(entry.path), name, prefix)
        elif name.startswith(prefix):
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue  # deleted since the folder was read
            yield ObjectInfo(name, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))


def _leftovers(folder: Path, root: Path) -> Iterator[Unfinished]:
    for path in sorted(folder.rglob(f"{_TEMPORARY}*")):
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue  # it became an object since the folder was read
        modified = datetime.fromtimestamp(stat.st_mtime, UTC)
        yield Unfinished(str(path.parent.relative_to(root)), str(path.relative_to(root)), stat.st_size, modified)


@contextmanager
def _translate_errors(action: str, key: str, root: Path) -> Iterator[None]:
    """Translate errors of the operating system into this project's; ``root`` is the folder of the store."""
    try:
        yield
    except OSError as error:
        kind = StoreUnavailable if error.errno in _TRY_AGAIN else StoreError
        hints = {
            errno.EACCES: f'mkdir -p "{root}" && chown -R "$(id -un)" "{root}"',
            errno.EROFS: f"The file system of {root} is mounted read-only.",
            errno.EPERM: f"The file system of {root} may lack hard links; take one that has them.",
        }
        hint = hints.get(error.errno or 0, "")
        if error.errno in FULL_DISK:
            hint = full_store(root, key)
        raise kind(f"could not {action}: {error.strerror or error}", hint=hint, key=key) from error

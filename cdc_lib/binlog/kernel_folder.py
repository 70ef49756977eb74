"""The folder of compiled kernels. numba keeps them as pickles: who can write there runs code in every process that reads them."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
_PREFIX = "kernels-"
_HERE = Path(__file__).parent


def kernel_folder() -> Path:
    """Return a folder that numba can use and that no other user can write to; it exists.

    numba refuses a cache that it cannot write, also if every kernel is in it. So that of an image whose root is read-only is copied into
    the folder for temporary files, where processes of this user share the copy.
    """
    wanted = _wanted()
    is_ours = False
    with suppress(OSError):
        wanted.mkdir(mode=0o755, parents=True, exist_ok=True)
        is_ours = _is_ours(wanted)
        if is_ours and os.access(wanted, os.W_OK):
            return wanted
        if not is_ours:
            _log.warning("%s can be written by other users: kernels are compiled into another folder", wanted)
    shared = Path(tempfile.gettempdir()).resolve() / f"lakecdc-{os.getuid()}"
    with suppress(FileExistsError):
        shared.mkdir(mode=0o700)
    if not _is_ours(shared):
        _log.warning("%s can be written by other users: this process keeps its kernels for itself", shared)
        shared = Path(tempfile.mkdtemp(prefix="lakecdc-"))
        atexit.register(shutil.rmtree, shared, ignore_errors=True)
    return _filled(shared / wanted.name, wanted if is_ours else None)


_log = logging.getLogger(__name__)


def _wanted() -> Path:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_HERE.rglob("*.py"))))
    home = Path(os.environ.get(VARIABLE) or os.environ.get("CDC_CACHE") or Path.home() / ".cache" / "lakecdc")
    if home.name.startswith(_PREFIX):
        # Inherited from a parent process, maybe of another version of this library.
        home = home.parent
    return home.resolve() / f"{_PREFIX}{digest.hexdigest()[:12]}"


def _is_ours(folder: Path) -> bool:
    """Whether only this user, root and the owner of this library can change the folder, what is in it, or the way to it."""
    inside = [Path(top, name) for top, folders, files in os.walk(folder) for name in (*folders, *files)]
    return (
        folder.is_dir()
        and all(_is_safe(one) or _is_sticky(one) for one in _states(folder.parents))
        and all(map(_is_safe, _states((folder, *inside))))
    )


def _states(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    for path in paths:
        with suppress(FileNotFoundError):  # another process moved it into its place
            yield path.lstat()


def _is_safe(one: os.stat_result) -> bool:
    # A symbolic link has all bits: whoever made it can change where it goes. Group 0 is root's; a user's own group has the user's number.
    groups = stat.S_IWGRP if one.st_gid not in {0, os.getuid()} else 0
    return _has_known_owner(one) and not one.st_mode & (stat.S_IWOTH | groups)


def _is_sticky(one: os.stat_result) -> bool:
    """Whether others can make something in a folder, such as ``/tmp``, and not rename what is another's."""
    return _has_known_owner(one) and bool(one.st_mode & stat.S_ISVTX)


def _has_known_owner(one: os.stat_result) -> bool:
    return one.st_uid in {0, os.getuid(), _HERE.stat().st_uid}


def _filled(folder: Path, source: Path | None) -> Path:
    """Return a folder of this user alone, with the kernels of another folder if it does not exist yet."""
    if not folder.is_dir():
        scratch = Path(tempfile.mkdtemp(dir=folder.parent))
        made = scratch / folder.name
        if source is None:
            made.mkdir()
        else:
            shutil.copytree(source, made)
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
        shutil.rmtree(scratch, ignore_errors=True)
    return folder

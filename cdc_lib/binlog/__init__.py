"""From bytes on the wire to Arrow columns.

Importing this package sets numba's cache folder. numba checks only the file that a kernel is in: after an upgrade of another
file, the cached kernel would still contain that file's old code. So the folder's name contains a digest of all files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

_CACHE = "NUMBA_CACHE_DIR"
_PREFIX = "kernels-"


def _folder() -> Path:
    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.rglob("*.py"))))
    home = Path(os.environ.get(_CACHE) or os.environ.get("CDC_CACHE") or Path.home() / ".cache" / "lakecdc")
    if home.name.startswith(_PREFIX):
        # Inherited from a parent process, maybe of another version of this library.
        home = home.parent
    return home / f"{_PREFIX}{digest.hexdigest()[:12]}"


def _writable(folder: Path) -> Path:
    """Return the folder, or a copy of it in the folder for temporary files if it cannot be written.

    numba refuses a cache that it cannot write, also if every kernel is in it; so is that of an image whose root is read-only.
    """
    if not folder.is_dir() or os.access(folder, os.W_OK):
        return folder
    copy = Path(tempfile.gettempdir()) / f"lakecdc-{os.getuid()}" / folder.name
    if not copy.is_dir():
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        if copy.parent.lstat().st_uid != os.getuid():  # kernels are code: take none from another user
            return folder
        scratch = Path(tempfile.mkdtemp(dir=copy.parent))
        shutil.copytree(folder, scratch / folder.name)
        try:
            (scratch / folder.name).rename(copy)
        except OSError:  # another process was faster
            if not copy.is_dir():
                raise
        shutil.rmtree(scratch, ignore_errors=True)
    return copy


# numba reads it from the environment, once: if somebody imported numba before, it would put the kernels beside their files.
os.environ[_CACHE] = str(_writable(_folder()))
if "numba" in sys.modules:
    sys.modules["numba"].config.reload_config()

"""From bytes on the wire to Arrow columns.

Importing this package sets numba's cache folder. numba checks only the file that a kernel is in: after an upgrade of another
file, the cached kernel would still contain that file's old code. So the folder's name contains a digest of all files.
"""

from __future__ import annotations

import hashlib
import os
import sys
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


# numba reads it from the environment, once: if somebody imported numba before, it would put the kernels beside their files.
os.environ[_CACHE] = str(_folder())
if "numba" in sys.modules:
    sys.modules["numba"].config.reload_config()

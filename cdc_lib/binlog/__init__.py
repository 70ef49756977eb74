"""From bytes on the wire to Arrow columns.

Importing this package chooses where numba keeps the compiled kernels. numba looks only at the file that a kernel is in:
after an upgrade of one file, kernels in others would continue with its old code built in. So the folder's name holds a digest of
all of them.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_CACHE = "NUMBA_CACHE_DIR"
_PREFIX = "kernels-"


def _folder() -> Path:
    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.rglob("*.py"))))
    home = Path(os.environ.get(_CACHE) or os.environ.get("CDC_CACHE") or Path.home() / ".cache" / "lakecdc")
    if home.name.startswith(_PREFIX):
        # A process of this library, maybe of an older version of it, started this one.
        home = home.parent
    return home / f"{_PREFIX}{digest.hexdigest()[:12]}"


# In the environment, because that is where numba looks.
os.environ[_CACHE] = str(_folder())

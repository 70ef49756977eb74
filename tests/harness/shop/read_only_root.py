"""Commands on a file system of which only some folders can be written, as in a container with a read-only root."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = """
while [ "$1" != -- ]; do mount --bind "$1" "$1"; shift; done
shift
mount -o remount,ro,bind /
exec "$@"
"""


def read_only_root(command: Sequence[str], *, writable: Sequence[Path]) -> list[str]:
    """Return the command with which another one runs in a mount namespace of its own.

    Args:
        command: the program and its arguments.
        writable: folders that stay as they are.
    """
    return ["unshare", "--mount", "sh", "-euc", _SCRIPT, "sh", *map(str, writable), "--", *command]


def can_be_read_only() -> bool:
    """Whether this user may make mount namespaces: root outside of most containers."""
    return subprocess.run(read_only_root(["true"], writable=[]), capture_output=True).returncode == 0

"""A command in a terminal of its own, with somebody who answers what it asks."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def typed(
    command: Sequence[str], answers: Sequence[str], environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    """Return the exit status of a command and all that its terminal shows.

    Args:
        command: program and arguments.
        answers: lines that are typed, in their order.
        environ: its environment; that of the tests without it.
        cwd: its folder.
    """
    ours, theirs = pty.openpty()
    with open(ours, "r+b", buffering=0) as screen:  # noqa: PTH123 - a descriptor has no path
        try:
            running = subprocess.Popen(
                command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=cwd, start_new_session=True
            )
        finally:
            os.close(theirs)
        # A question more gets the end of the input, instead of waiting for ever.
        screen.write("".join(f"{answer}\n" for answer in answers).encode() + b"\x04")
        shown = bytearray()
        with suppress(OSError):  # what a terminal's side reads when no program has the other one open
            while part := screen.read(4096):
                shown += part
        return running.wait(), shown.decode().replace("\r\n", "\n")

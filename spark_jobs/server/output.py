"""The output of a job, read in parts while it grows."""

from __future__ import annotations

from pathlib import Path

PART = 256 * 1024
"""Maximum size of a part in bytes."""


def lines_from(file: Path, offset: int, *, ended: bool) -> tuple[tuple[str, ...], int]:
    """Return the next lines of a file, and the offset after them.

    Args:
        file: the output; it may not exist yet.
        offset: where to begin, in bytes.
        ended: whether nothing is added to it any more: then a last line without its end counts too.
    """
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(PART)
    except FileNotFoundError:
        return (), offset
    if not ended or len(data) == PART:
        # Whole lines only; a line that is longer than a part is cut.
        whole = data[: data.rfind(b"\n") + 1]
        data = whole or (data if len(data) == PART else b"")
    return tuple(data.decode(errors="replace").splitlines()), offset + len(data)

"""The registry of transcoders by character set."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from cdc_lib.binlog.charsets import double, gb18030, japanese, single, wide
from cdc_lib.binlog.charsets.transcoder import Transcoder
from cdc_lib.binlog.charsets.utf8 import ASCII, UTF8

_UNICODE = {"utf8mb4": UTF8, "utf8mb3": UTF8, "utf8": UTF8, "ascii": ASCII, "binary": UTF8, **wide.TRANSCODERS}
READABLE = _UNICODE.keys() | single.NAMES | double.NAMES | japanese.NAMES | {"gb18030"}
"""MySQL's names of the character sets that are read; ``binary`` is that of an ENUM's labels, which must be UTF-8 then."""


@cache
def transcoder(charset: str, *, in_key: bool = False) -> Transcoder:
    """Return the transcoder of a set among :data:`READABLE`; ``in_key`` takes no two texts of the set for one."""
    if charset in _UNICODE:
        return _UNICODE[charset]
    if charset in single.NAMES:
        return single.transcoder(charset, in_key=in_key)
    if charset == "gb18030":
        return gb18030.transcoder()
    made = double.transcoder(charset) if charset in double.NAMES else japanese.transcoder(charset)
    return double.distinct(made, charset) if in_key else made


def decoded(texts: tuple[bytes, ...], charset: str, *, replace: bool = False) -> tuple[str, ...]:
    """Return texts of a character set.

    Args:
        texts: their bytes.
        charset: one of :data:`READABLE`.
        replace: whether what is no text of the set becomes U+FFFD.

    Raises:
        UnicodeError: one of them is no text of it, and nothing is replaced.
    """
    data = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
    length = np.array([len(text) for text in texts], np.int64)
    pos = np.cumsum([0, *length])[:-1].astype(np.int64)
    offsets = np.zeros(len(texts) + 1, np.int32)
    out = np.zeros(3 * data.shape[0], np.uint8)
    made = transcoder(charset)
    valid = np.zeros(len(texts), np.uint8)
    bad = made.kernel(data, pos, length, len(texts), offsets, out, valid, 0, replace, *made.tables)
    if bad >= 0:
        msg = f"{texts[bad]!r} is not valid in the character set {charset}"
        raise UnicodeError(msg)
    whole = out.tobytes()
    return tuple(whole[a:b].decode() for a, b in pairwise(offsets))

"""Character sets of one byte: a table of 256 characters each.

Python's codec of the nearest name gives most of a table. Where MySQL maps otherwise, MySQL wins: the differences are here as
both servers answer ``CONVERT(byte USING utf8mb4)``, which the tests ask for every byte. U+FFFD among them is what the servers
themselves give. A byte without a character is no text of the set.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from cdc_lib.binlog.charsets.transcoder import Transcoder

_CODECS = {
    "armscii8": "latin_1",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "dec8": "latin_1",
    "geostd8": "cp1252",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "keybcs2": "cp437",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "swe7": "ascii",
    "tis620": "tis_620",
}
NAMES = frozenset(_CODECS)

_NONE = "\0"
"""Marks a byte without a character in the differences."""

_DIFFERENCES: dict[str, dict[int, str]] = {
    "armscii8": {
        0xA1: "\u2741\u00a7\u0589)(\u00bb\u00ab\u2014.\u055d,-\u055f\u2026\u055c\u055b\u055e",
        0xB2: "".join(chr(0x531 + n) + chr(0x561 + n) for n in range(38)) + "\u2019'",
    },
    "cp1256": {0x8A: _NONE, 0x8F: _NONE, 0x98: _NONE, 0x9A: _NONE, 0x9F: _NONE, 0xAA: _NONE, 0xC0: _NONE, 0xFF: _NONE},
    "cp866": {0xFC: "\u207f\u00b2"},
    "dec8": {
        0xA4: _NONE, 0xA6: _NONE, 0xA8: "\u00a4", 0xAC: _NONE * 4, 0xB4: _NONE, 0xB8: _NONE, 0xBE: _NONE, 0xD0: _NONE,
        0xD7: "\u0152", 0xDD: "\u0178\0", 0xF0: _NONE, 0xF7: "\u0153", 0xFD: "\u00ff\0\0",
    },
    "geostd8": {
        0x83: _NONE, 0x88: _NONE, 0x8A: _NONE, 0x8C: _NONE, 0x8E: _NONE, 0x98: _NONE * 3, 0x9C: _NONE, 0x9E: _NONE * 2,
        0xC0: "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ" + _NONE * 23 + "\u2116" + _NONE * 2,
    },
    "greek": {0xA1: "\u02bd\u02bc", 0xA4: _NONE * 2, 0xAA: _NONE},
    "hebrew": {0xAF: "\u203e"},
    "keybcs2": {0x80: "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ"},
    "koi8u": {0x95: "\u2022"},
    "latin1": {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f\x90", 0x9D: "\x9d"},
    "swe7": {0x40: "É", 0x5B: "ÄÖÅÜ", 0x60: "é", 0x7B: "äöåü\0"},
    "tis620": {0xA0: "\ufffd", 0xDB: "\ufffd" * 4, 0xFC: "\ufffd" * 4},
}  # fmt: skip


def characters(charset: str) -> list[str]:
    """Return the character of each of the 256 bytes; empty where there is none."""
    codec = _CODECS[charset]
    found = [bytes([byte]).decode(codec, "ignore") for byte in range(256)]
    for first, run in _DIFFERENCES.get(charset, {}).items():
        for byte, character in enumerate(run, first):
            found[byte] = "" if character == _NONE else character
    return found


def _distinct(found: list[str]) -> list[str]:
    """Return characters without those that an earlier byte is."""
    return [one if one not in found[:byte] else "" for byte, one in enumerate(found)]


def _table(found: list[str]) -> npt.NDArray[np.uint8]:
    """Return for each byte the length of its character in UTF-8 and up to three bytes, shape (256, 4)."""
    table = np.zeros((256, 4), np.uint8)
    for byte, character in enumerate(found):
        encoded = character.encode()
        table[byte, 0] = len(encoded)
        table[byte, 1 : 1 + len(encoded)] = list(encoded)
    return table


@njit(cache=True, nogil=True)
def translate(b, pos, length, n, offsets, data, valid, at, replace, table, plain):
    """Write cells through a table; bytes below ``plain`` are unchanged."""
    o = np.int64(offsets[at])
    for i in range(n):
        size = length[i]
        valid[at + i] = size >= 0
        for j in range(size):
            c = b[pos[i] + j]
            if c < plain:
                data[o] = c
                o += 1
                continue
            count = table[c, 0]
            if count == 0:
                if not replace:
                    return i
                data[o] = 0xEF  # U+FFFD
                data[o + 1] = 0xBF
                data[o + 2] = 0xBD
                o += 3
            for k in range(count):
                data[o + k] = table[c, 1 + k]
            o += count
        offsets[at + i + 1] = o
    return -1


def transcoder(charset: str, *, in_key: bool = False) -> Transcoder:
    """Return the transcoder of one of :data:`NAMES`; ``in_key`` takes no two bytes for one character."""
    found = characters(charset)
    table = _table(_distinct(found) if in_key else found)
    plain = 0 if charset == "swe7" else 128
    return Transcoder(translate, (table, plain), growth=max(3, int(table[:, 0].max())))

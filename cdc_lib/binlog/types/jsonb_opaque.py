"""Values inside JSON that JSON itself does not have: DECIMAL, dates and times, and bytes.

An opaque value is a byte with the column type it came from, a length, and the value (MySQL ``sql-common/json_dom.cc``):
DECIMAL as precision, scale and the packed digits; temporal types as eight bytes, little-endian: the packed date and time
shifted by 24 bits, with microseconds below. The server prints decimals as numbers, temporals as strings with six digits
of fraction, and everything else as ``"base64:type<number>:<base64>"``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.integers import u64

_BYTES = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
_POWERS = np.array([10**digits for digits in range(10)], np.int64)
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


@njit(cache=True, nogil=True)
def _padded(v, digits, out, o):
    """Write a number with leading zeros."""
    for i in range(digits):
        out[o + digits - 1 - i] = np.uint8(48 + v % 10)
        v //= 10
    return o + digits


@njit(cache=True, nogil=True)
def _group(b, p, digits, flip, first, out, o):
    """Write one packed group of a decimal; returns the byte after it, or -1 when it has more digits than it may."""
    v = np.int64(0)
    for i in range(_BYTES[digits]):
        v = (v << 8) | (np.int64(b[p + i]) ^ flip ^ (np.int64(0x80) if first and i == 0 else np.int64(0)))
    return np.int64(-1) if v >= _POWERS[digits] else _padded(v, digits, out, o)


@njit(cache=True, nogil=True)
def decimal(b, p, size, out, o):
    """Write an opaque DECIMAL; returns the byte after it, or -1 when the lengths or the digits do not fit."""
    if size < 2:
        return -1
    precision, scale = np.int64(b[p]), np.int64(b[p + 1])
    if scale > precision or precision < 1 or precision > 65:
        return -1
    whole, left = (precision - scale) // 9, (precision - scale) % 9
    parts, right = scale // 9, scale % 9
    if _BYTES[left] + 4 * whole + 4 * parts + _BYTES[right] != size - 2:
        return -1
    q = p + 2
    negative = b[q] & 0x80 == 0
    flip = np.int64(0xFF) if negative else np.int64(0)
    if negative:
        out[o] = 45
        o += 1
    first = True
    start = o
    for g in range(whole + 1):
        digits = left if g == 0 else 9
        if digits == 0:
            continue
        o = _group(b, q, digits, flip, first, out, o)
        if o < 0:
            return -1
        q += _BYTES[digits]
        first = False
    zeros = 0
    while start + zeros < o - 1 and out[start + zeros] == 48:
        zeros += 1
    for i in range(start + zeros, o):
        out[i - zeros] = out[i]
    o -= zeros
    if o == start:
        out[o] = 48
        o += 1
    if scale > 0:
        out[o] = 46
        o += 1
        for g in range(parts + 1):
            digits = 9 if g < parts else right
            if digits == 0:
                continue
            o = _group(b, q, digits, flip, first, out, o)
            if o < 0:
                return -1
            q += _BYTES[digits]
            first = False
    return o


@njit(cache=True, nogil=True)
def temporal(kind, b, p, size, out, o):
    """Write an opaque date or time as a string; return the byte after it, or -1 if it is not valid."""
    if size != 8:
        return -1
    v = u64(b, p)
    out[o] = 34
    o += 1
    if v < 0:
        out[o] = 45
        o += 1
        v = -v
    micros = v & 0xFFFFFF
    whole = v >> 24
    hour = (whole >> 12) & (1023 if kind == 11 else 31)
    impossible = hour > (838 if kind == 11 else 23) or (whole >> 6) & 63 > 59 or whole & 63 > 59
    if impossible or micros > 999_999 or (whole >> 22) // 13 > 9999:
        return -1
    if kind != 11:
        month = whole >> 22
        o = _padded(month // 13, 4, out, o)
        out[o] = 45
        o = _padded(month % 13, 2, out, o + 1)
        out[o] = 45
        o = _padded((whole >> 17) & 31, 2, out, o + 1)
        if kind != 10:
            out[o] = 32
            o += 1
    if kind != 10:
        o = _padded(hour, 3 if hour >= 100 else 2, out, o)
        out[o] = 58
        o = _padded((whole >> 6) & 63, 2, out, o + 1)
        out[o] = 58
        o = _padded(whole & 63, 2, out, o + 1)
        out[o] = 46
        o = _padded(micros, 6, out, o + 1)
    out[o] = 34
    return o + 1


@njit(cache=True, nogil=True)
def base64(kind, b, p, size, out, o, alphabet):
    """Write any other opaque value as ``"base64:type<number>:<base64>"``; returns the byte after it."""
    for c in (34, 98, 97, 115, 101, 54, 52, 58, 116, 121, 112, 101):
        out[o] = c
        o += 1
    o = _padded(kind, 3 if kind >= 100 else (2 if kind >= 10 else 1), out, o)
    out[o] = 58
    o += 1
    i = 0
    while i < size:
        left = min(size - i, 3)
        v = np.int64(b[p + i]) << 16
        if left > 1:
            v |= np.int64(b[p + i + 1]) << 8
        if left > 2:
            v |= np.int64(b[p + i + 2])
        for k in range(4):
            out[o + k] = alphabet[(v >> (18 - 6 * k)) & 63] if k <= left else 61
        o += 4
        i += 3
    out[o] = 34
    return o + 1


@njit(cache=True, nogil=True)
def opaque(kind, b, p, size, out, o):
    """Write an opaque value of a column type; returns the byte after it, or -1 when its length or its digits are wrong."""
    if kind == 246:
        return decimal(b, p, size, out, o)
    if kind == 10 or kind == 11 or kind == 12 or kind == 7:
        return temporal(kind, b, p, size, out, o)
    return base64(kind, b, p, size, out, o, _ALPHABET)

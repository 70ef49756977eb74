"""Broken bytes against the decoder: whatever they are, each ends in rows or in an error of the tree.

``python -m tests.fuzz --cases 10000000`` (or ``./dev fuzz --cases 10000000``) runs every target in a process of its own, whose
kernels are compiled with bounds checking, into a cache of their own. A case is a recorded sample with a few changes, made from
the seed and the case's number alone, in an array of exactly its size: one byte read or written outside is an IndexError.
A process that crashes, or that says nothing for two minutes, is a fault as well. ``--only``, ``--seed`` and ``--first`` with
``--cases 1`` run one case again.
"""

from __future__ import annotations

import os

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes import intrinsics


@njit(inline="always")
def _load64(array, index):
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(array[index + i]) << np.uint64(8 * i)
    return value


@njit(inline="always")
def _move8(source, start, target, at):
    for i in range(8):
        target[at + i] = source[start + i]


@njit(inline="always")
def _move16(source, start, target, at):
    for i in range(16):
        target[at + i] = source[start + i]


if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
    # The loads of many bytes are instructions that the check does not see: byte by byte, before any kernel imports them.
    intrinsics.load64, intrinsics.move8, intrinsics.move16 = _load64, _move8, _move16

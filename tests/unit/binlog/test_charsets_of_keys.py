"""In a key no two texts of a character set are one: some sets have a character twice."""

from __future__ import annotations

import numpy as np
import pytest

from cdc_lib.binlog.charsets import double, japanese, single
from cdc_lib.binlog.charsets.registry import transcoder

SETS = sorted(single.NAMES | double.NAMES | japanese.NAMES)
LEADS = range(0x80, 0x100)


def read(charset, sequences, *, in_key):
    """Return the text of each sequence, with U+FFFD for what is none."""
    size = len(sequences[0])
    data = np.frombuffer(b"".join(sequences), np.uint8)
    length = np.full(len(sequences), size, np.int64)
    offsets, out = np.zeros(len(sequences) + 1, np.int32), np.zeros(4 * data.shape[0], np.uint8)
    made = transcoder(charset, in_key=in_key)
    pos = np.arange(0, data.shape[0], size)
    valid = np.zeros(len(sequences), np.uint8)
    made.kernel(data, pos, length, len(sequences), offsets, out, valid, 0, True, *made.tables)
    return [out[offsets[i] : offsets[i + 1]].tobytes().decode() for i in range(len(sequences))]


def characters(charset, *, in_key):
    """Return all characters of a set, as often as it has them."""
    kinds = [[bytes([byte]) for byte in range(256)], [bytes([a, b]) for a in LEADS for b in range(256)]]
    if charset in japanese.NAMES:
        kinds.append([bytes([0x8F, a, b]) for a in LEADS for b in LEADS])
    found = [text for sequences in kinds for text in read(charset, sequences, in_key=in_key)]
    return [text for text in found if len(text) == 1 and (in_key is False or text != "\ufffd")]


@pytest.mark.parametrize("charset", SETS)
def test_no_character_of_a_key_has_two_codes_and_none_is_missing(charset):
    found = characters(charset, in_key=True)
    assert len(found) == len(set(found))
    assert set(characters(charset, in_key=False)) - set(found) <= {"\ufffd"}

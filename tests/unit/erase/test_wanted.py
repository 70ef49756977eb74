"""Keys in a file are read as CSV; what is none is refused by its name."""

from __future__ import annotations

import io

import pytest

from cdc_lib.erase.wanted import MOST_ROWS, keys_in
from cdc_lib.errors import ConfigError


def test_each_line_is_a_key():
    lines = io.StringIO('42\n\nde,7\n"a, ""b""",8\n')
    assert keys_in(lines) == [["42"], ["de", "7"], ['a, "b"', "8"]]
    assert keys_in(["42", '"x,y",1']) == [["42"], ["x,y", "1"]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'"open', "the keys cannot be read: unexpected end of data"),
        (b"m\xfcller", "the keys cannot be read: 'utf-8' codec can't decode"),
        (b"7\n" * (MOST_ROWS + 1), "these are 1,001 keys"),
    ],
    ids=["not closed", "latin 1", "too many"],
)
def test_what_is_no_list_of_keys_is_refused(data, message):
    with pytest.raises(ConfigError, match=message):
        keys_in(io.TextIOWrapper(io.BytesIO(data), "utf-8"))

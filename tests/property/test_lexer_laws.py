"""Laws of the lexer: nothing of a text is lost, and what is quoted is read back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.lexer import spark_tokens, tokens, words

PIECES = st.sampled_from(
    ["'", '"', "`", "\\", "/*", "*/", "/*!", "/*M!5", "--", "-- ", "#", "\n", " ", ".", "1", "e", "0x", "x", "_a", "r", "<", "=", ">", "(", "ä", "☃"]
)  # fmt: skip
TEXTS = st.text() | st.lists(PIECES, max_size=30).map("".join)


@pytest.mark.parametrize("cut", [tokens, spark_tokens])
@given(text=TEXTS)
def test_the_tokens_joined_are_the_text(cut, text):
    """Each is of one kind, and only the last has no end."""
    found = list(cut(text))
    assert "".join(token[0] for token in found) == text
    assert all(token.lastgroup and token[0] for token in found)
    assert all(token.lastgroup != "unended" for token in found[:-1])


@given(st.text(), TEXTS)
def test_what_is_quoted_is_read_back(value, rest):
    """As a string, with its backslashes escaped, and as a name."""
    string = "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    name = "`" + value.replace("`", "``") + "`"
    first, second, *_ = words(f"{string} {name} -- {rest}")
    assert (first, second) == ((value, "string", ""), (value, "name", ""))

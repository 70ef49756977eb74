"""Laws of the lexer: nothing of a text is lost, and what is quoted is read back as it was."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.lexer import QUOTINGS, spark_tokens, tokens, words

PIECES = st.sampled_from(
    ["'", '"', "`", "\\", "/*", "*/", "/*!", "/*M!5", "--", "-- ", "#", "\n", " ", ".", "1", "e", "0x", "x", "_a", "r", "<", "=", ">", "(", "ä", "☃"]
)  # fmt: skip
TEXTS = st.text() | st.lists(PIECES, max_size=30).map("".join)


@pytest.mark.parametrize("cut", [*(partial(tokens, quoting=quoting) for quoting in QUOTINGS), spark_tokens])
@given(text=TEXTS)
def test_the_tokens_joined_are_the_text(cut, text):
    """Each is of one kind, and only the last has no end."""
    found = list(cut(text))
    assert "".join(token[0] for token in found) == text
    assert all(token.lastgroup and token[0] for token in found)
    assert all(token.lastgroup != "unended" for token in found[:-1])


@given(st.text() | st.text("\\'\"`a"), TEXTS, st.sampled_from(QUOTINGS))
def test_what_is_quoted_is_read_back(value, rest, quoting):
    """As a string, with its backslashes escaped where that is done, and as a name, in double quotes too."""
    escaped = value.replace("\\", "\\\\") if quoting.escapes else value
    string = "'" + escaped.replace("'", "''") + "'"
    name = "`" + value.replace("`", "``") + "`"
    double = '"' + (value if quoting.ansi else escaped).replace('"', '""') + '"'
    first, second, third, *_ = words(f"{string} {name} {double} -- {rest}", quoting)
    assert (first, second) == ((value, "string", ""), (value, "name", ""))
    assert third == (value, "name" if quoting.ansi else "string", "")


@given(TEXTS)
def test_without_a_backslash_every_mode_gives_the_same_tokens(text):
    text = text.replace("\\", "")
    cuts = {tuple((token.lastgroup, token[0]) for token in tokens(text, quoting)) for quoting in QUOTINGS}
    assert len(cuts) == 1

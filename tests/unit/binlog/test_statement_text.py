"""The bytes of statements as text, in the character sets that sessions may have."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.charsets.registry import READABLE, decoded
from cdc_lib.binlog.ddl.statement_text import readings_of, text_of, with_kept_names
from cdc_lib.model.lexer import Quoting

CREATE = "CREATE TABLE `größe` (\n  `id` int\n)"
IN_UTF8 = CREATE.encode()


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        (b"TRUNCATE t", "", "TRUNCATE t"),
        (b"TRUNCATE gr\xf6\xdfe", "latin1", "TRUNCATE größe"),
        ("TRUNCATE größe".encode(), "utf8mb3", "TRUNCATE größe"),
        ("TRUNCATE größe".encode(), "binary", "TRUNCATE größe"),
        (b"TRUNCATE \x95\\", "sjis", "TRUNCATE 表"),
        (b"TRUNCATE `\x81``", "gbk", "TRUNCATE `乣`"),
        (b"TRUNCATE \xc9\xc6", "cp1251", "TRUNCATE ЙЖ"),
        (b"TRUNCATE [", "latin1", "TRUNCATE ["),
    ],
)
def test_a_statement_is_in_the_character_set_of_its_session(raw, charset, text):
    assert text_of(raw, charset) == (text, True)


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        (b"TRUNCATE gr\xf6", "utf8mb4", "TRUNCATE gr\ufffd"),
        (b"TRUNCATE gr\xf6", "", "TRUNCATE gr\ufffd"),
        (b"TRUNCATE gr\xf6", "klingon", "TRUNCATE gr\ufffd"),
        (b"TRUNCATE `g\xff`", "sjis", "TRUNCATE `g\ufffd`"),
        (b"TRUNCATE `c[d`", "swe7", "TRUNCATE `c\ufffdd`"),
        (b"TRUNCATE `c\\d`", "swe7", "TRUNCATE `c\\d`"),
    ],
)
def test_what_the_character_set_does_not_have_is_not_guessed(raw, charset, text):
    assert text_of(raw, charset) == (text, False)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"TRUNCATE `gr\xf6`", "TRUNCATE `gr`"),
        (b"TRUNCATE `gr\xf6\xdfen`", "TRUNCATE `gr??en`"),
        (b"TRUNCATE `\xf6``a`", "TRUNCATE ``"),
        (b"TRUNCATE `\xf6``ab`", "TRUNCATE `?``ab`"),
        (b"TRUNCATE `\xc3\xa4\xed\xa0\x80\xe9`", "TRUNCATE `\xe4???`"),
        (b"TRUNCATE `\xf0\x9f\x98\x80\x80`", "TRUNCATE `??`"),
        (b"TRUNCATE gr\xf6", "TRUNCATE gr\ufffd"),
        (b"ALTER TABLE `gr\xf6` COMMENT '`\xf6`' /* `\xf6` */", "ALTER TABLE `gr` COMMENT '`\ufffd`' /* `\ufffd` */"),
        (b'ALTER TABLE `gr\xf6` COMMENT "`\xf6`"', 'ALTER TABLE `gr` COMMENT "`\ufffd`"'),
    ],
)
def test_names_in_quotes_are_those_that_mysql_keeps(raw, text):
    """Of a session that says utf8mb4; bytes elsewhere are not guessed."""
    assert with_kept_names(raw, Quoting(mariadb=False)) == text


@pytest.mark.parametrize("charset", sorted(READABLE - {"ucs2", "utf16", "utf16le", "utf32", "swe7"}))
def test_only_signs_of_ascii_are_signs_of_the_grammar(charset):
    """Some sets have other bytes that CONVERT gives as the same signs; servers do not end a string at them."""
    for byte in range(0x80, 0x100):
        raws = [bytes([byte])] if charset not in ("sjis", "ujis") else [bytes([byte, low]) for low in (0x5F, 0xC0)]
        for raw in raws:
            text, exact = text_of(raw, charset)
            alone = text.replace("_", "") if raw.endswith(b"_") else text
            assert not any(sign.isascii() for sign in alone), (raw, text)
            if exact:
                assert (text,) == decoded((raw,), charset)


@pytest.mark.parametrize("suffix", ["", " START TRANSACTION"])
def test_what_a_server_made_is_in_utf8(suffix):
    """A CREATE with the rows of a SELECT, in every session; MySQL writes so at its end."""
    raw = IN_UTF8 + suffix.encode()
    assert text_of(raw, "latin1", with_rows=not suffix) == (CREATE + suffix, True)
    assert text_of((CREATE + suffix).encode("cp1252"), "latin1") == (CREATE + suffix, True)


@pytest.mark.parametrize("raw", [IN_UTF8, "TRUNCATE TABLE `db`.`größe`".encode()])
def test_what_may_be_typed_or_made_is_not_guessed(raw):
    text, exact = text_of(raw, "latin1")
    assert not exact
    assert "gr\ufffd" in text
    assert readings_of(raw, "latin1") == (raw.decode(), raw.decode("cp1252"))


@pytest.mark.parametrize(
    ("raw", "charset"),
    [(b"CREATE TABLE `gr\xf6` (\n)", "latin1"), (IN_UTF8, "utf8mb3"), (b"DROP TABLE `\xc3\xb6`", "latin1")],
)
def test_what_is_no_utf8_or_of_no_server_has_one_reading(raw, charset):
    assert readings_of(raw, charset) == ()

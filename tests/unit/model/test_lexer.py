"""What a statement consists of: each construct of MySQL, MariaDB and Spark SQL, with and without its end."""

from __future__ import annotations

import pytest

from cdc_lib.model.lexer import Quoting, spark_tokens, tokens, uncommented, words


def kinds(text, cut=tokens):
    return [(token.lastgroup, token[0]) for token in cut(text) if token.lastgroup != "space"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(
            (text, "string")
            for text in ("'a'", "''", "'it''s'", r"'a\'b'", r"'\\'", "'-- # /* */'", "'two\nlines'", "'☃'")
        ),
        *((text, "quoted") for text in ('"a"', '""', '"a""b"', r'"a\"b"', '"\'"')),
        *((text, "name") for text in ("`a`", "`we``ird`", r"`back\`", "`/* x */`", "`a.b`")),
        *(
            (text, "comment")
            for text in ("-- to the end", "--", "--\t'", "# it's", "#", "/* a\n'b */", "/**/", "/***/", "/*+ hint */")
        ),
        *((text, "mark") for text in ("/*!", "/*!50001", "/*M!", "/*M!100100", "*/")),
        *(
            (text, "number")
            for text in ("0", "007", "12.5", "12.", ".5", "1e5", "1E+5", "1.5e-3", ".5e3", "0x1F", "0b01")
        ),
        *(
            (text, "word")
            for text in (
                "a",
                "_a",
                "$a",
                "a$b",
                "größe",
                "1st",
                "0xG",
                "0X1F",
                "0b2",
                "1e",
                "5NOT",
                "店",
                "a☃",
                "ตารางที่",
                "cafe\u0301",
            )
        ),
        *(
            (text, "sign")
            for text in ("<=>", "<>", "<=", ">=", "!=", ":=", "=", "<", ">", "(", ";", "@", "\\", "\0", "\ufffd")
        ),
        *((text, "space") for text in (" ", "\n\t ")),
        *((text, "unended") for text in ("'a", r"'a\'", "'a\\", '"a""', "`a``", "/* a", "/*/", "'a -- `b`\n")),
    ],
)
def test_each_construct_is_one_token(text, kind):
    assert [(token.lastgroup, token[0]) for token in tokens(text)] == [(kind, text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a--b", [("word", "a"), ("sign", "-"), ("sign", "-"), ("word", "b")]),
        ("-- x\na", [("comment", "-- x"), ("word", "a")]),
        ("a#b\nc", [("word", "a"), ("comment", "#b"), ("word", "c")]),
        ("/* a */b/* c */", [("comment", "/* a */"), ("word", "b"), ("comment", "/* c */")]),
        ("/* /* */ */", [("comment", "/* /* */"), ("mark", "*/")]),
        ("2*/* c */3", [("number", "2"), ("sign", "*"), ("comment", "/* c */"), ("number", "3")]),
        ("/*!40000a*/b", [("mark", "/*!40000"), ("word", "a"), ("mark", "*/"), ("word", "b")]),
        ("/*!80000 a /* b */ */", [("mark", "/*!80000"), ("word", "a"), ("comment", "/* b */"), ("mark", "*/")]),
        ("shop.1st", [("word", "shop"), ("sign", "."), ("word", "1st")]),
        ("shop.1", [("word", "shop"), ("sign", "."), ("number", "1")]),
        ("`a`.1e5", [("name", "`a`"), ("sign", "."), ("number", "1e5")]),
        ("a,.5", [("word", "a"), ("sign", ","), ("number", ".5")]),
        ("1.5.2", [("number", "1.5"), ("sign", "."), ("number", "2")]),
        ("1e+x", [("word", "1e"), ("sign", "+"), ("word", "x")]),
        ("'a'\"b\"", [("string", "'a'"), ("quoted", '"b"')]),
        ("x'0A'", [("introducer", "x"), ("string", "'0A'")]),
        ("N'a' B\"1\"", [("introducer", "N"), ("string", "'a'"), ("introducer", "B"), ("quoted", '"1"')]),
        ("_utf8mb4  'a'", [("introducer", "_utf8mb4  "), ("string", "'a'")]),
        ("_utf8mb4'open", [("introducer", "_utf8mb4"), ("unended", "'open")]),
        ("x 'a'", [("word", "x"), ("string", "'a'")]),
        ("ax'a' _a.b", [("word", "ax"), ("string", "'a'"), ("word", "_a"), ("sign", "."), ("word", "b")]),
        ("a<=-1", [("word", "a"), ("sign", "<="), ("sign", "-"), ("number", "1")]),
    ],
)
def test_neighbours_are_distinguished(text, found):
    assert kinds(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a -- b", [("word", "a"), ("comment", "-- b")]),
        ("a--b", [("word", "a"), ("comment", "--b")]),
        ("#1", [("sign", "#"), ("word", "1")]),
        ("/*! a */", [("comment", "/*! a */")]),
        (r"r'C:\' R" + r'"\"', [("raw", r"r'C:\'"), ("raw", r'R"\"')]),
        (r"'a\'b' `c``d`", [("string", r"'a\'b'"), ("name", "`c``d`")]),
        ("x'0A'", [("word", "x"), ("string", "'0A'")]),
        ("a['b", [("word", "a"), ("sign", "["), ("unended", "'b")]),
        ("/* a", [("unended", "/* a")]),
    ],
)
def test_spark_sql_has_other_comments_and_raw_strings(text, found):
    assert kinds(text, spark_tokens) == found


@pytest.mark.parametrize("ansi", [True, False])
def test_words_are_read_without_their_quotes(ansi):
    """Text in double quotes is a name or a string, as the SQL mode says."""
    text = "ADD /* x */ `c``d` /*!80000 INT*/ DEFAULT _utf8mb4 'it''s\\n' \"e\"\"f\" 1.5 <= .5 -- end"
    double = ('e"f', "name" if ansi else "string", "")
    assert list(words(text, Quoting(ansi=ansi))) == [
        ("ADD", "word", "ADD"),
        ("c`d", "name", ""),
        ("INT", "word", "INT"),
        ("DEFAULT", "word", "DEFAULT"),
        ("_utf8mb4", "word", "_UTF8MB4"),
        ("it's\n", "string", ""),
        double,
        ("1.5", "number", "1.5"),
        ("<=", "sign", "<="),
        (".5", "number", ".5"),
    ]


@pytest.mark.parametrize(
    ("written", "read"),
    [(r"\0\b\n\r\t\Z", "\0\b\n\r\t\x1a"), (r"\%\_", r"\%\_"), (r"\\\'\x", r"\'x"), (r"\\''", r"\'"), (r"\''' ", "'' ")],
)
def test_a_backslash_in_a_string_is_an_escape(written, read):
    """Of LIKE's wildcards it stays."""
    ((text, kind, _),) = words(f"'{written}'")
    assert (text, kind) == (read, "string")


def test_after_a_point_every_word_is_a_name():
    """Also one that is a keyword, or a number, elsewhere; and before it nothing is."""
    found = [(word.text, word.kind, word.key) for word in words("d.table . /* x */ rename .1a .5 d.1e5")]
    assert found == [
        ("d", "word", "D"), (".", "sign", "."), ("table", "name", ""), (".", "sign", "."), ("rename", "name", ""),
        (".1", "number", ".1"), ("a", "word", "A"), (".5", "number", ".5"), ("d", "word", "D"), (".", "sign", "."), ("1e5", "name", ""),
    ]  # fmt: skip


def test_in_a_name_a_backslash_stays():
    assert [word.text for word in words(r'`a\nb` "c\nd"', Quoting(ansi=True))] == [r"a\nb", r"c\nd"]


def test_a_quote_without_an_end_is_the_last_word():
    """A comment without an end is not a comment."""
    assert list(words("a 'b c")) == [("a", "word", "A"), ("b c", "unended", "")]
    assert list(words("a /* b c")) == [("a", "word", "A")]


def test_a_comment_that_is_executed_has_a_version():
    found = [
        token["version"]
        for token in tokens("/* b */ '/*!50000 c */' /*!50001 d */ /*M! f */")
        if token.lastgroup == "mark"
    ]
    assert found == ["50001", None, "", None]


def test_a_statement_without_comments_keeps_all_that_is_executed():
    assert uncommented("DROP/* x */KEY /*!40000 a */ '/* b */' -- c\n`-- d`") == "DROP KEY   a   '/* b */'  \n`-- d`"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", ["'", "\\", "\\'", "(", "/* ", "*/", "`", '"', "_a ", "1.", ".", "-- ", "x'", "/*!5", "''"]
)
@pytest.mark.parametrize("cut", [tokens, spark_tokens])
def test_a_long_text_is_cut_in_linear_time(unit, cut):
    """Where a pattern went back for each of so many beginnings, this would take hours."""
    text = unit * 200_000
    assert sum(len(token[0]) for token in cut(text)) == len(text)

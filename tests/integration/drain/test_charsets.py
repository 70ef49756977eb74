"""Every character set agrees with the servers, byte sequence by byte sequence, and arrives out of binlog and snapshot."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cdc_lib.binlog.charsets import double, japanese, single
from cdc_lib.binlog.charsets.registry import READABLE, transcoder
from tests.harness.binlog.capture import Capture

WIDE = ("utf16", "utf16le", "ucs2", "utf32")
TEXTS = {
    "armscii8": "Բարեւ", "ascii": "plain ~", "big5": "中文 abc 龜", "cp1250": "Žluťoučký €", "cp1251": "Привет №",
    "cp1256": "مرحبا", "cp1257": "Ąžuolas", "cp850": "Müller ½", "cp852": "Žluťoučký", "cp866": "Привет", "cp932": "日本ｱｲ①髙",
    "dec8": "Müller", "eucjpms": "日本ｱｲ①髙\uff5e", "euckr": "한국어 뷁", "gb18030": "中文😀㐀ḿ", "gb2312": "中文", "gbk": "中文镕",
    "geostd8": "საქართველო", "greek": "Ελλάδα", "hebrew": "שלום", "hp8": "Müller ÿ", "keybcs2": "Žluťoučký", "koi8r": "Привет",
    "koi8u": "Привіт Ґ", "latin1": "Müller €", "latin2": "Žluťoučký", "latin5": "İstanbul ğ", "latin7": "Ąžuolas", "macce": "Žluťoučký",
    "macroman": "Müller €", "sjis": "日本ｱｲ", "swe7": "Ångström é", "tis620": "สวัสดี", "ucs2": "日本 é a", "ujis": "日本ｱｲ丂",
    "utf16": "日本 😀 é", "utf16le": "日本 😀 é", "utf32": "日本 😀 é", "utf8mb3": "日本 é", "utf8mb4": "日本 😀 é",
}  # fmt: skip


def of_server(session, charset):
    """Return every byte sequence of a set and the text that the server gives for it, None where it gives none."""
    with session.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM bytes")
        assert cursor.fetchone() == (256,)
        sequences = ["SELECT x FROM bytes"]
        if charset in double.NAMES | japanese.NAMES | {"gb18030"}:
            sequences.append("SELECT CONCAT(a.x, b.x) FROM bytes a, bytes b WHERE a.x >= X'80' AND b.x > X'3F'")
        if charset in japanese.NAMES:
            sequences.append("SELECT CONCAT(X'8F', a.x, b.x) FROM bytes a, bytes b WHERE a.x >= X'A1' AND b.x >= X'A1'")
        if charset == "gb18030":
            sequences.append(
                "SELECT CONCAT(a.x, b.x, c.x, d.x) FROM bytes a, bytes b, bytes c, bytes d WHERE a.x BETWEEN X'81' AND X'FE' "
                "AND b.x BETWEEN X'30' AND X'39' AND c.x BETWEEN X'81' AND X'FE' AND d.x BETWEEN X'30' AND X'39'"
            )
        for sql in sequences:
            converted = f"CONVERT(CONVERT(s USING {charset}) USING utf8mb4)"
            cursor.execute(f"SELECT HEX(s), HEX({converted}) FROM ({sql.replace(' FROM', ' AS s FROM', 1)}) AS t")
            for sequence, text in cursor.fetchall():
                yield bytes.fromhex(sequence), _text(bytes.fromhex(sequence), text)


def _text(sequence, answer):
    """The server answers a question mark, or nothing, where there is no character."""
    text = bytes.fromhex(answer or "").decode()
    return None if "?" in text and b"?" not in sequence else text or None


def own(charset, sequences):
    """Return what the project makes of each sequence, U+FFFD for what is no text."""
    data = np.frombuffer(b"".join(sequences) + b"\0", np.uint8)
    length = np.array([len(sequence) for sequence in sequences], np.int64)
    pos = np.cumsum([0, *length])[:-1].astype(np.int64)
    offsets, out = np.zeros(len(sequences) + 1, np.int32), np.zeros(3 * data.shape[0], np.uint8)
    made = transcoder(charset)
    valid = np.zeros(len(sequences), np.uint8)
    assert made.kernel(data, pos, length, len(sequences), offsets, out, valid, 0, True, *made.tables) == -1
    whole = out.tobytes()
    return [whole[a:b].decode() for a, b in pairwise(offsets)]


def charsets_of(server):
    names = {row[0] for row in server.execute("SHOW CHARACTER SET")}
    return {current_name(name) for name in names}


def current_name(charset):
    return "utf8mb3" if charset == "utf8" else charset  # its former name


def test_every_character_set_of_the_server_is_read(any_server):
    """None that it ships is missing."""
    assert charsets_of(any_server) <= READABLE
    assert charsets_of(any_server) <= TEXTS.keys() | {"binary"}


def test_all_byte_sequences_mean_what_the_server_says(any_server, database):
    """One-byte sets, pairs, triples and gb18030's four bytes; where the server has no character, there is none here."""
    any_server.execute("CREATE TABLE bytes (x VARBINARY(1) PRIMARY KEY)", database=database)
    every = ", ".join(f"(X'{byte:02X}')" for byte in range(256))
    any_server.execute(f"INSERT INTO bytes VALUES {every}", database=database)
    asked = (single.NAMES | double.NAMES | japanese.NAMES | {"ascii", "gb18030"}) & charsets_of(any_server)
    assert len(asked) >= 33
    with any_server.connect(database=database) as session:
        for charset in sorted(asked):
            wanted = dict(of_server(session, charset))
            sequences = list(wanted)
            found = dict(zip(sequences, own(charset, sequences), strict=True))
            wrong = {
                sequence.hex(): (found[sequence], text)
                for sequence, text in wanted.items()
                if (found[sequence] != text if text else "\ufffd" not in found[sequence])
            }
            assert not wrong, (charset, len(wrong), list(wrong.items())[:10])


@pytest.fixture
def texts(any_server, database, tmp_path):
    """A table with a VARCHAR, a CHAR, a TEXT, an ENUM and a SET in every character set of the server."""
    capture = Capture(any_server, database, tmp_path)
    known = sorted(charsets_of(any_server) - {"binary"})
    columns = ", ".join(
        f"v_{c} VARCHAR(40) CHARACTER SET {c}, c_{c} CHAR(30) CHARACTER SET {c}, t_{c} TEXT CHARACTER SET {c}, "
        f"e_{c} ENUM('a', '{TEXTS[c]}') CHARACTER SET {c}, s_{c} SET('b', '{TEXTS[c][:3]}') CHARACTER SET {c}"
        for c in known
    )
    capture.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {columns})")
    return capture, known


def fill(capture, known):
    values = ", ".join(
        f"'{TEXTS[c]}', '{TEXTS[c]}  ', REPEAT('{TEXTS[c]}', 50), '{TEXTS[c]}', 'b,{TEXTS[c][:3]}'" for c in known
    )
    capture.execute(f"INSERT INTO a VALUES (1, {values})")
    capture.execute("INSERT INTO a (id) VALUES (2)")
    empty = ", ".join("'', '', '', 'a', ''" for _ in known)
    capture.execute(f"INSERT INTO a VALUES (3, {empty})")


def test_texts_and_labels_of_every_character_set_equal_select(texts):
    """Out of the binlog and out of a snapshot, with NULL and empty ones."""
    capture, known = texts
    start = capture.head()
    fill(capture, known)
    names = [f"{kind}_{c}" for c in known for kind in "vctes"]
    shown = {
        row[0]: dict(zip(names, row[1:], strict=True))
        for row in capture.execute(f"SELECT id, {', '.join(names)} FROM a")
    }
    assert shown[1]["t_gbk"] == TEXTS["gbk"] * 50
    drained = capture.rows(capture.drain(capture.window_from(start)), "a")
    (chunk,) = capture.snapshot("a")
    for rows in (drained, capture.rows(chunk, "a")):
        assert {row["id"]: {name: row[name] for name in names} for row in rows} == shown


@pytest.mark.needs("collations with names for each character set")
def test_texts_of_every_collation_are_read(any_server, database, tmp_path):
    """The binlog names character sets by the numbers of collations, of which there are more than one byte holds."""
    capture = Capture(any_server, database, tmp_path)
    found = any_server.execute(
        "SELECT COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY ORDER BY 1"
        if any_server.flavor == "mysql"
        else "SELECT FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY ORDER BY 1"
    )
    names = [name for (name,) in found if not name.startswith(("binary", "filename"))]
    assert len(names) > 260
    start = capture.head()
    tables = {f"t{i}": names[i : i + 200] for i in range(0, len(names), 200)}
    for table, mine in tables.items():
        columns = ", ".join(f"c{i} VARCHAR(9) COLLATE {name}" for i, name in enumerate(mine))
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns})")
        values = ", ".join(f"_utf8mb4'{TEXTS[current_name(name.partition('_')[0])][:5]}'" for name in mine)
        capture.execute(f"INSERT INTO {table} VALUES (1, {values})")
    manifest = capture.drain(capture.window_from(start))
    for table, mine in tables.items():
        (row,), (shown,) = capture.rows(manifest, table), capture.execute(f"SELECT * FROM {table}")
        assert {name: row[f"c{i}"] for i, name in enumerate(mine)} == dict(zip(mine, shown[1:], strict=True))


@pytest.mark.parametrize("charset", ["utf8mb4", "latin1", "gbk", "utf16", "sjis", "swe7", "greek"])
def test_a_snapshot_walks_keys_of_any_character_set(any_server, database, tmp_path, charset):
    """In chunks of two rows; each row comes once."""
    capture = Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 2})
    capture.execute(f"CREATE TABLE a (k VARCHAR(30) CHARACTER SET {charset}, n INT, PRIMARY KEY (k, n))")
    words = [TEXTS[charset][:size] for size in range(len(TEXTS[charset]) + 1)]
    for word in dict.fromkeys(word.rstrip() for word in words):
        capture.execute("INSERT INTO a VALUES (%s, 1), (%s, 2)", (word, word))
    chunks = capture.snapshot("a")
    assert len(chunks) > 2
    found = [(row["k"], row["n"]) for chunk in chunks for row in capture.rows(chunk, "a")]
    assert sorted(found) == sorted(capture.execute("SELECT k, n FROM a"))


def test_invalid_text_stops_or_is_replaced(any_server, database, tmp_path):
    """As the source file says, in the same way out of binlog and snapshot; 0x81 of cp1250 is a byte without a character."""
    capture = Capture(any_server, database, tmp_path / "error")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250)")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1, _cp1250 X'6181C462')")
    window = capture.window_from(start)
    for read in (lambda: capture.drain(window), lambda: capture.snapshot("a")):
        with pytest.raises(Exception, match="not valid in the character set cp1250") as caught:
            read()
        assert "invalid_text: replace" in str(caught.value)
    assert capture.visible() == []
    lenient = Capture(any_server, database, tmp_path / "replace", invalid_text="replace")
    (chunk,) = lenient.snapshot("a")
    for manifest in (lenient.drain(window), chunk):
        assert [row["v"] for row in lenient.rows(manifest, "a")] == ["a\ufffdÄb"]

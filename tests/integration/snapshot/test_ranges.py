"""The division of a table into ranges by real servers: every row is in one range, whatever the key is and whatever comes later."""

from __future__ import annotations

import random
import uuid
from contextlib import closing

import pytest

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import answer
from cdc_lib.snapshot import chunks
from cdc_lib.snapshot.ranges import KeySpace

ROWS, RANGES = 2000, 5
WORDS = ("Zürich", "apple", "Äpfel", "banana", "ÖL", "zebra", "straße", "日本", "東京", "Москва", "Київ", "ab", "aB")
TEXT = "id VARCHAR(60)"

KEYS = {
    "numbers with a gap": (
        "id BIGINT UNSIGNED",
        lambda n, _: (n if n < 1500 else 2**63 + n * 1000,),
        [(1600,), (2**64 - 1,)],
    ),
    "bytes": ("id BINARY(16)", lambda _, dice: (dice.randbytes(16),), [(b"",), (b"\xff" * 16,)]),
    "uuids": (
        "id CHAR(36) CHARACTER SET ascii",
        lambda _, dice: (str(uuid.UUID(int=dice.getrandbits(128))),),
        [("",), ("~",)],
    ),
    "a long common beginning": (TEXT, lambda n, _: (f"user-{n:08d}@example.com",), [("USER-00000100",), ("x",), ("",)]),
    "words in two cases": (
        f"{TEXT} COLLATE utf8mb4_unicode_ci",
        lambda n, dice: (f"{dice.choice(WORDS)} {dice.choice(WORDS)} {n}",),
        [("ZEBRA",), ("ÄPFEL APPLE",), ("日",), ("",), ("\U0001f600",)],
    ),
    "ideographs": (
        TEXT,
        lambda n, dice: ("".join(chr(dice.randrange(0x4E00, 0x9FFF)) for _ in range(4)) + str(n),),
        [("a",), ("\U0001f600",)],
    ),
    "latin1": (
        f"{TEXT} CHARACTER SET latin1 COLLATE latin1_german2_ci",
        lambda n, dice: (f"{dice.choice(WORDS[:7])}{n}",),
        [("ÖZ",), ("ß",), ("",)],
    ),
    "sjis": (f"{TEXT} CHARACTER SET sjis", lambda n, dice: (f"{dice.choice(('東京', 'ab', '大阪'))} {n}",), [("京",)]),
    "one large tenant": ("t INT, id INT", lambda n, _: (1 if n < 1800 else n, n), [(-1, 5), (1, 9000), (1 << 30, 0)]),
    "several columns": (
        "t VARCHAR(10), d DATE, n DECIMAL(10, 2)",
        lambda n, dice: (dice.choice("ABc"), f"20{dice.randrange(10, 26)}-01-{dice.randrange(10, 28)}", n / 4),
        [("a", "1999-01-01", -5), ("C", "2030-01-01", 0), ("B", "2015-01-15", 0.25)],
    ),
    "moments": (
        "at DATETIME(3)",
        lambda n, _: (f"2026-01-{1 + n // 100:02d} {n % 24:02d}:{n % 60:02d}:00.{n % 1000:03d}",),
        [("1000-01-01",), ("9999-12-31",), ("2026-01-05 00:00:00.5",)],
    ),
    "floating point": ("id DOUBLE", lambda _, dice: (dice.random() * 1e6,), [(-1e300,), (0.1,), (1e300,)]),
}
"""By what the key is: its columns, how a row's is made, and those of rows that come after the division."""


@pytest.mark.parametrize("what", KEYS)
def test_every_row_is_in_one_range(any_server, database, what):
    """Rows that come later too, beyond all keys of the division and between them. No range has much more than its share."""
    columns, key_of, later = KEYS[what]
    names = ", ".join(column.split()[0] for column in columns.replace("(10, 2)", "").split(", "))
    dice = random.Random(what)
    table = f"CREATE TABLE t ({columns}, pad CHAR(100), PRIMARY KEY ({names})) CHARACTER SET utf8mb4"
    any_server.execute(table, database=database)

    def insert(keys):
        row = f"({', '.join(['%s'] * len(keys[0]))}, 'x')"
        values = [value for key in keys for value in key]
        any_server.execute(f"INSERT IGNORE INTO t VALUES {', '.join([row] * len(keys))}", values, database=database)

    insert([key_of(number, dice) for number in range(ROWS)])
    any_server.execute("ANALYZE TABLE t", database=database)
    config = ServerConfig(host=any_server.host, port=any_server.port, user=any_server.cdc_user, password_env="UNUSED")
    with closing(connect(config, Credentials(any_server.cdc_user, any_server.cdc_password))) as connection:
        reader = InformationSchema(connection)
        schema = reader.schema(database, "t")
        ranges = KeySpace(connection, schema, reader.key_name(schema)).divided(RANGES)
        inside = [f"({chunks.of_range(schema, one)})" for one in ranges]

        def count(condition):
            return answer(connection, f"SELECT COUNT(*) FROM `{database}`.t WHERE {condition}")[0][0]

        assert 3 <= len(ranges) <= RANGES
        assert max(map(count, inside)) < count("TRUE") * 2 // RANGES
        insert(later)
        assert count(f"{' + '.join(inside)} <> 1") == 0
        assert sum(map(count, inside)) == count("TRUE")

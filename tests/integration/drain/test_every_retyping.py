"""Each pair of types, at the servers: where an ALTER TABLE changes a value, the statement is known to change values."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from pymysql.err import MySQLError

from cdc_lib.binlog.ddl.history.retyped import respelled
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.schema_version import Definition
from cdc_lib.store import documents
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.lake.rounds import drain_round

TYPES = {
    "TINYINT": ("-128", "127"), "TINYINT UNSIGNED": ("255",), "SMALLINT": ("-32768", "32767", "1"), "INT": ("-2147483648", "5"),
    "INT UNSIGNED": ("4294967295", "7"), "BIGINT": ("-9223372036854775808",), "BIGINT UNSIGNED": ("18446744073709551615",),
    "DECIMAL(5,2)": ("-999.99", "1.25"), "DECIMAL(5,2) UNSIGNED": ("999.99",), "DECIMAL(10,0)": ("-9999999999", "3"),
    "DECIMAL(45,3)": ("-123456789012345678901234567890.125",), "FLOAT": ("-1.5", "0.1", "3e38"), "DOUBLE": ("-2.5", "0.1", "1e300"),
    "FLOAT UNSIGNED": ("1.5",), "DOUBLE UNSIGNED": ("2.5",), "BIT(1)": ("b'1'",), "BIT(4)": ("b'1111'",), "BIT(9)": ("b'111111111'", "b'1'"),
    "BIT(64)": ("18446744073709551615",), "YEAR": ("1901", "2155", "2024"), "DATE": ("'2024-01-02'", "'1000-01-01'"),
    "TIME": ("'-838:59:59'", "'10:00:00'"), "TIME(3)": ("'10:00:00.125'",), "TIME(6)": ("'10:00:00.123456'",),
    "DATETIME": ("'2024-01-02 03:04:05'", "'9999-12-31 23:59:59'"), "DATETIME(3)": ("'2024-01-02 03:04:05.678'",),
    "DATETIME(6)": ("'2024-01-02 03:04:05.678912'",), "TIMESTAMP(0)": ("'2024-01-02 03:04:05'",), "TIMESTAMP(3)": ("'2024-01-02 03:04:05.678'",),
    "CHAR(3)": ("'a'", "'abc'"), "CHAR(10)": ("'abcdefghij'",), "VARCHAR(3)": ("'a '", "'abc'"), "VARCHAR(20)": ("'abcdefghij   '", "'ü'"),
    "VARCHAR(20) CHARACTER SET latin1": ("'ü'",), "TINYTEXT": ("'a'",), "TEXT": ("REPEAT('x', 300)", "'ü'"), "MEDIUMTEXT": ("REPEAT('y', 300)",),
    "BINARY(3)": ("'a'", "'abc'"), "BINARY(5)": ("'abcde'",), "VARBINARY(3)": ("'abc'", "'a'"), "VARBINARY(10)": ("'abcdefghij'",),
    "TINYBLOB": ("'a'",), "BLOB": ("REPEAT('x', 300)",), "ENUM('a','b')": ("'a'", "'b'"), "ENUM('a','b','c')": ("'c'",),
    "ENUM('b','a')": ("'b'",), "SET('a','b')": ("'a,b'", "''"), "SET('a','b','c')": ("'c'",), "JSON": ("'{\"a\": 1}'", "'1'"),
}  # fmt: skip
"""Types, and values of each that not every other type holds."""
STRICT = 1 << 22


@pytest.mark.turns(12)
def test_where_a_new_type_changes_a_value_the_statement_is_known_to_change_values(any_server, database, tmp_path):
    """In strict mode and without it. A column that is named needlessly is read again, and right."""
    with row_metadata(any_server, "FULL"):
        capture = Capture(any_server, database, tmp_path)
        with capture.server.connect(database=database) as session, session.cursor() as sql:
            sql.execute("SET sql_mode = ''")
            for number, (old, values) in enumerate(TYPES.items()):
                columns = ", ".join(f"c{other} {old} NULL" for other in range(len(TYPES)))
                sql.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, {columns})")
                rows = ", ".join(f"({key}, {', '.join([value] * len(TYPES))})" for key, value in enumerate(values))
                sql.execute(f"INSERT INTO t{number} VALUES {rows}")
            session.commit()
        drain_round(capture)
        keys = [found.key for found in capture.store.list("") if found.key.endswith("manifest.json")]
        manifests = [documents.load(Manifest, capture.store.get(key).data, key) for key in keys]
        known = {schema.name.table: schema for manifest in manifests for schema in manifest.schemas.values()}

        def named(schema, column, new, sql_mode):
            statement = Statement(f"ALTER TABLE t MODIFY {column} {new} NULL", database, sql_mode)
            mariadb = any_server.flavor == "mariadb"
            return respelled(statement, Definition(schema, "utf8mb4"), mariadb=mariadb, as_text=False)

        unseen = []
        for mode in (STRICT, 0):
            for number, old in enumerate(TYPES):
                with capture.server.connect(database=database) as session, session.cursor() as sql:
                    sql.execute(f"CREATE TABLE again LIKE t{number}")
                    sql.execute(f"INSERT INTO again SELECT * FROM t{number}")
                    session.commit()
                    sql.execute(f"SET sql_mode = '{'STRICT_ALL_TABLES' if mode else ''}'")
                    for other, new in enumerate(TYPES):
                        if changes(sql, f"c{other}", old, new) and not named(
                            known[f"t{number}"], f"c{other}", new, mode
                        ):
                            unseen.append((old, new, mode))
                    sql.execute("DROP TABLE again")
        assert unseen == []


def changes(sql, column, old, new):
    """Give a column another type; returns whether a value is another one then."""
    read = f"SELECT {column}, CAST({column} AS CHAR), HEX({column}) FROM again ORDER BY id"
    sql.execute(read)
    before = sql.fetchall()
    try:
        sql.execute(f"ALTER TABLE again MODIFY {column} {new} NULL")
    except MySQLError:  # values do not fit, in strict mode
        return False
    sql.execute(read)
    return not all(is_same(*values, old, new) for values in zip(before, sql.fetchall(), strict=True))


def is_same(before, after, old, new):
    """Whether a value is what it was: by the driver's value, its text, or its bits."""
    first, second = before[0], after[0]
    numbers = (int, float, Decimal)
    alike = type(first) is type(second) or (isinstance(first, numbers) and isinstance(second, numbers))
    if before[1] == after[1] or (alike and first == second):
        return True
    if old.startswith("FLOAT") and new.startswith("DOUBLE"):
        return struct.pack("f", first) == struct.pack("f", second)
    return old.startswith("BIT") and new.startswith("BIT") and int(before[2], 16) == int(after[2], 16)

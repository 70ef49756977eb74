"""Statements of any kind end in a definition or in a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.binlog.ddl.history.advance import advance
from cdc_lib.binlog.ddl.history.column import Rules
from cdc_lib.binlog.ddl.history.words import CannotFollow
from cdc_lib.binlog.ddl.statement import Statement, statement_of
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_version import Definition
from cdc_lib.mysql.information_schema import source_type

PIECES = [
    *(
        "ALTER",
        "TABLE",
        "CREATE",
        "DROP",
        "RENAME",
        "ADD",
        "COLUMN",
        "MODIFY",
        "CHANGE",
        "CONVERT",
        "TO",
        "LIKE",
        "INDEX",
    ),
    *("t", "a", "b", "id", "INT", "VARCHAR", "(10)", "(", ")", ",", "CHARACTER SET latin1", "COLLATE", "NOT", "NULL"),
    *(
        "DEFAULT",
        "'x'",
        "FIRST",
        "AFTER",
        "PRIMARY KEY",
        "UNIQUE",
        "ENUM",
        "AS",
        "CHECK",
        "=",
        ".",
        "`",
        '"',
        "DATABASE",
        "IF",
    ),
]
RULES = Rules(source_type, mariadb=True)
DATABASE = Definition(TableSchema("db", "", ()), "utf8mb4")


def followed(text):
    known = {("db", ""): DATABASE}
    known[("db", "t")] = advance(("db", "t"), Statement("CREATE TABLE t (id INT, a INT)", "db"), known.get, RULES)
    return advance(("db", "t"), Statement(text, "db", server_charset="latin1"), known.get, RULES)


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map(" ".join)), st.sampled_from(["", "ALTER TABLE t "]))
def test_any_text_gives_a_definition_or_a_reason(text, front):
    """Never another error."""
    try:
        definition = followed(front + text)
    except CannotFollow:
        return
    assert definition is None or definition.schema.columns


NAMES = st.sampled_from(["c", "d", "e f", "g`h", "ü"])


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True), st.randoms(use_true_random=False))
def test_a_column_that_is_added_and_dropped_leaves_no_trace(names, chance):
    """Wherever it was put."""
    before = followed("ALTER TABLE t COMMENT 'x'")
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    adds = ", ".join(f"ADD {name} TEXT {chance.choice(('', 'FIRST', 'AFTER id'))}" for name in quoted)
    drops = ", ".join(f"DROP COLUMN {name}" for name in chance.sample(quoted, len(quoted)))
    known = {("db", ""): DATABASE, ("db", "t"): followed(f"ALTER TABLE t {adds}")}
    assert {column.name for column in known["db", "t"].schema.columns} == {"id", "a", *names}
    assert advance(("db", "t"), Statement(f"ALTER TABLE t {drops}", "db"), known.get, RULES) == before


@given(st.binary(max_size=80))
def test_any_bytes_of_a_query_give_a_statement(data):
    """Lengths that lie end in less text, never in an error, once the fixed part is there."""
    body = bytes(13) + data
    assert isinstance(statement_of(body, data, {}), Statement)


def test_status_variables_are_found():
    """SQL mode and character sets, as both servers write them."""
    status = bytes.fromhex("0000000000012000a04500000000060373746404ff00ff000800080800")
    body = bytes(8) + b"\2" + bytes(2) + len(status).to_bytes(2, "little") + status + b"db\0"
    charsets = {255: "utf8mb4", 8: "latin1"}
    statement = statement_of(body, "ALTER TABLE ü".encode(), charsets)
    assert statement == Statement("ALTER TABLE ü", "db", 0x45A00020, "latin1", database_charset="latin1")
    assert not statement_of(body, b"ALTER TABLE \xfc", charsets).exact
    assert statement_of(body, b"ALTER TABLE \xfc", {255: "latin1"}) == Statement(
        "ALTER TABLE ü", "db", 0x45A00020, database_charset="", spaces="\xa0"
    )


@pytest.mark.parametrize("collations", ["00", "022d0000090800e003"])
def test_status_variables_of_new_mariadb_servers_are_found(collations):
    """Collations that a session has for its character sets, none or some, stand before its character sets."""
    status = bytes.fromhex(
        "000000000101000020540000000006037374648300042d002d000800811c00000000000000".replace("8300", f"83{collations}")
    )
    body = bytes(8) + b"\2" + bytes(2) + len(status).to_bytes(2, "little") + status + b"db\0"
    statement = statement_of(body, "ALTER TABLE ü".encode(), {45: "utf8mb4", 8: "latin1"})
    assert (statement.exact, statement.sql_mode, statement.server_charset) == (True, 0x54200000, "latin1")


def test_wrong_lengths_are_refused_by_their_number():
    """A row of variables ends at the first that is not known."""
    with pytest.raises(IndexError):
        statement_of(b"", b"", {})

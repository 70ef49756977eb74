"""A hostile or broken server ends a step with one sentence, which no retry follows, and takes no memory of the worker."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from cdc_lib.binlog.result_set import ResultSet
from cdc_lib.binlog.rows.masking import Masker
from cdc_lib.config import Credentials
from cdc_lib.config.server import ServerConfig
from cdc_lib.errors import UnsupportedServer
from cdc_lib.model.projection import whole
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.mysql.binlog_stream import query
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import read_facts
from tests.harness.network.broken_server import COLUMN, END, OK, BrokenServer, endless, sends

MANY = b"\xfe" + (1 << 62).to_bytes(8, "little")
LONG = b"x" * 0xFFFFFF
"""A packet that the next one continues."""

ANSWERS = {
    "a request for a local file": sends(b"\xfb/etc/passwd"),
    "2^62 columns": sends(MANY, COLUMN, END, b"\x01a", END),
    "columns without end": endless(COLUMN, MANY),
    "a first packet without end": endless(LONG),
    "a definition without end": endless(LONG, b"\x01"),
    "rows without end": endless(b"\xfd\x00\x00\x10" + b"x" * (1 << 20), b"\x01", COLUMN, END),
    "a row without end": endless(LONG, b"\x01", COLUMN, END),
    "a row that is too short": sends(b"\x02", COLUMN, COLUMN, END, b"\x05ab", END),
    "a row without cells": sends(b"\x02", COLUMN, COLUMN, END, b"", END),
    "an empty packet": sends(b""),
    "a definition that is cut": sends(b"\x01", b"\x03def\0", END, END),
    "bytes that are no text": sends(b"\x01", COLUMN.replace(b"\x01c", b"\x01\xff"), END, b"\x01\xff", END),
    "packets out of order": lambda session: session.socket.sendall(b"\x01\0\0\x07\x01"),
}  # fmt: skip
LOG_INS = {
    "the password of old": sends(b"\xfe"),
    "the password of old by name": sends(b"\xfemysql_old_password\0" + b"n" * 8 + b"\0", OK),
    "a method that is cut": sends(b"\xfecaching_sha2_password"),
    "a log-in without end": endless(LONG),
    "nothing": sends(b""),
}
GREETINGS = {
    "a greeting without end": endless(LONG),
    "a greeting that is cut": sends(b"\x0a8.0.40\0\1"),
    "an empty greeting": sends(b""),
    "another protocol": lambda session: session.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9),
}


@pytest.fixture(autouse=True)
def little_memory():
    """Let the process have at most one more GiB, as an address space."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def server_at(port):
    return ServerConfig(host="127.0.0.1", port=port, user="u", password_env="P")


def refused(caught):
    assert not caught.value.retryable
    assert "does not speak MySQL's protocol" in caught.value.message


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_none_is_refused(name):
    """Whatever was asked: the facts of the server, or its tables."""
    with BrokenServer(ANSWERS[name]) as broken:
        for ask in (
            read_facts,
            lambda session, _: InformationSchema(session).tables(),
        ):
            server = server_at(broken.port)
            session = connect(server, Credentials("u", "secret"))
            with pytest.raises(UnsupportedServer) as caught:
                ask(session, server)
            refused(caught)
            assert not session.open


@pytest.mark.parametrize("name", LOG_INS)
def test_a_log_in_that_is_none_is_refused(name):
    """Once: no second try follows."""
    with BrokenServer(log_in=LOG_INS[name]) as broken:
        with pytest.raises(UnsupportedServer) as caught:
            connect(server_at(broken.port), Credentials("u", "secret"))
        refused(caught)
        assert broken.logged_in == 1


@pytest.mark.parametrize("name", GREETINGS)
def test_a_greeting_that_is_none_is_refused(name):
    """Also that of another program."""
    with BrokenServer(first=GREETINGS[name]) as broken:
        with pytest.raises(UnsupportedServer) as caught:
            connect(server_at(broken.port), Credentials("u", "secret"))
        refused(caught)


@pytest.mark.parametrize("name", ["a request for a local file", "2^62 columns", "columns without end", "a first packet without end",
                                  "a definition without end", "a row that is too short", "a row without cells"])  # fmt: skip
def test_rows_of_a_table_that_are_none_are_refused(name):
    """A snapshot reads them past the driver."""
    text = SourceType("string", width=40, charset="utf8mb4")
    schema = TableSchema("d", "t", (Column("a", text), Column("b", text)), ())
    with BrokenServer(ANSWERS[name]) as broken:
        server = server_at(broken.port)
        session = connect(server, Credentials("u", "secret"))
        with query(server, session, "SELECT a, b FROM t") as stream, pytest.raises(UnsupportedServer) as caught:
            list(ResultSet(whole(schema), stream, Masker(), ValuePolicy()).groups())
        refused(caught)

"""`cdc doctor` over many sources: one deadline for all of them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios
import time
from contextlib import closing

import pytest
from typer.testing import CliRunner

from cdc_lib.cli import doctor as command
from cdc_lib.cli.main import app
from cdc_lib.doctor import visit
from cdc_lib.doctor.examine import PATIENCE, PATIENCE_OF_ONE
from cdc_lib.errors import SparkUnavailable
from cdc_lib.model.finding import Finding
from tests.harness.servers.process import free_port

SOURCE = """
server: {{host: 127.0.0.1, port: {port}, user: cdc, password_env: DOCTOR_TEST_PASSWORD, server_id: {number}}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store{number}"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture
def mute():
    """Port of a server that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=2000)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def doctor(tmp_path, monkeypatch):
    """Call the doctor over sources at these ports; returns its lines by source."""
    monkeypatch.setenv("DOCTOR_TEST_PASSWORD", "x")
    (tmp_path / "sources").mkdir()

    def _doctor(*ports, only=()):
        for number, port in enumerate(ports, 1):
            text = SOURCE.format(port=port, number=number, folder=tmp_path)
            (tmp_path / "sources" / f"s{number:02}.yaml").write_text(text)
        result = CliRunner().invoke(app, ["--sources", str(tmp_path / "sources"), "doctor", *only, "--json"])
        lines = json.loads(result.stdout)
        levels = {line["level"] for line in lines}
        assert result.exit_code == (1 if "error" in levels else 3 if "unknown" in levels else 0), result.output
        found = {}
        for line in lines:
            found.setdefault(line["source"], []).append(line)
        return found

    return _doctor


def test_many_sources_that_do_not_answer_take_one_deadline(doctor, mute):
    """A second round finds the deadline over, and waits for none; what is not known of each source is no error."""
    found = doctor(*[mute] * 40)
    assert len(found) == 40
    for lines in found.values():
        said = [line["what"] for line in lines if line["level"] == "unknown"]
        assert not [line for line in lines if line["level"] == "error"]
        assert any("could not be looked at within" in what or "was not checked" in what for what in said)
    waited = [lines for lines in found.values() if "was not checked: other sources did not answer" in lines[0]["what"]]
    assert len(waited) == 40 - 8
    assert waited[0][0]["hint"] == f"cdc doctor {waited[0][0]['source']} checks it alone."


def test_one_source_has_more_time_than_many(doctor, mute, monkeypatch):
    """Whether it is named, or there is no other."""
    given = []
    monkeypatch.setattr(command, "examine", lambda *one: given.append(one[1]) or [])
    doctor(mute)
    doctor(mute, mute, only=("s02",))
    doctor(mute, mute)
    assert given == [PATIENCE_OF_ONE, PATIENCE_OF_ONE, PATIENCE, PATIENCE]


def test_sources_of_one_server_that_does_not_answer_leave_time_for_those_of_others(doctor, mute):
    """The other server refuses at once, so its sources are checked; only one server keeps them waiting."""
    refused = free_port()
    found = doctor(*[mute] * 20, *[refused] * 20)
    others = [lines for name, lines in found.items() if int(name[1:]) > 20]
    assert len(others) == 20
    for lines in others:
        assert any("refused" in line["what"].lower() or "cannot" in line["what"] for line in lines)
        assert not any("was not checked" in line["what"] for line in lines)


def test_sources_that_answer_are_all_checked_however_long_they_take(doctor, monkeypatch):
    """The deadline is for those that do not answer."""
    monkeypatch.setattr(visit, "ALTOGETHER", 1.05)
    monkeypatch.setattr(visit, "_AT_ONCE", 2)

    def slow(*_):
        time.sleep(0.6)
        return [Finding("error", "looked at")]

    monkeypatch.setattr(command, "examine", slow)
    found = doctor(*[free_port()] * 10)
    assert [[line["what"] for line in lines] for lines in found.values()] == [["looked at"]] * 10


def test_one_source_is_checked_alone(doctor):
    """Its name is the argument."""
    assert list(doctor(free_port(), free_port(), only=("s02",))) == ["s02"]


def test_the_check_of_spark_is_for_one_source(tmp_path):
    """A job for each of many sources would take minutes."""
    result = CliRunner().invoke(app, ["--sources", str(tmp_path), "doctor", "--spark"])
    assert result.exit_code == 2
    assert "cdc doctor SOURCE --spark" in " ".join(result.output.split())


def test_what_the_job_of_spark_finds_is_beside_the_other_findings(doctor, monkeypatch):
    """And so is that it could not run."""
    port = free_port()

    def finds(kind, loaded, *, to_stderr, report):
        report.write_text(json.dumps([{"level": "error", "what": f"{kind} of {loaded.source}", "hint": "do it"}]))

    monkeypatch.setattr(command.job, "run_job", finds)
    lines = doctor(port, only=("s01", "--spark"))["s01"]
    assert (lines[-1]["what"], lines[-1]["hint"], lines[-1]["level"]) == ("probe of s01", "do it", "error")
    assert len(lines) > 1

    def fails(*_, **__):
        raise SparkUnavailable("the Spark server does not answer", hint="Start it again.", url="http://h:1")

    monkeypatch.setattr(command.job, "run_job", fails)
    last = doctor(port, only=("s01", "--spark"))["s01"][-1]
    assert last["what"] == "the Spark server does not answer [url=http://h:1]"


@pytest.mark.parametrize("columns", [80, 120])
def test_a_hint_is_a_line_that_can_be_pasted(columns, tmp_path):
    """In a terminal of its own: a finding is wrapped beside its level, a statement is never broken."""
    hint = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'cdc'@'10.0.0.%'; GRANT SELECT ON billing.* TO 'cdc'@'10.0.0.%'"
    what = "the user cdc@10.0.0.% lacks REPLICATION SLAVE, REPLICATION CLIENT, and SELECT on billing.* at db.example.com:3306"
    printer = tmp_path / "printer.py"
    printer.write_text(
        "from cdc_lib.cli.doctor import Line, show_lines\n"
        f"show_lines([Line('a[b]', 'ok', 'fine', ''), Line('billing', 'error', {what!r}, {hint!r})])\n"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environ = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    subprocess.run(
        [sys.executable, printer],
        stdout=theirs,
        check=True,
        env={**environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(theirs)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", os.read(ours, 65536).decode()).splitlines()
    os.close(ours)
    assert shown[0].split() == ["a[b]", "ok", "fine"]
    assert shown[-2:] == [f"    {hint}", "1 error, 0 warnings"]
    finding = [line.rstrip() for line in shown[1:-2]]
    assert " ".join(" ".join(finding).split()) == f"billing error {what}"
    assert all(len(line) <= columns for line in finding)
    assert {line[:18] for line in finding[1:]} == {" " * 18}

"""What the doctor looks at without a server."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
import threading
from contextlib import closing

import pytest

from cdc_lib.config import LakeConfig, StoreConfig, TablesConfig
from cdc_lib.doctor.examine import side_by_side
from cdc_lib.doctor.java_check import check_java, java_of, version_in
from cdc_lib.doctor.lake_check import check_lake
from cdc_lib.doctor.store_check import check_store
from cdc_lib.doctor.tables_check import key_findings, pattern_findings
from cdc_lib.errors import ConfigError, SourceUnavailable
from cdc_lib.model.finding import Finding
from cdc_lib.store.objects.open import open_store
from tests.harness.servers.process import free_port


def levels(findings):
    """Their levels."""
    return [one.level for one in findings]


@pytest.fixture
def java(tmp_path):
    """Make a program that says to be a Java, and return what finds it."""

    def _java(says):
        home = tmp_path / "jdk"
        (home / "bin").mkdir(parents=True, exist_ok=True)
        program = home / "bin" / "java"
        program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return {"JAVA_HOME": str(home), "PATH": os.environ["PATH"]}

    return _java


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.20" 2026-07-21', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_442"', 8),
        ("something else", None),
    ],
)
def test_the_version_of_java_is_read_however_it_is_written(says, version):
    """Old ones begin with 1."""
    assert version_in(says) == version


@pytest.mark.parametrize("says", ['openjdk version "25" 2025-09-16', 'java version "1.8.0_442"', "nothing"])
def test_a_java_that_spark_does_not_run_on_is_an_error_with_what_to_install(java, says):
    """It ended in forty lines of a traceback."""
    (finding,) = check_java(java(says))
    assert finding.level == "error"
    assert "openjdk-17" in finding.hint


def test_a_missing_java_is_an_error_with_what_to_install(tmp_path):
    """On PATH, or where JAVA_HOME says."""
    for environ in ({"PATH": str(tmp_path)}, {"PATH": "", "JAVA_HOME": str(tmp_path)}):
        with pytest.raises(ConfigError, match="Spark needs Java"):
            java_of(environ)


def test_a_java_that_spark_runs_on_is_fine(java):
    """17 to 21."""
    assert levels(check_java(java('openjdk version "17.0.20" 2026-07-21'))) == ["ok"]


def lake(folder, **given):
    """A lake in SQLite and a folder."""
    settings = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder}/cat/lake.db?busy_timeout=1",
        "warehouse": f"file://{folder}/wh",
    }
    return LakeConfig(**{**settings, **given})


def test_the_folder_of_a_catalog_may_be_missing(tmp_path):
    """The first merge makes it."""
    assert levels(check_lake(lake(tmp_path))) == ["ok", "ok"]
    assert list(tmp_path.iterdir()) == []


def test_a_catalog_that_cannot_be_made_is_an_error_with_the_command(tmp_path):
    """A file is where its folder should be."""
    (tmp_path / "cat").write_text("")
    (tmp_path / "wh").write_text("")
    for finding in check_lake(lake(tmp_path)):
        assert finding.level == "error"
        assert "is not a folder" in finding.what
        assert "mkdir -p" in finding.hint


def test_a_catalog_that_is_no_database_is_an_error(tmp_path):
    """SQLite says what is wrong with it."""
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "lake.db").write_bytes(b"nonsense" * 1000)
    assert levels(check_lake(lake(tmp_path))) == ["error", "ok"]
    (tmp_path / "cat" / "lake.db").unlink()
    with closing(sqlite3.connect(tmp_path / "cat" / "lake.db")) as made:
        made.execute("CREATE TABLE t (a)")
    assert levels(check_lake(lake(tmp_path))) == ["ok", "ok"]


def test_a_catalog_that_does_not_answer_is_an_error_without_its_log_in(tmp_path):
    """Its address may hold a password."""
    uri = f"jdbc:postgresql://127.0.0.1:{free_port()}/lake?user=x&password=hunter2"
    (refused, _) = check_lake(lake(tmp_path, uri=uri))
    assert refused.level == "error"
    assert "cannot be reached" in refused.what
    assert "hunter2" not in str(refused)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        (answers, _) = check_lake(lake(tmp_path, type="rest", uri=f"http://127.0.0.1:{port}/iceberg"))
    assert answers.level == "ok"


def test_a_store_that_cannot_be_written_to_is_an_error_with_the_command(tmp_path):
    """A probe is written and deleted."""
    config = StoreConfig(url=f"file://{tmp_path}/store")
    assert levels(check_store(config, open_store(config))) == ["ok"]
    assert [
        path for path in (tmp_path / "store").rglob("[!.]*") if path.is_file() and path.parent.name != ".locks"
    ] == []
    (tmp_path / "file").write_text("")
    config = StoreConfig(url=f"file://{tmp_path}/file/store")
    (finding,) = check_store(config, open_store(config))
    assert finding.level == "error"
    assert "mkdir -p" in finding.hint


def test_patterns_without_tables_are_warnings_and_an_exact_name_is_an_error():
    """A run over them has nothing to do, and says nothing."""
    config = TablesConfig(include=("shop.orders", "shop.oders", "crm.*", "/^shop[.]o/"))
    findings = list(pattern_findings(config, [("shop", "orders")]))
    assert [(one.level, one.what.split()[2]) for one in findings] == [("error", "shop.oders"), ("warning", "crm.*")]


def test_tables_without_a_key_are_reported_unless_their_mode_is_append():
    """Their rows are not mirrored."""
    (finding,) = key_findings(["s.a", "s.b"], ["s.b"])
    assert finding.level == "warning"
    assert "s.a" in finding.what
    assert "s.b" not in finding.what
    assert not list(key_findings(["s.b"], ["s.b"]))


def test_a_check_that_does_not_end_or_fails_hides_no_other():
    """And the order is that of the checks."""
    forever = threading.Event()

    def fails():
        raise SourceUnavailable("no answer", hint="Look.", port=3306)

    findings = side_by_side(
        {
            "one": lambda: [Finding("ok", "1")],
            "two": lambda: [str(forever.wait())],
            "three": fails,
            "four": list,
            "five": lambda: [1 // 0],
        },
        0.2,
    )
    assert [one.level for one in findings] == ["ok", "error", "error", "error"]
    assert "two could not be looked at within" in findings[1].what
    assert findings[2].what == "no answer [port=3306]"
    assert "ZeroDivisionError" in findings[3].what
    forever.set()

"""The commands of README, quickstart and guides run in their order, against real servers with sources like those of the pages."""

from __future__ import annotations

import contextlib
import re
import time
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from cdc_lib.lake.catalog import sqlalchemy_url
from tests.harness.docs.pages import ROOT, blocks, shell_lines
from tests.harness.servers.replication import replicated
from tests.harness.shop.source import Shop, command_line, over_the_running_spark

GUIDES = ("snapshots", "verify-repair", "backfill", "consumers", "maintenance", "monitoring", "reading", "failover")
"""Guides with commands, in the order of their run; the failover is last, because it leaves the first server."""
NOT_HERE = (
    "pip ",
    "docker ",
    "kubectl ",
    "helm ",
    "cp ",
    "airflow ",
    "./dev demo",
    "./dev test",
    "./dev setup",
    "./dev audit",
    "./dev sbom",
    "./dev cdc --help",
    "cdc init",  # asks: test_first_source.py
    "python3 -m venv /opt/lakecdc",
    "/opt/lakecdc/bin/pip ",
    "CDC_SOURCES=/opt/airflow/sources /opt/lakecdc/bin/cdc ",
    "cdc lake find ",  # ends with 1 where it finds something: test_find.py
    "cdc lake erase ",  # test_erase.py
    "cdc spark ",
    "cdc doctor shop --spark",
    "cdc schema ",  # needs a table that waits: test_schema_changes.py
    "CDC_SPARK_TOKEN=",
    "HADOOP_CONF_DIR=",
)
"""Lines that install or start something else; a unit test reads them, and ``./dev demo`` and the tests of Airflow and of the Spark server run
some."""


def page(name):
    return (ROOT / name).read_text()


def lines_of(name):
    """Return the ``cdc`` commands of a page, in their order."""
    lines = [line for line in shell_lines(page(name)) if not line.startswith(NOT_HERE)]
    commands = [line.removeprefix("./dev ") for line in lines]
    assert all(line.startswith("cdc ") for line in commands)
    return commands


def test_every_page_with_commands_is_run():
    """Fails for a new guide with commands; docs/operations.md has its own tests."""
    names = [path.stem for path in (ROOT / "docs" / "guides").glob("*.md") if lines_of(f"docs/guides/{path.name}")]
    assert sorted(names) == sorted(GUIDES)
    assert len(lines_of("README.md")) == len(lines_of("docs/quickstart.md")) == 4


@pytest.fixture
def billing(request, tmp_path, lake, monkeypatch):
    """Make the source ``billing`` as a page shows it, with the user of the guide; returns its server and commands."""
    with contextlib.ExitStack() as stack:

        def _billing(name, flavor):
            server = request.getfixturevalue(f"{flavor}_server")
            setup = blocks(page("docs/guides/mysql-setup.md"), "sql")[("mysql", "mariadb").index(flavor)]
            for statement in re.findall(r"^(.+?);", setup, flags=re.MULTILINE):
                server.execute(statement.replace("cdc@", "billing@"))  # the tests' servers have a user cdc
            stack.callback(server.execute, "DROP USER billing@'%'")
            server.execute("CREATE DATABASE billing")
            stack.callback(server.execute, "DROP DATABASE billing")
            (shown,) = blocks(page(name), "yaml")[:1]
            source = yaml.safe_load(shown) | {
                "store": {"url": f"file://{tmp_path}/store"},
                "lake": lake.config.lake.model_dump(mode="json"),
                "verify": {"wait": "0s"},
            }
            source["server"] |= {"host": server.host, "port": server.port, "user": "billing"}
            (tmp_path / "sources").mkdir()
            (tmp_path / "sources" / "billing.yaml").write_text(yaml.safe_dump(source))
            monkeypatch.setenv("BILLING_PASSWORD", "...")
            monkeypatch.setenv("BILLING_MASK_KEY", "a long random text that is hard to guess")
            over_the_running_spark(monkeypatch, lake)
            return server

        yield _billing


@pytest.mark.parametrize(("name", "flavor"), [("README.md", "mysql"), ("docs/quickstart.md", "mariadb")])
def test_a_source_is_added_and_merged_by_the_commands_of_the_page(name, flavor, billing, tmp_path, lake):
    """The user has only the grants of the guide; the README has masked and historized tables."""
    server = billing(name, flavor)
    for statement in (
        "CREATE TABLE customers (id INT PRIMARY KEY, mail VARCHAR(40))",
        "CREATE TABLE prices (id INT PRIMARY KEY, price DECIMAL(9, 2))",
        "CREATE TABLE invoices (id INT PRIMARY KEY, total DECIMAL(9, 2))",
        "INSERT INTO customers VALUES (1, 'ada@example.com')",
        "INSERT INTO prices VALUES (1, 9.50)",
        "INSERT INTO invoices VALUES (1, 9.50), (2, 19.00)",
    ):
        server.execute(statement, database="billing")
    for number in range(3):  # a snapshot first, then changes of the binlog
        if number:
            server.execute("UPDATE invoices SET total = total + 1 WHERE id = 1", database="billing")
            server.execute("UPDATE prices SET price = 10", database="billing")
        for line in lines_of(name):
            command_line(tmp_path / "sources", line)
    expected = sorted(server.execute("SELECT * FROM invoices", database="billing"), key=repr)
    assert lake.rows("billing.invoices", "id", "total") == expected
    ((mail,),) = lake.rows("billing.customers", "mail")
    assert ("@" in mail) is (name != "README.md")
    assert len(lake.rows("billing.prices", "price")) == (2 if name == "README.md" else 1)


@pytest.fixture
def shop_with_standby(tmp_path, lake, monkeypatch):
    """The source ``shop`` of the guides: orders with a state, lines with a key of two columns, and a standby."""
    with replicated("mysql with GTIDs") as pair:
        pair.primary.execute("CREATE DATABASE seen")
        pair.primary.execute("CREATE TABLE seen.t (id INT PRIMARY KEY, v INT)")
        pair.primary.execute("CREATE DATABASE shop")
        monkeypatch.setenv("WAYS_PASSWORD", pair.primary.cdc_password)
        over_the_running_spark(monkeypatch, lake)
        shop = Shop(pair.primary, "shop", tmp_path, lake)
        shop.execute("ALTER TABLE orders ADD state VARCHAR(9) NOT NULL DEFAULT 'new'")
        shop.execute(
            "ALTER TABLE `lines` ADD line INT NOT NULL DEFAULT 1, DROP PRIMARY KEY, ADD PRIMARY KEY (id, line)"
        )
        shop.execute("INSERT INTO orders (id, v, n) VALUES (42, 'a', 1), (500, 'a', 1), (599, 'b', 1), (600, 'c', 1)")
        shop.execute("INSERT INTO `lines` (id, v, n) VALUES (5000, 'a', 1), (5999, 'b', 1), (6000, 'c', 1)")
        standby = {"host": pair.standby.host, "port": pair.standby.port}
        proof = {**shop.settings["verify"], "cover_every": "7d", "daily_windows": 2}
        shop.write(standbys=[standby], raw_archive=True, verify=proof)
        (tmp_path / "dags").mkdir()
        (tmp_path / "dags" / "sources").symlink_to(tmp_path / "sources")
        monkeypatch.chdir(tmp_path)  # the guides' files are written where the commands run
        yield shop, pair


def filled_in(line, shop, pair, since):
    """Fill this test's times, folders and servers into a line of a page; an endless command gets an end."""
    for shown, here in {
        "2026-11-20T00:00:00Z": since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "2026-11-21T00:00:00Z": (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "file:///data/again": f"file://{shop.folder}/again",
        "s3://bucket/again": f"file://{shop.folder}/archive",
        "db2.example.com:3306": f"{pair.standby.host}:{pair.standby.port}",
        "sqlite:////data/catalog.db": sqlalchemy_url(shop.lake.config.lake.uri),
        "file:///data/lake": shop.lake.config.lake.warehouse,
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:77": f"{shop.execute('SELECT @@server_uuid')[0][0]}:1",
        " --follow": "",
    }.items():
        line = line.replace(shown, here)
    return line


def check_what_was_read(names, shop):
    """Compare what the Python code of the reading guide leaves."""
    if "catalog" in names:
        assert names["orders"].num_rows == 1
    elif "totals" in names:
        assert names["totals"] == [{"n": shop.execute("SELECT count(*) FROM orders")[0][0]}]
    elif "cells" in names:
        assert names["row"] == {b"d:state": names["cells"][b"d:state"]} == {b"d:state": b"new"}
    elif "found" in names:  # earlier versions
        found = names["found"].rows.to_pylist()
        assert found[0]["n"] == shop.execute("SELECT n FROM orders WHERE id = 42")[0][0]
    elif "row" not in names:  # what is verified of a cut
        assert (names["one"].where, names["one"].wrong) == ("at", 0)
    elif "many" not in names:  # a fresh read
        assert names["row"]["n"] == shop.execute("SELECT n FROM orders WHERE id = 42")[0][0]
    else:
        assert names["state"] == {"state": names["row"]["state"]} != {"state": None}
        assert names["many"]["_found"].to_pylist() == [True, False, True]


def test_the_commands_of_the_guides_run_in_their_order(shop_with_standby, capsys):
    """Each exits with 0, the Python code between them runs too, and the tables equal those of the new server at the end."""
    shop, pair = shop_with_standby
    shop.runs(2)
    shop.execute("UPDATE orders SET n = n + 1 WHERE id = 42")  # a cut of the binlog, before the guides' times
    shop.runs(1)
    time.sleep(1.1)
    since = datetime.now(UTC)
    shop.change(1)
    shop.runs(1)
    outputs = {}
    for guide in GUIDES:
        name = f"docs/guides/{guide}.md"
        for code in blocks(page(name), "python"):
            names = {}
            exec(filled_in(code, shop, pair, since), names)  # noqa: S102 - the page's own code
            if guide == "reading":
                check_what_was_read(names, shop)
        for line in lines_of(name):
            if line.startswith("cdc snapshot") and "--cancel" not in line:
                shop.runs(2)  # one snapshot of each table at a time
            if guide == "failover" and "cursor" in line:
                pair.wait("seen.t")
            if line.startswith("cdc serve"):
                continue  # it does not end: tests/unit/cli/test_serve.py
            outputs[line] = shop.cdc(filled_in(line, shop, pair, since))
        if guide != "failover":
            shop.runs(2)
            shop.assert_equal()
    assert "shop.orders" in capsys.readouterr().out + outputs["cdc tail shop --consumer pipe"]
    assert "by GTIDs" in " ".join(outputs["cdc status shop"].split())
    pair.release()
    shop.server = pair.standby
    for number in (2, 3):
        shop.change(number)
        shop.runs(1)
    shop.assert_equal()
    assert (shop.folder / "orders.html").exists()

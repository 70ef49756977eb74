"""The demo's own small parts; the demo as a whole is run by ``./dev demo``."""

from __future__ import annotations

import stat
from pathlib import Path
from random import Random

import pytest

from cdc_lib.config import load_source
from cdc_lib.jobs.request import JobName, JobStatus
from demo import paths, server
from demo.paths import DemoError, State
from demo.progress import Figures
from demo.shop.seed import FIRST_CROSSING_ORDER, Sizes
from demo.shop.values import Values
from demo.spark import DemoSparkServer, described


def test_the_users_server_is_read_from_its_address() -> None:
    """Characters that an address cannot hold are written as %XX."""
    assert server.parse("mysql://me:p%40ss@db.example:3307") == {
        "host": "db.example",
        "port": 3307,
        "user": "me",
        "password": "p@ss",
    }
    assert server.parse("mariadb://root@localhost/")["port"] == 3306


@pytest.mark.parametrize("url", ["", "db.example", "postgres://me@db", "mysql://db.example", "mysql:///x"])
def test_an_invalid_address_is_refused_with_an_example(url: str) -> None:
    """The message shows how one looks."""
    with pytest.raises(DemoError, match="mysql://user:password@host:3306"):
        server.parse(url)


def test_the_demos_environment_makes_the_shipped_source_file_whole() -> None:
    """Every variable that it needs is there, and all data lies below the demo's own folder."""
    environment = paths.source_environment("127.0.0.1", 4711, "cdc", "secret")
    config = load_source(paths.SOURCE_FILE, environment)
    assert (config.server.host, config.server.port, config.server.user) == ("127.0.0.1", 4711, "cdc")
    assert str(paths.HOME) in config.store.url
    assert config.lake.uri is not None
    assert str(paths.HOME) in config.lake.uri
    assert config.lake.warehouse == f"file://{paths.LAKE}"
    assert config.schedule == "* * * * *"
    assert config.merge.spark_server is None


def test_the_tasks_of_the_demo_find_its_spark_server_and_the_token() -> None:
    """Airflow and its tasks have the variables of the demo's process."""
    spark = DemoSparkServer()
    environment = paths.source_environment("127.0.0.1", 4711, "cdc", "secret", spark.environment)
    server = load_source(paths.SOURCE_FILE, environment).merge.spark_server
    assert server is not None
    assert server.url == spark.url
    assert server.token_env is not None
    assert len(environment[server.token_env]) > 20
    assert DemoSparkServer().url != spark.url


def test_a_demo_whose_merges_ran_elsewhere_fails() -> None:
    """Other jobs do not count, nor do merges that failed."""

    def job(name: JobName, exit_code: int, seconds: float = 1) -> JobStatus:
        return JobStatus(id="a", key="k", job=name, source="shop", state="ended", exit_code=exit_code, seconds=seconds)

    others = [job("verify", 0), job("merge", 75)]
    with pytest.raises(DemoError, match="no merge ran on the Spark server: CDC_SPARK_SERVER"):
        described(others)
    assert described([*others, job("merge", 0, 3), job("merge", 0, 2)]).startswith("2 of 3 merges succeeded")


def test_what_holds_a_password_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Also when the file was there before with other rights."""
    file = tmp_path / "env"
    file.write_text("")
    file.chmod(0o644)
    paths.write_private(file, "secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert State().password not in repr(State())


def test_the_shop_has_about_as_many_rows_as_asked_for_and_none_empty() -> None:
    """Shares of the tables, and order ids on both sides of the signed range's end."""
    sizes = Sizes.of(200_000)
    assert abs(sum(vars(sizes).values()) - 200_000) < 100
    assert min(vars(Sizes.of(10)).values()) >= 12
    assert sizes.first_order < FIRST_CROSSING_ORDER < sizes.first_order + sizes.orders


def test_the_same_seed_draws_the_same_values() -> None:
    """So that a difference that was found can be found again."""

    def draw() -> list[object]:
        values = Values(Random(3))
        return [
            (values.name(), values.document(), values.money(12, 2), values.blob(9), values.day()) for _ in range(50)
        ]

    assert draw() == draw()
    assert draw()[0] != draw()[1]


def test_the_line_of_figures_says_what_is_not_known_yet() -> None:
    """Before the first cut there is no lag to tell."""
    assert "lag -" in Figures("waiting").line()
    assert "lag 3 s" in Figures("waiting", lag=3.2).line()

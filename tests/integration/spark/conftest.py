"""Fixtures of the tests on Spark: a lake for each test in one running Spark, and the choice of cases that run by default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.running import Lake, empty_catalog

HERE = Path(__file__).parent

ON_BOTH_KINDS = {
    "test_cascades.py",
    "test_failover.py",
    "test_least_privilege.py",
    "test_operations_clocks.py",
    "test_operations_retention.py",
    "test_sakila.py",
    "test_short_years.py",
}
"""Modules about what the two flavors do differently: each test runs on both. Any other test runs on one of them, alternating."""


EACH_COMMIT = {
    "test_full_disk.py",
    "test_merge_laws.py",
    "test_merge_twice.py",
    "test_modes_of_a_source.py",
    "test_other_keys.py",
    "test_quarantine.py",
    "test_short_years.py",
    "test_table_resets.py",
    "test_whole_run.py",
}
"""Modules of what every merge does: all of their tests run with each commit."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases that do not run by default, and ignore the warnings of sockets that pyspark leaves to the garbage collector."""
    mine = [item for item in items if item.path.is_relative_to(HERE)]
    for item in mine:
        item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
        if item.path.name in EACH_COMMIT:
            item.add_marker(pytest.mark.turns(1))
    for item, marker in _other_cases(mine):
        item.add_marker(marker)


def _other_cases(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.MarkDecorator]]:
    """Yield all cases of each test but the first on MySQL or the last on MariaDB, which also differ in other parameters.

    Every case would take Spark an hour. Of :data:`ON_BOTH_KINDS` one case on each flavor runs by default.
    """
    cases: dict[tuple[Path, str], dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        flavor = next((flavor for flavor in ("mysql", "mariadb") if flavor in item.name.partition("[")[2]), None)
        if flavor is not None:
            cases[item.path, item.name.partition("[")[0]][flavor].append(item)
    for number, ((path, _), by_flavor) in enumerate(cases.items()):
        yield from ((item, pytest.mark.slow) for item in (*by_flavor["mysql"][1:], *by_flavor["mariadb"][:-1]))
        if path.name not in ON_BOTH_KINDS and len(by_flavor) > 1:
            yield (by_flavor["mysql"][0] if number % 2 else by_flavor["mariadb"][-1]), pytest.mark.other_kind


@pytest.fixture(autouse=True)
def _catalog_is_emptied(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove a test's tables from the shared catalog: a damaged table would make maintenance fail."""
    if "spark_lake" not in request.fixturenames:
        yield
        return
    _, config = request.getfixturevalue("spark_lake")
    yield
    empty_catalog(config)


@pytest.fixture
def lake(spark_lake, tmp_path: Path) -> Lake:
    """A lake in the running Spark, with an empty store and a unique database name."""
    spark, config = spark_lake
    return Lake(spark, config, LocalStore(tmp_path / "store"))

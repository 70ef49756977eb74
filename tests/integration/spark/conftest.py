"""What the tests of the merge have in common: a lake each in one running Spark, and which cases run by default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake import Lake, empty_catalog

HERE = Path(__file__).parent

ON_ONE_KIND = {
    "test_list_of_changes.py",
    "test_merge_xa.py",
    "test_modes_of_a_source.py",
    "test_online_schema_change.py",
    "test_partial_snapshots.py",
    "test_partitions.py",
    "test_quarantine.py",
    "test_renamed_columns.py",
    "test_reselect.py",
    "test_row_images.py",
    "test_resnapshot.py",
}
"""Modules whose tests ask the same of the lake whichever kind of server the rows come from: each runs on one, by turns."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and let pyspark leave the socket of every collect to the garbage collector."""
    mine = [item for item in items if item.path.is_relative_to(HERE)]
    for item in mine:
        item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
    for item in _more_of_the_same(mine):
        item.add_marker(pytest.mark.slow)


def _more_of_the_same(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield all but one case on MySQL and one on MariaDB of each test: the first and the last, which differ in the rest too.

    Every case would take Spark an hour; ``-m slow`` runs the others. Of :data:`ON_ONE_KIND` it is one case of each test.
    """
    cases: dict[tuple[Path, str], dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        flavor = next((flavor for flavor in ("mysql", "mariadb") if flavor in item.name.partition("[")[2]), None)
        if flavor is not None:
            cases[item.path, item.name.partition("[")[0]][flavor].append(item)
    for number, ((path, _), by_flavor) in enumerate(cases.items()):
        yield from by_flavor["mysql"][1:]
        yield from by_flavor["mariadb"][:-1]
        if path.name in ON_ONE_KIND and len(by_flavor) > 1:
            yield from by_flavor["mysql"][:1] if number % 2 else by_flavor["mariadb"][-1:]


@pytest.fixture(autouse=True)
def _catalog_is_emptied(request: pytest.FixtureRequest) -> Iterator[None]:
    """Take a test's tables out of the catalog that all share: a damaged one would stand in the way of maintenance."""
    if "spark_lake" not in request.fixturenames:
        yield
        return
    _, config = request.getfixturevalue("spark_lake")
    yield
    empty_catalog(config)


@pytest.fixture
def lake(spark_lake, tmp_path: Path) -> Lake:
    """A lake of its own in the running Spark: an empty store, and a database name that nobody else has."""
    spark, config = spark_lake
    return Lake(spark, config, LocalStore(tmp_path / "store"))

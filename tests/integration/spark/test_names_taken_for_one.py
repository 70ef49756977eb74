"""Names of columns that Spark or Iceberg takes for one: what the drain decides is what they do."""

from __future__ import annotations

import sys

import pytest

from cdc_lib.model.spark_names import clash
from cdc_lib.status.overview import status_of
from tests.harness.lake.ddl_source import Followed

SIGMA, FINAL = "\u03c3", "\u03c2"
PAIRS = [
    (SIGMA, FINAL), ("\u212a", "k"), ("\u0130", "i"), ("\u0131", "i"), ("\u0130", "i\u0307"), ("\u017f", "s"), ("\u1e9e", "\u00df"),
    ("\u00b5", "\u03bc"), ("\u01c6", "\u01c5"), ("\U00010400", "\U00010428"), ("\u0391\u03a3", "\u03b1\u03c3"), ("a\u0345", "A\u03b9"),
    ("\u00df", "ss"), ("\u00e9", "e"), ("\ufb00", "ff"), ("\u212b", "a"),
]  # fmt: skip


def test_a_merge_into_columns_fails_exactly_where_their_names_clash(lake):
    """Over a real table, which has both columns."""
    session, name = lake.spark, f"lake.{lake.database}.pair"
    session.sql(f"CREATE NAMESPACE lake.{lake.database}")
    for one, two in PAIRS:
        fails = False
        try:
            session.sql(f"CREATE TABLE {name} (id INT) USING iceberg")
            session.sql(f"ALTER TABLE {name} ADD COLUMN `{one}` INT")
            session.sql(f"ALTER TABLE {name} ADD COLUMN `{two}` INT")
            session.sql(
                f"MERGE INTO {name} t USING (SELECT 1 AS id, 2 AS `{one}`, 3 AS `{two}`) s ON t.id = s.id "
                f"WHEN MATCHED THEN UPDATE SET t.`{one}` = s.`{one}`, t.`{two}` = s.`{two}` WHEN NOT MATCHED THEN INSERT *"
            )
        except Exception:  # noqa: BLE001 - each pair fails with another class, of Spark, of Iceberg or of Java
            fails = True
        session.sql(f"DROP TABLE IF EXISTS {name}")
        assert (clash([one, two]) is not None) == fails, (one, two)


def test_every_letter_is_compared_as_spark_and_java_compare_it(lake):
    """Letters that have a case, each with those that Python maps it to, as whole names."""
    resolve = lake.spark._jsparkSession.sessionState().conf().resolver().apply
    forms = {
        (letter, other)
        for letter in map(chr, range(sys.maxunicode + 1))
        for other in {letter.lower(), letter.upper(), letter.title(), letter.casefold(), letter.upper().lower()}
        if other != letter
    }
    assert len(forms) > 2_500
    different = [(one, two) for one, two in forms if (clash([one, two]) is None) == resolve(one, two)]
    assert all(one.lower() == two.lower() for one, two in different), different


@pytest.mark.parametrize("drops", [False, True])
def test_a_column_may_take_a_name_that_spark_takes_for_its_former_one(any_server, database, tmp_path, lake, drops):
    """By a rename; or after it was dropped, when the lake still has the former column."""
    source = Followed(any_server, database, tmp_path, lake, on_error="quarantine")
    source.run(f"CREATE TABLE t (id INT PRIMARY KEY, `{SIGMA}` INT)", "INSERT INTO t VALUES (1, 1)")
    source.round()
    if drops:
        source.run(
            f"ALTER TABLE t DROP COLUMN `{SIGMA}`", "INSERT INTO t VALUES (2)", f"ALTER TABLE t ADD `{FINAL}` INT"
        )
    else:
        source.run("INSERT INTO t VALUES (2, 2)", f"ALTER TABLE t CHANGE `{SIGMA}` `{FINAL}` INT")
    source.run("INSERT INTO t VALUES (3, 3)")
    for _ in range(2):
        source.round()
    source.assert_equal("t")
    assert not status_of(source.capture.pipeline).drain.quarantined_tables


def test_the_default_of_an_added_column_goes_into_no_other_one(any_server, database, tmp_path, lake):
    """Before any row has both, the lake table has only the column whose name Spark takes for that of the new one."""
    sharp, capital = "\u00df", "\u1e9e"
    source = Followed(any_server, database, tmp_path, lake, on_error="quarantine")
    source.run(f"CREATE TABLE t (id INT PRIMARY KEY, `{capital}` INT)", "INSERT INTO t VALUES (1, 1)")
    source.run("CREATE TABLE u (id INT PRIMARY KEY)")
    source.round()
    source.run(f"ALTER TABLE t ADD `{sharp}` INT DEFAULT 7", "INSERT INTO u VALUES (1)")
    source.round()
    source.round()
    assert source.lake_rows("t", "id", capital) == [(1, 1)]
    source.assert_equal("u")
    (quarantined,) = status_of(source.capture.pipeline).drain.quarantined_tables
    assert f"columns {capital} and {sharp} have names that Spark takes for one" in quarantined.fault.reason

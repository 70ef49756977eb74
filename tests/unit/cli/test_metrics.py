"""``cdc metrics`` without a server: what the store knows, and a source that cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cdc_lib.merge.cut import make_cut
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import at


def samples(text):
    """Values by name and source."""
    families = text_string_to_metric_families(text)
    return {(one.name, one.labels["source"]): one.value for family in families for one in family.samples}


def test_a_source_whose_server_is_away_has_the_figures_of_its_store(cdc, tmp_path):
    """What only the server knows is left out."""
    now, table = datetime.now(UTC), TableCut(TableName("shop", "orders"), "lake.shop.orders", 1, 1)
    publish(
        LocalStore(tmp_path / "store"),
        make_cut(MergePlan("shop", 1, "m", at(4), at(4), ()), [], [table], None, now, 1.5),
    )
    result = cdc("metrics", "shop")
    assert result.exit_code == 0
    found = samples(result.stdout)
    assert found["cdc_source_up", "shop"] == 1
    assert found["cdc_last_merge_seconds", "shop"] == 1.5
    assert ("cdc_lag_bytes", "shop") not in found
    assert ("cdc_binlog_retention_left_seconds", "shop") not in found


def test_a_wrong_source_file_is_down_and_hides_no_other(cdc, sources):
    """The text is whole, the error is on the error stream, and the exit status says so."""
    (sources / "wrong.yaml").write_text("server: {prot: 1}\n")
    result = cdc("metrics")
    assert result.exit_code == 2
    assert samples(result.stdout) == {("cdc_source_up", "shop"): 1, ("cdc_source_up", "wrong"): 0}
    assert "server.prot" in result.stderr


def test_a_source_that_there_is_not_is_named(cdc):
    result = cdc("metrics", "shop", "nothing")
    assert result.exit_code == 2
    assert "nothing" in result.stderr
    assert result.stdout == ""

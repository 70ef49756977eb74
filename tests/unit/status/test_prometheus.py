"""The text for Prometheus, read back with the parser of its own client."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_classic

from cdc_lib.model.table_name import TableName
from cdc_lib.status.holdings import Holdings
from cdc_lib.status.prometheus import FAMILIES, OPENMETRICS, UP, Exposition, scraped
from tests.harness.airflow.page_source import known_source
from tests.harness.lake.running import lake_config

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOSTILE = TableName('a"} 1\ncdc_lag_seconds{source="x', "\\\n{},=é'`")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The figures of a source of which everything is known."""
    return scraped(known_source(tmp_path_factory.mktemp("shop"), NOW, HOSTILE))


def samples(text):
    """Values by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            key = (one.name, tuple(sorted(one.labels.items())))
            assert key not in found
            found[key] = one.value
    return found


def test_every_figure_has_a_sample_and_hostile_names_stay_labels(shop):
    """A table's name cannot end its label, a line or the text."""
    text = Exposition([shop]).text()
    assert text.endswith("# EOF\n")
    found = samples(text)
    assert {name for name, _ in found} == {UP, *(family.sample for family in FAMILIES)}
    rows = {dict(labels)["op"]: value for (name, labels), value in found.items() if name == "cdc_rows_merged_total"}
    assert rows == {"c": 0, "u": 180, "d": 0, "r": 0}
    tables = {dict(labels)["table"] for _, labels in found if "table" in dict(labels)}
    assert tables == {str(HOSTILE)}
    of_source = {name: value for (name, labels), value in found.items() if labels == (("source", "shop"),)}
    assert of_source == {
        UP: 1,
        "cdc_lag_seconds": 660,
        "cdc_lag_bytes": 2000,
        "cdc_catch_up_seconds": 40,
        "cdc_epoch": 1,
        "cdc_windows_in_flight": 0,
        "cdc_windows_pending": 1,
        "cdc_snapshots_pending": 0,
        "cdc_binlog_retention_left_seconds": 7140,
        "cdc_server_seen_age_seconds": 60,
        "cdc_quarantined_tables": 1,
        "cdc_stopped_lake_tables": 0,
        "cdc_cut_age_seconds": 660,
        "cdc_last_merge_seconds": 4,
        "cdc_last_drain_seconds": 0.5,
        "cdc_verify_interval_seconds": 86400,
        "cdc_merges_total": 5,
        "cdc_windows_merged_total": 9,
        "cdc_snapshot_chunks_merged_total": 3,
        "cdc_merge_seconds_total": 20.5,
        "cdc_cover_period_seconds": 7 * 86400,
    }
    assert [key for key in found if key[0] == "cdc_lag_seconds"] == [("cdc_lag_seconds", (("source", "shop"),))]


def test_what_is_not_known_is_left_out_and_never_zero(tmp_path):
    """A source before its first plan has but the sample that says that it can be read."""
    new = scraped(Holdings(lake_config(tmp_path, source="new"), NOW))
    assert samples(Exposition([new]).text()) == {(UP, (("source", "new"),)): 1}


def test_a_source_that_cannot_be_read_is_down_and_keeps_the_others(shop):
    found = samples(Exposition([shop], ("broken",)).text())
    assert found[UP, (("source", "broken"),)] == 0
    assert found[UP, (("source", "shop"),)] == 1


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{OPENMETRICS};version=1.0.0,text/plain;q=0.5", OPENMETRICS),
        ("text/plain", "text/plain"),
        ("", "text/plain"),
        (f"{OPENMETRICS}; version=1\r\nX-Evil: 1; escaping=dots", OPENMETRICS),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(shop, accept, kind):
    """Nothing of the request comes back in the header of the answer."""
    text, content_type = Exposition([shop]).negotiated(accept)
    assert content_type.startswith(kind)
    assert "\n" not in content_type
    assert "dots" not in content_type
    if kind == OPENMETRICS:
        assert samples(text.decode()) == samples(Exposition([shop]).text())
    else:
        assert "cdc_rows_merged" in {family.name for family in parse_classic(text.decode())}

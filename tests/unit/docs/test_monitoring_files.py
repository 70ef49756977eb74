"""The dashboard and the alert rules name nothing that the endpoint does not give, and its page lists all that it gives."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cdc_lib.model.table_name import TableName
from cdc_lib.status.prometheus import FAMILIES, UP, Exposition, Scraped, scraped
from tests.harness.airflow.page_source import known_source
from tests.harness.docs.promql import NotEvaluated, labels_of, metrics_in, selected, shown_in, unknown_in

DOCS = Path(__file__).parents[3] / "docs"
ALERTS = yaml.safe_load((DOCS / "monitoring/alerts.yaml").read_text())
DASHBOARD = json.loads((DOCS / "monitoring/grafana-dashboard.json").read_text())
RULES = {rule["alert"]: rule for group in ALERTS["groups"] for rule in group["rules"]}
TARGETS = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
TABLE = TableName("shop", "orders")


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The labels of every metric, from the text that a source gives of which everything is known."""
    full = scraped(known_source(tmp_path_factory.mktemp("shop"), datetime(2026, 11, 20, 12, tzinfo=UTC), TABLE))
    families = text_string_to_metric_families(Exposition([full]).text())
    return labels_of((one.name, one.labels) for family in families for one in family.samples)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_names_only_metrics_and_labels_that_there_are(known, name):
    """A rule over a name that was changed would never fire, and nobody would know."""
    rule = RULES[name]
    assert unknown_in(rule["expr"], known) == []
    metrics = metrics_in(rule["expr"])
    assert metrics
    assert rule["labels"]["severity"] in ("warning", "critical")
    texts = " ".join(rule["annotations"].values())
    assert shown_in(texts) <= set.union(*(known[metric] for metric in metrics))


@pytest.mark.parametrize("target", TARGETS, ids=[target["expr"] for target in TARGETS])
def test_a_panel_names_only_metrics_and_labels_that_there_are(known, target):
    assert unknown_in(target["expr"], known) == []
    metrics = metrics_in(target["expr"])
    assert metrics
    assert shown_in(target["legendFormat"]) <= set.union(*(known[metric] for metric in metrics))


def test_a_wrong_name_or_label_is_found(known):
    """What holds the files could fail."""
    assert unknown_in('rate(cdc_rows_total{source="a"}[5m])', known) == ["cdc_rows_total"]
    assert unknown_in('cdc_lag_seconds{table="}cdc_x{"}', known) == ["cdc_lag_seconds{table}"]
    assert unknown_in("sum by (source, lake) (cdc_bytes_merged_total)", known) == ["lake"]
    assert unknown_in('sum by (source) (cdc_bytes_merged_total{lake_table=~"a|b"})', known) == []


OF_SOURCE = {
    "cdc_lag_seconds": 20.0, "cdc_lag_bytes": 1, "cdc_catch_up_seconds": 600.0, "cdc_epoch": 1, "cdc_windows_in_flight": 0,
    "cdc_windows_pending": 0, "cdc_snapshots_pending": 0, "cdc_binlog_retention_left_seconds": 7 * 86400.0,
    "cdc_server_seen_age_seconds": 30.0, "cdc_quarantined_tables": 0, "cdc_stopped_lake_tables": 0, "cdc_cut_age_seconds": 60.0,
    "cdc_last_merge_seconds": 9.0, "cdc_last_drain_seconds": 2.0, "cdc_verify_interval_seconds": 86400.0, "cdc_merges": 1,
    "cdc_windows_merged": 1, "cdc_snapshot_chunks_merged": 1, "cdc_merge_seconds": 1.0, "cdc_cover_period_seconds": 7 * 86400.0,
}  # fmt: skip
OF_TABLE = {"cdc_table_lag_seconds": 20.0, "cdc_table_quarantined": 0}
OF_LAKE_TABLE = {
    "cdc_bytes_merged": 1, "cdc_verified_age_seconds": 3600.0, "cdc_verify_drift_rows": 0, "cdc_covered_ratio": 1.0,
    "cdc_covered_age_seconds": 3 * 86400.0, "cdc_covered_wrong_rows": 0,
}  # fmt: skip
LAKE_TABLE = {"table": TABLE, "lake_table": "lake.shop.orders"}


def of(source="shop", **changed):
    """Return a scrape of a source in which nothing is wrong, but for some metrics."""
    labels = dict.fromkeys(OF_LAKE_TABLE, LAKE_TABLE) | {name: {"table": TABLE} for name in OF_TABLE}
    values = {**OF_SOURCE, **OF_TABLE, **OF_LAKE_TABLE, **changed}
    samples = {name: [(labels.get(name, {}), value)] for name, value in values.items()}
    samples["cdc_rows_merged"] = [({**LAKE_TABLE, "op": op}, 1) for op in "cudr"]
    samples["cdc_task_retries"] = [({"task_id": "drain"}, 2)]
    return Scraped(source, samples)


HEALTHY, OTHER = of(), of("other")


def shop_with(**changed):
    return Exposition([of(**changed), OTHER])


def test_the_scrapes_of_these_tests_have_the_metrics_and_labels_of_real_ones(known):
    families = text_string_to_metric_families(Exposition([HEALTHY]).text())
    assert labels_of((one.name, one.labels) for family in families for one in family.samples) == known


ILL = {
    "CdcSourceDown": Exposition([OTHER], ["shop"]),
    "CdcMetricsMissing": Exposition([]),
    "CdcSourceStuck": shop_with(cdc_lag_seconds=3600.0),
    "CdcLagUnknown": shop_with(cdc_lag_seconds=None),
    "CdcServerNotSeen": shop_with(cdc_server_seen_age_seconds=7200.0),
    "CdcBinlogRetentionShort": shop_with(cdc_binlog_retention_left_seconds=3600.0),
    "CdcBacklogTooLong": shop_with(cdc_binlog_retention_left_seconds=2 * 86400.0, cdc_catch_up_seconds=86400.0),
    "CdcTableQuarantined": shop_with(cdc_table_quarantined=1),
    "CdcLakeTableStopped": shop_with(cdc_stopped_lake_tables=1),
    "CdcVerifyOverdue": shop_with(cdc_verified_age_seconds=3 * 86400.0),
    "CdcNeverVerified": shop_with(cdc_verified_age_seconds=None),
    "CdcVerifyFoundDrift": shop_with(cdc_verify_drift_rows=3),
    "CdcCoverageOverdue": shop_with(cdc_covered_ratio=0.9, cdc_covered_age_seconds=8 * 86400.0),
    "CdcCoverageFoundWrongRows": shop_with(cdc_covered_wrong_rows=2),
    "CdcCutOld": shop_with(cdc_cut_age_seconds=2000.0, cdc_lag_seconds=1000.0),
}
"""For each rule, a scrape in which the source ``shop`` is in the state that it is about, and ``other`` is healthy."""


def by_name(exposition):
    found = {}
    for family in text_string_to_metric_families(exposition.text()):
        for one in family.samples:
            found.setdefault(one.name, []).append((one.labels, one.value))
    return found


def firing(exposition):
    """Return the alerts of a scrape, and the sources that they name."""
    fired = {name: selected(rule["expr"], by_name(exposition)) for name, rule in RULES.items()}
    return {name: {labels.get("source") for labels in found} for name, found in fired.items() if found}


def test_every_rule_has_a_scrape_that_it_fires_on():
    assert ILL.keys() == RULES.keys()


@pytest.mark.parametrize("name", RULES)
def test_a_rule_fires_on_the_source_that_it_is_about_and_on_no_healthy_one(name):
    """Its expression gives a sample; how long it must do so is in the rule."""
    fired = firing(ILL[name])
    assert fired[name] == {None if name == "CdcMetricsMissing" else "shop"}
    assert set.union(*fired.values()) <= {None, "shop"}


def test_healthy_sources_fire_nothing():
    """Neither does one without changes, whose last cut is old, nor one whose tables are never compared."""
    quiet = of("quiet", cdc_cut_age_seconds=90_000.0)
    unscheduled = of("unscheduled", cdc_verify_interval_seconds=None)
    never = of("unscheduled", cdc_verify_interval_seconds=None, cdc_verified_age_seconds=None)
    assert firing(Exposition([HEALTHY, OTHER, quiet])) == {}
    assert firing(Exposition([unscheduled, OTHER])) == {}
    assert firing(Exposition([never, OTHER])) == {}


def test_a_source_that_has_not_run_for_hours_fires_whether_its_lag_is_known_or_not():
    """Its DAG is off, or its server does not answer."""
    dead = {"cdc_server_seen_age_seconds": 9000.0, "cdc_cut_age_seconds": 9000.0}
    seen = {"CdcServerNotSeen": {"shop"}, "CdcCutOld": {"shop"}}
    assert firing(shop_with(cdc_lag_seconds=9000.0, **dead)) == {**seen, "CdcSourceStuck": {"shop"}}
    assert firing(shop_with(cdc_lag_seconds=None, **dead)) == {**seen, "CdcLagUnknown": {"shop"}}


@pytest.mark.parametrize(
    "expression", ["rate(cdc_merges_total[5m])", "cdc_lag_seconds or cdc_epoch", "cdc_epoch ==", "1 > 0"]
)
def test_what_is_not_evaluated_is_an_error(expression):
    """So a new rule cannot pass without being looked at."""
    with pytest.raises(NotEvaluated):
        selected(expression, by_name(Exposition([HEALTHY])))


def test_a_comparison_that_prometheus_refuses_is_an_error():
    """Several tables match one interval, which must be said by group_left."""
    both = ({**LAKE_TABLE, "lake_table": name} for name in ("lake.shop.orders", "b"))
    two = replace(HEALTHY, samples={**HEALTHY.samples, "cdc_verified_age_seconds": [(one, 3600.0) for one in both]})
    rule = RULES["CdcVerifyOverdue"]["expr"]
    assert selected(rule, by_name(Exposition([two]))) == []
    with pytest.raises(NotEvaluated, match="several samples"):
        selected(rule.replace("group_left ()", ""), by_name(Exposition([two])))


def test_every_condition_that_needs_a_person_has_an_alert_rule():
    """Dead or stuck with the lag unknown too, retention, quarantine, comparison, cut."""
    wanted = {
        UP, "cdc_lag_seconds", "cdc_binlog_retention_left_seconds", "cdc_table_quarantined", "cdc_verified_age_seconds",
        "cdc_verify_interval_seconds", "cdc_cut_age_seconds",
    }  # fmt: skip
    assert wanted <= set.union(*(metrics_in(rule["expr"]) for rule in RULES.values()))


def test_panels_do_not_overlap_and_have_numbers_of_their_own():
    """Grafana would move them."""
    cells = [
        (column, row)
        for panel in DASHBOARD["panels"]
        for at in [panel["gridPos"]]
        for column in range(at["x"], at["x"] + at["w"])
        for row in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(column for column, _ in cells) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_page_lists_every_metric_with_its_labels(known):
    """In its table, and nothing else."""
    page = (DOCS / "guides/monitoring.md").read_text()
    rows = re.findall(r"^\| `(cdc_\w+)` \| ([^|]*) \|", page, re.MULTILINE)
    listed = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    assert listed == known
    assert set(listed) == {UP, *(family.sample for family in FAMILIES)}

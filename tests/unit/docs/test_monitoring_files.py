"""The dashboard and the alert rules name nothing that the endpoint does not give, and its page lists all that it gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cdc_lib.model.figures import LakeTableFigures, SourceFigures, TableFigures
from cdc_lib.model.merge_plan import MergeTotals
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName
from cdc_lib.status.prometheus import FAMILIES, UP, Exposition
from tests.harness.promql import labels_of, metrics_in, shown_in, unknown_in

DOCS = Path(__file__).parents[3] / "docs"
ALERTS = yaml.safe_load((DOCS / "monitoring/alerts.yaml").read_text())
DASHBOARD = json.loads((DOCS / "monitoring/grafana-dashboard.json").read_text())
RULES = {rule["alert"]: rule for group in ALERTS["groups"] for rule in group["rules"]}
TARGETS = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
TABLE = TableName("shop", "orders")


@pytest.fixture(scope="module")
def known():
    """The labels of every metric, from the text that a source gives which has everything."""
    full = SourceFigures(
        "shop", 1.0, 1, 1, 1, 1, 1, 1.0, 1.0, 1, 1, 1.0, 1.0, MergeTotals(1, 1, 1, 1.0), 1.0, 1.0,
        (TableFigures(TABLE, 1.0, quarantined=True),),
        (LakeTableFigures(TABLE, "lake.shop.orders", RowCounts(1, 1, 1, 1), 1, 1.0, 1),),
    )  # fmt: skip
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


def test_there_is_a_rule_for_each_thing_that_must_wake_somebody():
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

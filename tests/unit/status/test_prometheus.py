"""The text for Prometheus, read back with the parser of its own client."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_classic

from cdc_lib.model.figures import LakeTableFigures, SourceFigures, TableFigures
from cdc_lib.model.merge_plan import MergeTotals
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName
from cdc_lib.status.prometheus import FAMILIES, OPENMETRICS, UP, Exposition

HOSTILE = TableName('a"} 1\ncdc_lag_seconds{source="x', "\\\n{},=é'`")
FULL = SourceFigures(
    source="shop",
    lag_seconds=3.5,
    lag_bytes=0,
    catch_up_seconds=90.0,
    epoch=2,
    windows_in_flight=1,
    windows_pending=2,
    snapshots_pending=0,
    retention_left_seconds=7200.0,
    server_seen_seconds=1.0,
    quarantined=1,
    stopped=0,
    cut_age_seconds=60.0,
    merge_seconds=4.0,
    merged=MergeTotals(5, 9, 3, 20.5),
    drain_seconds=0.5,
    verify_interval_seconds=86400.0,
    retries=(("drain", 3), ("merge", 0)),
    tables=(TableFigures(HOSTILE, 3.5, quarantined=True),),
    lake_tables=(LakeTableFigures(HOSTILE, f"lake.{HOSTILE}", RowCounts(4, 3, 2, 1), 99, 10.0, 0, 0.5, 60.0, 0),),
    cover_period_seconds=604800.0,
)


def samples(text):
    """Values by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            key = (one.name, tuple(sorted(one.labels.items())))
            assert key not in found
            found[key] = one.value
    return found


def test_every_figure_has_a_sample_and_hostile_names_stay_labels():
    """A table's name cannot end its label, a line or the text."""
    text = Exposition([FULL]).text()
    assert text.endswith("# EOF\n")
    found = samples(text)
    assert {name for name, _ in found} == {UP, *(family.sample for family in FAMILIES)}
    rows = {dict(labels)["op"]: value for (name, labels), value in found.items() if name == "cdc_rows_merged_total"}
    assert rows == {"c": 4, "u": 3, "d": 2, "r": 1}
    tables = {dict(labels)["table"] for _, labels in found if "table" in dict(labels)}
    assert tables == {str(HOSTILE)}
    assert found["cdc_lag_seconds", (("source", "shop"),)] == 3.5
    assert [key for key in found if key[0] == "cdc_lag_seconds"] == [("cdc_lag_seconds", (("source", "shop"),))]


def test_what_is_not_known_is_left_out_and_never_zero():
    """A source before its first plan has but the sample that says that it can be read."""
    assert samples(Exposition([SourceFigures("new")]).text()) == {(UP, (("source", "new"),)): 1}


def test_a_source_that_cannot_be_read_is_down_and_keeps_the_others():
    found = samples(Exposition([FULL], ("broken",)).text())
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
def test_the_format_is_the_one_that_is_asked_for(accept, kind):
    """Nothing of the request comes back in the header of the answer."""
    text, content_type = Exposition([FULL]).negotiated(accept)
    assert content_type.startswith(kind)
    assert "\n" not in content_type
    assert "dots" not in content_type
    if kind == OPENMETRICS:
        assert samples(text.decode()) == samples(Exposition([FULL]).text())
    else:
        assert "cdc_rows_merged" in {family.name for family in parse_classic(text.decode())}

from __future__ import annotations

import pytest

from cdc_airflow.schedules import spread
from cdc_lib.config.schedule import problem

SOURCES = [f"source_{number}" for number in range(200)]


def test_many_sources_do_not_begin_in_one_minute():
    """Each still runs every five minutes, and the same minutes after each start of Airflow."""
    found = [spread("*/5 * * * *", source) for source in SOURCES]
    assert {one.split("/")[0] for one in found} == {"*", "1-59", "2-59", "3-59", "4-59"}
    assert max(found.count(one) for one in set(found)) < 80
    assert found == [spread("*/5 * * * *", source) for source in SOURCES]
    assert [problem(one) for one in set(found)] == [None] * 5

    assert {problem(one) for source in SOURCES if (one := spread("*/60 * * * *", source))} == {None}


@pytest.mark.parametrize(
    "expression", [None, "* * * * *", "*/1 * * * *", "0 4 * * *", "0,30 * * * *", "0 */2 * * *", "@daily"]
)
def test_a_schedule_with_fixed_times_is_not_spread(expression):
    """Only a frequency of minutes leaves open when it begins."""
    assert {spread(expression, source) for source in SOURCES} == {expression}

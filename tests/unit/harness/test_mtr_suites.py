"""Where a test of the server's own suites waits so that its tables can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.mtr.suites import WAIT, stopping

FLAG = Path("stop")
HERE = "--- here"


def waits(text, most=9):
    """Return the lines of a changed test, with a mark for each wait."""
    return stopping(text, FLAG, most).replace(WAIT.format(flag=FLAG), HERE).splitlines()


def test_a_test_waits_before_its_tables_are_dropped_and_before_its_last_lines():
    text = "create table t1(a int);\ninsert t1 values (1);\ndrop table t1;\ncreate table t2(a int);\ninsert t2 values (1);\n# end\ndrop table t2;\n"
    assert waits(text) == [
        "create table t1(a int);",
        "insert t1 values (1);",
        HERE,
        "drop table t1;",
        "create table t2(a int);",
        "insert t2 values (1);",
        HERE,
        "# end",
        "drop table t2;",
    ]


@pytest.mark.parametrize(
    "inside",
    [
        "while ($n)\n{\n  drop table t1;\n}\n",
        "delimiter |;\ncreate procedure p() begin\ndrop table t1;\nend|\ndelimiter ;|\n",
        "insert t1 values\ndrop table t1;\n",
    ],
)
def test_a_drop_inside_of_something_is_left_alone(inside):
    assert waits(f"{inside}select 1;\n").count(HERE) == 1  # at the end


def test_many_drops_give_the_number_of_waits_that_was_asked_for():
    text = "".join(f"insert t{n} values (1);\ndrop table t{n};\n" for n in range(50))
    assert waits(text, most=3).count(HERE) == 4

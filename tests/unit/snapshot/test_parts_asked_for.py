"""What a person may ask for of a table: keys and conditions, word by word."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.snapshot.bounds import bound
from cdc_lib.snapshot.chunks import select_chunk, select_upper
from cdc_lib.snapshot.predicate import predicate

COLUMNS = {"id": "id", "created": "created", "we ird": "We ird", "v": "V"}


def schema(*kinds):
    columns = tuple(Column(name, kind) for name, kind in zip("abc", kinds, strict=False))
    return TableSchema("shop", "t", columns, tuple(column.name for column in columns))


INT, TEXT, DAY = SourceType("int", 8), SourceType("string", charset="utf8mb4"), SourceType("date")


def encoded(text, charset):
    return None if "☃" in text else text.encode()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("created >= '2026-01-01'", "`created` >= _utf8mb4 X'323032362d30312d3031'"),
        (
            "ID<>-5.5e3 and not (v = 'it''s' or V is null)",
            "`id` <> -5.5e3 AND NOT ((`V` = _utf8mb4 X'69742773' OR `V` IS NULL))",
        ),
        ("NOT NOT `we ird` <=> NULL", "`We ird` <=> NULL"),
        ("id in (1, 0xF, x'0A') or id not between 1 and 2", "`id` IN (1, X'0F', X'0A') OR `id` NOT BETWEEN 1 AND 2"),
        ("v NOT LIKE 'a%' AND v IS NOT TRUE", "`V` NOT LIKE _utf8mb4 X'6125' AND `V` IS NOT TRUE"),
    ],
)
def test_a_condition_is_rewritten(text, written):
    """Names in backticks, texts by their bytes; what it means is the same."""
    assert predicate(text, COLUMNS) == written


@pytest.mark.parametrize(
    "text",
    [
        "", "id", "1", "id =", "id = 1;", "id = 1 -- all", "id = 1 /* x */", "id = 1 # x", "id = 1; DROP TABLE t", "sleep(5) = 0",
        "id = sleep(5)", "id(1) = 2", "other = 1", "id = (SELECT 1)", "id = @@version", "v = 'a\\' OR 1 = 1'", 'v = "a"',
        "id = 1 AND", "(id = 1", "id = 1)", "t.id = 1", "id IN ()", "id BETWEEN 1", "id = 1 2", "NOT", "id IS 5", "v = 'a",
        "(" * 60 + "id = 1" + ")" * 60, "id = 1 UNION SELECT 2", "v COLLATE x = 'a'", "id = 1 INTO OUTFILE 'x'",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    """With what is allowed, and the columns."""
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        predicate(text, COLUMNS)
    assert "We ird" in caught.value.hint


@pytest.mark.parametrize(
    ("own", "text", "key"),
    [
        (schema(INT), "-12", ("-12",)),
        (schema(INT, TEXT), '[5, "a,b"]', ("5", "612c62")),
        (schema(INT, TEXT), "5", ("5",)),
        (schema(TEXT), "[x", None),
        (schema(TEXT), '["[x"]', ("5b78",)),
        (schema(DAY), "2026-02-28", ("2026-02-28",)),
        (schema(DAY), "2026-02-30", None),
        (schema(INT), "1 OR 1=1", None),
        (schema(INT), "[]", None),
        (schema(INT), "[1, 2]", None),
        (schema(INT), "[null]", None),
        (schema(TEXT), "☃", None),
        (schema(SourceType("bytes")), "0x0aFF", ("0aff",)),
        (schema(SourceType("bytes")), "0xf", None),
        (schema(SourceType("datetime", scale=3)), "2026-01-01 12:00:00.5", ("2026-01-01 12:00:00.500000",)),
        (schema(SourceType("timestamp")), "2026-01-01T12:00:00+02:00", None),
        (schema(SourceType("time")), "-838:59:59", ("-838:59:59",)),
        (schema(SourceType("decimal", precision=6, scale=2)), "-1.25", ("-1.25",)),
        (schema(SourceType("enum")), "a", None),
        (schema(), "1", None),
    ],
)
def test_a_key_is_a_value_or_a_list_of_the_first_columns(own, text, key):
    """Each in the way of its column's type; anything else is refused with what is allowed."""
    if key is not None:
        assert bound(own, text, "--from", encoded) == key
        return
    with pytest.raises(ConfigError) as caught:
        bound(own, text, "--from", encoded)
    assert caught.value.hint


def test_a_part_is_in_every_select_of_its_snapshot():
    """Beside the end of the chunk before; of another key than it was asked for nothing is read."""
    own = schema(INT, INT)
    part = RowSelection(("a", "b"), ("1", "2"), ("5",))
    low, high = "(`a` > 1) OR (`a` = 1 AND `b` >= 2)", "(`a` <= 5)"
    assert f"WHERE (({low}) AND ({high})) ORDER BY" in select_upper(own, part)
    assert f"({low})" in select_chunk(own, ("3", "3"), ("5", "9"), 10, part=part)
    assert select_chunk(own, None, None, 10, part=part).endswith(f"WHERE (({low}) AND ({high}))")
    with pytest.raises(ConfigError, match="requested under another primary key"):
        select_upper(schema(INT), part)

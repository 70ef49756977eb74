"""One entry for each column type: whoever decides by types knows all of them, and the page of extensions names whoever decides."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from cdc_lib.binlog.ddl.history.types import spelled
from cdc_lib.binlog.ddl.history.words import WordReader, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.rows import table_map
from cdc_lib.binlog.types.registry import USUAL, codec_for, unreadable
from cdc_lib.consumers.entries import sql_type
from cdc_lib.lake.arrow_types import arrow_type
from cdc_lib.model.column_types import BY_WORD, COLUMN_TYPES, FAMILIES, Kind
from cdc_lib.model.schema import Column, TableSchema
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.mysql.information_schema import source_type
from cdc_lib.verify.canonical_text import cell_of
from tests.harness.docs.type_modules import ELSEWHERE, ROOT, kinds_in, names_types, type_modules

READ = [one for one in COLUMN_TYPES if one.kind != "unsupported"]
KINDS = set(FAMILIES) - {"unsupported"}
DATES = {kind for kind, family in FAMILIES.items() if family.is_date}

METADATA = {4: 4, 5: 8, 16: 5, 15: 20, 253: 20, 141: 20, 254: 20, 246: 10 | 2 << 8, 247: 1 << 8, 248: 1 << 8}
"""Of a column in a table map; one byte of length for others."""

CHOICES = [
    ("cdc_lib/mysql/information_schema.py", ["source_type"], KINDS, set()),
    ("cdc_lib/binlog/types/registry.py", ["_plain", "_text"], KINDS, set()),
    # Texts, BLOBs and types of a name alone are chosen by their names:
    ("cdc_lib/binlog/ddl/history/types.py", ["spelled"], KINDS, {"string", "bytes"}),
    # Whose text SELECT and the lake share:
    ("cdc_lib/verify/canonical_text.py", ["cell_of"], KINDS, {"time", "json"}),
    # Texts already; an ENUM and a SET too. Dates come before:
    ("cdc_lib/verify/cell_arrays.py", ["text_of"], KINDS - DATES, {"string", "enum", "set", "time", "json"}),
    ("cdc_lib/verify/cell_arrays.py", ["_others"], KINDS - DATES, {"string", "enum", "set", "time", "json"}),
]
"""File, functions, the kinds that come there, and those that its last branch is meant for."""

MOST = 14
"""Files of the product that decide by types, the folder of the codecs as one."""

BESIDE = {
    "cdc_lib/binlog/rows/masking.py": "by types of Arrow",
    "demo/shop/schema.py": "no product",
    "demo/shop/source_rows.py": "no product",
    "tests/fuzz/targets.py": "no product",
}
"""Files of the list that name no type."""


def declared(one):
    """A type as information_schema declares a column of it."""
    text = f"{one.name}('a','b')" if one.kind in ("enum", "set") else one.name
    return source_type(one.name, text, 10, 2, 6, "utf8mb4" if FAMILIES[one.kind].has_charset else None, 40)


def each(types):
    return pytest.mark.parametrize("one", types, ids=lambda one: one.name)


def test_every_kind_has_a_family_and_a_type():
    assert list(FAMILIES) == list(get_args(Kind))
    assert {one.kind for one in COLUMN_TYPES} == set(FAMILIES)


def test_names_and_words_are_of_one_type():
    assert len({one.name for one in COLUMN_TYPES}) == len(COLUMN_TYPES)
    assert len(BY_WORD) == sum(len(one.words) for one in COLUMN_TYPES)


@each(COLUMN_TYPES)
def test_a_type_is_known_by_its_name(one):
    """As information_schema has it."""
    found = declared(one)
    assert (found.kind, found.form) == (one.kind, one.form)
    assert found.width == (40 if one.measured else 10 if one.kind == "bit" else one.width)


@pytest.mark.parametrize(("word", "one"), BY_WORD.items(), ids=list(BY_WORD))
def test_a_type_is_known_by_each_word_of_ddl(word, one):
    """And becomes the same type as by its name."""
    more = {"enum": "('a','b')", "set": "('a','b')", "char": "(10)", "varchar": "(10)", "varbinary": "(10)"}
    read = WordReader(words(Statement(word + more.get(one.name, ""), "shop")))
    found = spelled(read, mariadb=False, sql_mode=0).resolve("utf8mb4", source_type)
    assert not read.more
    assert (found.kind, found.form, found.text.partition("(")[0].partition(" ")[0]) == (one.kind, one.form, one.name)


@each(READ)
def test_a_type_is_known_by_its_bytes_in_a_table_map(one):
    """Of ENUM and SET those that a STRING hides."""
    family = FAMILIES[one.kind]
    facts = SimpleNamespace(charset={0: "utf8mb4" if family.has_charset else "binary"}, unsigned=(), members={})
    assert one.codes
    for code in one.codes:
        found, prefix, width = table_map._column(0, code, METADATA.get(code, 1), facts)
        assert found.kind == one.kind
        assert prefix or width
        assert not one.prefix or prefix == 1
        assert one.kind != "int" or width == one.width


def test_no_other_byte_of_a_table_map_is_a_type():
    """What is read is in the list."""
    known = {code for one in COLUMN_TYPES for code in one.codes}
    facts = SimpleNamespace(charset={0: "utf8mb4"}, unsigned=(), members={})
    others = [table_map._column(0, code, METADATA.get(code, 1), facts)[0].kind for code in {*range(256)} - known]
    assert set(others) == {"unsupported"}


@pytest.mark.parametrize("from_text", [False, True], ids=["binlog", "select"])
@pytest.mark.parametrize("zero_dates", ["null", "string"])
@each(READ)
def test_cells_of_a_type_become_its_lake_type(one, zero_dates, from_text):
    """Of row images and of result sets."""
    policy = ValuePolicy(zero_dates=zero_dates)
    schema = policy.applied(TableSchema("shop", "t", (Column("x", declared(one)),)))
    (column,) = schema.columns
    assert unreadable(column.type) == ""
    assert codec_for(column.type, policy, from_text=from_text).arrow_type == arrow_type(column.type.lake_type)


@each(READ)
def test_a_type_is_compared_and_named_to_consumers(one):
    """The text of its cells names the column at both sides."""
    column = Column("x", declared(one))
    cell = cell_of(column, column.type.lake_type, ValuePolicy())
    assert "`x`" in cell.source
    assert "`x`" in cell.lake
    assert sql_type(column.type) != FAMILIES["unsupported"].jdbc
    assert column.type.spelled


def test_the_usual_kernels_of_each_kind_are_compiled_at_install():
    assert {one.kind for one in USUAL} == KINDS


@pytest.mark.parametrize(("path", "functions", "come", "last"), CHOICES, ids=[f"{c[0]}:{c[1][0]}" for c in CHOICES])
def test_a_choice_between_kinds_knows_each(path, functions, come, last):
    """A new kind falls into no last branch by accident: it is named, or entered above."""
    named = kinds_in(path, *functions)
    assert come - named - last == set(), "neither named there nor meant for its last branch"
    assert last <= come


@each([one for one in READ if not one.prefix and one.codes != (255,)])
def test_the_page_of_types_names_each(one):
    """Of TEXT, BLOB and GEOMETRY the family is enough."""
    assert re.search(rf"\b{one.name.upper()}\b", (ROOT / "docs/reference/data-types.md").read_text())


def test_the_page_of_extensions_names_every_file_that_decides_by_types():
    """Who adds a type finds all places; the folder of the codecs is one."""
    page = (ROOT / "docs" / "internals" / "extending.md").read_text()
    (paragraph,) = re.findall(r"^## A column type\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
    listed = set(re.findall(r"`([\w/.]+)`", paragraph)) - {str(Path(__file__).relative_to(ROOT))}
    folder = re.compile(r"(?<=/binlog/types/)\w+\.py$")
    deciding = {folder.sub("", path) for path in type_modules()}
    assert {folder.sub("", path) for path in listed} == deciding | BESIDE.keys()
    assert len(deciding) <= MOST, "a fact of a kind is a part of its row"


@pytest.mark.parametrize(
    "code",
    [
        "if column.type.kind == 'date': pass",
        "match one.kind:\n    case 'year': pass",
        "_TEXTS = ('tinytext', 'text')",
        "_WIDTHS = {'int': 4, 'bigint': 8}",
        "x = SourceType('json')",
        "x = name == 'varchar'",
        "x = own.lake_type in ('date', 'timestamp')",
    ],
)
def test_a_decision_is_found(tmp_path, code):
    """Else the test above would look at nothing."""
    (tmp_path / "a.py").write_text(code)
    assert names_types(tmp_path / "a.py")


@pytest.mark.parametrize(
    "code", ["'''A date and a varchar.'''", "log('text')", "x = {'bytes': 3}", "x = word == 'text'"]
)
def test_a_word_is_no_decision(tmp_path, code):
    (tmp_path / "a.py").write_text(code)
    assert not names_types(tmp_path / "a.py")


def test_files_that_are_let_off_name_types():
    assert [path for path in ELSEWHERE if not names_types(ROOT / path)] == []

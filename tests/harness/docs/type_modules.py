"""Finds the files that decide by a column's type: code in them compares with type names or lists them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from cdc_lib.model.column_types import COLUMN_TYPES, FAMILIES, Family

ROOT = Path(__file__).parents[3]
ROOMS = ("cdc_lib", "spark_jobs", "plugins")

NAMES = {one.name for one in COLUMN_TYPES}
FORMS = {"old", "compressed", *(one.form for one in COLUMN_TYPES if one.form)}
LAKE = {family.lake_type for family in FAMILIES.values()}
TYPES = NAMES | FORMS | LAKE | set(FAMILIES)
PLAIN_WORDS = {
    "text",
    "string",
    "bytes",
    "date",
    "time",
    "set",
    "int",
    "point",
    "binary",
    "old",
    "year",
    "char",
    "enum",
}
"""Words with other meanings: alone they do not count as a type."""

ASKED = {"kind", "form", "lake_type"}
"""Names of a column's type and its parts; other classes have a ``kind`` too, but none of its values is only the name of a type."""

ELSEWHERE = {
    "cdc_lib/binlog/ddl/history/words.py": "words of a lexer",
    "cdc_lib/model/table_mode.py": "types of the lake's own columns",
    "cdc_lib/binlog/rows/hidden_columns.py": "columns of the server's own",
    "cdc_lib/binlog/rows/partial_rows.py": "JSON diffs",
    "cdc_lib/model/mask.py": "a masked column is a text",
    "cdc_lib/model/route.py": "the column of a route is a text",
    "cdc_lib/binlog/rows/mapped_tables.py": "the promise of old_temporals",
    "cdc_lib/config/start.py": "where a source begins",
    "cdc_lib/model/lexer.py": "words of a lexer",
    "cdc_lib/snapshot/predicate.py": "words of a lexer",
    "cdc_lib/lake/computed.py": "functions of Spark SQL",
    "cdc_lib/serve/hbase.py": "names of HBase's own JSON",
}
"""Files that name types but need no change for a new type, and why."""


def type_modules() -> set[str]:
    """Return the files that decide by a type, from the root of the repository."""
    modules = {
        str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py") if names_types(path)
    }
    return modules - ELSEWHERE.keys()


def names_types(path: Path) -> bool:
    """Whether a file decides by a type."""
    return any(_decisions(ast.parse(path.read_text())))


def kinds_in(path: str, *functions: str) -> set[str]:
    """Return the kinds that functions of a file name, and those with the family flags that they read."""
    tree = ast.parse((ROOT / path).read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions]
    assert len(nodes) == len(functions), path
    named = {text for node in nodes for text in _texts(node)} & set(FAMILIES)
    attributes = {one.attr for node in nodes for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    flagged = {kind for kind, family in FAMILIES.items() for flag in attributes & FLAGS if getattr(family, flag)}
    return named | flagged


FLAGS = {one.name for one in fields(Family) if one.type == "bool"}


def _decisions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare() | ast.Match():
                asked = node.subject if isinstance(node, ast.Match) else node.left
                name = getattr(asked, "attr", getattr(asked, "id", ""))
                if _texts(node) & (TYPES if name in ASKED else TYPES - PLAIN_WORDS):
                    yield node
            case ast.Dict() | ast.Set() | ast.Tuple() | ast.List():
                keys = node.keys if isinstance(node, ast.Dict) else node.elts
                types = {key.value for key in keys if isinstance(key, ast.Constant)} & TYPES
                if len(types) > 1 or types - PLAIN_WORDS:
                    yield node
            case ast.Call(func=ast.Name(id="SourceType" | "Spelled"), args=[ast.Constant(), *_]):
                yield node


def _texts(tree: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}

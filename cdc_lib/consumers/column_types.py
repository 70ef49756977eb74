"""JDBC and MySQL types of a column, as in canal's entries.

The numbers are constants of java.sql.Types. An unsigned integer has the next wider type, as canal has it.
"""

from __future__ import annotations

from cdc_lib.model.column_types import INTEGERS
from cdc_lib.model.schema import SourceType

_INTEGERS = {1: (-6, 5), 2: (5, 4), 3: (4, 4), 4: (4, -5), 8: (-5, 3)}
"""By width: TINYINT -6, SMALLINT 5, INTEGER 4, BIGINT -5, DECIMAL 3; signed, unsigned."""
_PLAIN = frozenset({"float", "double", "date", "year", "json"})
_INTEGER_NAMES = {width: name for name, width in INTEGERS.items()}


def sql_type(of: SourceType) -> int:
    """Return the type's number in java.sql.Types."""
    if of.kind == "int":
        return _INTEGERS[of.width][of.unsigned]
    return of.family.jdbc


def mysql_type(of: SourceType) -> str | None:
    """Return the type as the server writes it; None if neither the binlog nor the server gives it."""
    unsigned = " unsigned" if of.unsigned else ""
    derived = {
        "int": f"{_INTEGER_NAMES.get(of.width, '')}{unsigned}",
        "decimal": f"decimal({of.precision},{of.scale}){unsigned}",
        "bit": f"bit({of.width})",
    }
    if of.family.has_fraction:
        derived[of.kind] = f"{of.kind}({of.scale})" if of.scale else of.kind
    elif of.kind in _PLAIN:
        derived[of.kind] = of.kind
    # The binlog's kind alone does not distinguish CHAR and VARCHAR, BINARY and BLOB.
    return of.text or derived.get(of.kind)

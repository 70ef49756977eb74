"""Which names of columns Spark and Iceberg take for one, also where a server holds them apart: pure.

Spark resolves names by Java's ``String.equalsIgnoreCase``, which compares character by character, so that the small sigma and the final
one are one name, as are ``i`` and the dotless i, ``s`` and the long s. Spark's checks of a table's columns and Iceberg compare
``String.toLowerCase(Locale.ROOT)``, for which the capital I with a dot is ``i`` and a combining dot. One of the two is enough for a
statement to fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def clash(columns: Iterable[str], reserved: Collection[str] = ()) -> tuple[str, str] | None:
    """Return the first column that cannot be beside those before it, and why; None if all can.

    Args:
        columns: their names.
        reserved: names that no column can have.
    """
    seen = {form: name for name in reserved for form in _forms(name)}
    for column in columns:
        forms = _forms(column)
        other = next((seen[form] for form in forms if form in seen), None)
        if other is not None and other in reserved:
            return column, f"column {column} has a name that is reserved in the lake"
        if other is not None:
            return column, f"columns {other} and {column} have names that Spark takes for one"
        seen |= dict.fromkeys(forms, column)
    return None


def _forms(name: str) -> tuple[tuple[str, str], ...]:
    """Return a name as ``toLowerCase`` makes it, and a text that is equal for names that ``equalsIgnoreCase`` takes for one."""
    lower = name.lower()
    return ("lower", lower), ("folded", lower if name.isascii() else "".join(map(_folded, name)))


def _folded(character: str) -> str:
    """Return the lower case of the upper case, each of one character: Java's ``Character`` has no mapping to several."""
    upper = next((one for one in (character.upper(), character.title()) if len(one) == 1), character)
    return upper.lower()[0]

"""Names of character sets.

MySQL up to 8.0.27 and MariaDB up to 10.5 call ``utf8mb3`` by its old name ``utf8``. Here it always has the new name.
"""

from __future__ import annotations


def charset_name(name: str) -> str:
    """Return the name of a character set in lower case, and ``utf8mb3`` for ``utf8``."""
    lower = name.lower()
    return "utf8mb3" if lower == "utf8" else lower


def charset_of_collation(collation: str) -> str:
    """Return the character set of a collation, or an empty text for one that fits several.

    MariaDB's ``uca1400_ai_ci`` fits several; ``utf8mb4_uca1400_ai_ci`` is the same with its character set.
    """
    lower = collation.lower()
    return "" if lower.startswith("uca1400") else charset_name(lower.partition("_")[0])

"""The size of the product: statements of its code by room. ``./dev size`` prints it, and a test holds the total.

Lines would reward long ones, and count documentation; statements are what a reader has to follow.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.harness.docs.pages import ROOT

PRODUCT = ("cdc_lib", "spark_jobs", "plugins", "dags", "demo")


def statements_by_room() -> Counter[str]:
    """Return the number of statements of each folder below the product's top folders, without imports and docstrings."""
    found = Counter[str]()
    for top in PRODUCT:
        for path in (ROOT / top).rglob("*.py"):
            folders = path.relative_to(ROOT).parts[:-1]
            found["/".join(folders[:2])] += _in_file(path)
    return found


def _in_file(path: Path) -> int:
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.stmt))
    return sum(not isinstance(node, ast.Import | ast.ImportFrom) and not _is_docstring(node) for node in nodes)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


if __name__ == "__main__":
    rooms = statements_by_room()
    for room, count in rooms.most_common():
        print(f"{count:7,}  {room}")
    print(f"{sum(rooms.values()):7,}  in all")

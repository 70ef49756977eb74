"""Each class name is one thing: a reader who searches for it finds one definition."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("cdc_lib", "spark_jobs", "plugins")


def names_used_twice(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return class names that occur more than once, without a leading underscore, with their files."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, text in files:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(name)
    return {name: where for name, where in found.items() if len(where) > 1}


def test_no_class_name_is_used_twice():
    """Neither does a private class share its name with a public one."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    assert len(paths) > 400
    assert names_used_twice((str(path.relative_to(ROOT)), path.read_text()) for path in paths) == {}


def test_a_class_name_that_is_used_twice_is_found():
    """Also where one of the two is private."""
    files = [("a.py", "class Watch: ..."), ("b.py", "class _Watch: ...\nclass Other: ...")]
    assert names_used_twice(files) == {"Watch": ["a.py", "b.py"]}

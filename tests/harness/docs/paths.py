"""Paths and modules of the repository that a text names, and whether they exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = {"cdc_airflow": "plugins", "cdc_lib": ".", "demo": ".", "spark_jobs": ".", "tests": "."}
FOLDERS = ("cdc_lib", "dags", "demo", "docs", "plugins", "spark_jobs", "tests")

_QUOTED = re.compile(r"`([^`\s]+)`")
_FILE = re.compile(r"[\w./-]+\.(?:lock|py|sql)")
_BELOW = re.compile(rf"(?!dags/sources/)(?:{'|'.join(FOLDERS)})/[\w./-]*")  # a page may name source files as examples
_MODULE = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
_CLASS = re.compile(r"[A-Z][a-z]\w*\.\w+|(?:[A-Z][a-z]+){2,}")
_ROLE = re.compile(r":\w+:`~?([\w.]+)`")
_IN_CODE = re.compile(r"(?<![\w./*-])[\w-]+(?:/[\w-]+)+\.py\b")


def paths_in(page: str) -> list[str]:
    """Return the files and folders that a page names in backticks."""
    return [name for name in sorted(set(_QUOTED.findall(page))) if _FILE.fullmatch(name) or _BELOW.fullmatch(name)]


def unknown_in_page(page: str) -> list[str]:
    """Return the names in a page that do not exist: paths from the root, modules and their names, classes and their members."""
    paths = paths_in(page)
    others = sorted(set(_QUOTED.findall(page)) - set(paths))
    modules = [name for name in others if _MODULE.fullmatch(name) and not is_defined(name)]
    classes = [name for name in others if _CLASS.fullmatch(name) and not _is_class(name)]
    return [path for path in paths if not _exists(path)] + modules + classes


def unknown_in_code(code: str) -> list[str]:
    """Return the names in comments and docstrings that do not exist: paths from the root, and targets of references."""
    names = [name for name in references_in(code) if not is_defined(name)]
    return [path for path in sorted(set(_IN_CODE.findall(code))) if not _exists(path)] + names


def references_in(code: str) -> list[str]:
    """Return the names of this repository that docstrings refer to, without their roles."""
    return [name for name in _ROLE.findall(code) if name.partition(".")[0] in PACKAGES]


def is_defined(dotted: str) -> bool:
    """Whether a dotted name is a module, or a name that a module defines or imports; reads the source, imports nothing."""
    first, *rest = dotted.split(".")
    at = ROOT / PACKAGES[first] / first
    while rest and ((at / rest[0]).is_dir() or (at / f"{rest[0]}.py").is_file()):
        at /= rest.pop(0)
    file = at.with_suffix(".py") if at.with_suffix(".py").is_file() else at / "__init__.py"
    return file.is_file() and set(rest) <= _names(file)


def _is_class(name: str) -> bool:
    """Whether a class exists, and with ``Class.member`` whether it has the member."""
    kind, _, part = name.partition(".")
    return any(not part or part in _names(file) for file in _classes().get(kind, ()))


@cache
def _classes() -> dict[str, list[Path]]:
    """Return the files that define each class of the product."""
    files: dict[str, list[Path]] = {}
    for package, folder in PACKAGES.items():
        for file in sorted((ROOT / folder / package).rglob("*.py")) if package != "tests" else ():
            for kind in re.findall(r"^class (\w+)", file.read_text(), re.MULTILINE):
                files.setdefault(kind, []).append(file)
    return files


def _exists(path: str) -> bool:
    target = ROOT / path
    return target.is_dir() if path.endswith("/") else target.exists()


@cache
def _names(file: Path) -> set[str]:
    """Return every name that is defined, assigned or imported anywhere in a file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names

"""What is private in pymysql is used in one file, which says with which version."""

from __future__ import annotations

import ast
import re
from importlib.metadata import version
from pathlib import Path

import pymysql
import pytest

from cdc_lib.mysql import pymysql_private

ROOT = Path(__file__).parents[3]
HOME = "cdc_lib/mysql/pymysql_private.py"
ROOMS = ("cdc_lib", "spark_jobs", "plugins", "dags", "demo")


def uses(tree):
    """Yield the private names that code takes of something other than its own object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not (
            isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
        ):
            name = node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("attr"):
            name = next((one.value for one in node.args[1:2] if isinstance(one, ast.Constant)), "")
        else:
            continue
        if re.match(r"_(?!_)", name):
            yield name


def private_names():
    """Every attribute and method of pymysql's classes that begins with one underscore."""
    found = set()
    for path in Path(pymysql.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.FunctionDef):
                found.add(node.name)
    return {name for name in found if re.match(r"_(?!_)", name)}


def files():
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def test_no_other_file_uses_what_is_private_in_pymysql():
    """A new version of the driver is looked at in one place."""
    private = private_names()
    found = {str(path.relative_to(ROOT)) for path in files() if private & set(uses(ast.parse(path.read_text())))}
    assert found == {HOME}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("connection._rfile.read(1)", "_rfile"),
        ("self._connection._sock.close()", "_sock"),
        ("connection._read_timeout = 3", "_read_timeout"),
        ("getattr(connection, '_sock', None)", "_sock"),
        ("setattr(connection, '_read_timeout', 3)", "_read_timeout"),
        ("cursor()._query('SELECT 1')", "_query"),
    ],
)
def test_a_use_is_found(code, name):
    """Else the test above would look at nothing."""
    assert name in set(uses(ast.parse(code))) & private_names()


def test_the_module_names_the_version_that_is_installed():
    """Who takes another version looks at the module first."""
    named = re.search(r"Tested with PyMySQL (\S+) to (\S+)\.", pymysql_private.__doc__ or "")
    assert named is not None
    assert version("pymysql") in named.groups()


def test_each_private_name_is_in_a_docstring():
    """So that the list is complete."""
    tree = ast.parse((ROOT / HOME).read_text())
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        named = set(re.findall(r"``(_\w+)``", ast.get_docstring(function) or ""))
        assert named == set(uses(function)), function.name

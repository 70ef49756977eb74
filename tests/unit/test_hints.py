"""Hints: only what passes automatically may be tried again, and every command that a text of the code names exists."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from cdc_lib import errors
from cdc_lib.cli import registry
from cdc_lib.errors import MergeError, dump_error, load_error
from tests.harness.docs.pages import problem_of

ROOT = Path(__file__).parents[2]
ERRORS = {
    name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, errors.CdcError)
}
CODE = [*(ROOT / room for room in ("cdc_lib", "spark_jobs", "plugins", "dags", "demo"))]
COMMAND = re.compile(r"\bcdc ((?:--\w+ )?[a-z]+(?: [a-z]+){0,2})((?:[^`;,.()]|\.(?=\S))*)")
AGAIN = re.compile(r"\b(run it|run|tried|try) again\b", re.IGNORECASE)


def hints():
    """Every hint of an error, where it is, and the error's class."""
    for room in ("cdc_lib", "spark_jobs", "plugins"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
                    texts = [one for word in node.keywords if word.arg == "hint" for one in ast.walk(word.value)]
                    hint = " ".join(str(one.value) for one in texts if isinstance(one, ast.Constant))
                    yield pytest.param(ERRORS[node.func.id], hint, id=f"{path.relative_to(ROOT)}:{node.lineno}")


@pytest.mark.parametrize(("kind", "hint"), [one for one in hints() if AGAIN.search(one.values[1])])
def test_an_error_that_does_not_pass_is_not_retryable(kind, hint):
    """Airflow does not try it again either: the hint names what a person does first."""
    assert kind.retryable, hint


def test_there_are_hints_to_look_at():
    """Else the test above would look at nothing."""
    assert len(list(hints())) > 150


def texts():
    """Every text of the code, docstrings too, and where it is; … for what is filled in."""
    for room in CODE:
        for path in sorted(room.rglob("*.py")):
            tree = ast.parse(path.read_text())
            inner = {id(one) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for one in node.values}
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    text = "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                    text = node.value
                else:
                    continue
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def named_in(text):
    """Yield the commands that a text names: their words as far as these are commands, and the options after them."""
    for words, rest in COMMAND.findall(text):
        path, entries, outer = [], registry.COMMANDS, None
        for word in words.split():
            if entries is None or word.startswith("--"):
                continue
            entry = entries.get(word)
            if entry is None and outer is not None and outer.own:
                break  # an argument
            path.append(word)
            outer = entry if isinstance(entry, registry.GroupEntry) else None
            entries = entry.commands if isinstance(entry, registry.GroupEntry) else None
        if path[0] in ENGLISH:
            continue
        options = re.findall(r"(?<=\s)--[a-z][a-z-]*", rest)
        yield " ".join(["cdc", *path]), options


ENGLISH = {"by", "command"}
"""Words after ``cdc`` that are not commands: who moved a cursor is written ``cdc run by somebody``."""

NAMED = sorted({(where, command, *options) for where, text in texts() for command, options in named_in(text)})


@pytest.mark.parametrize("named", NAMED, ids=lambda named: f"{named[0]} {' '.join(named[1:])}")
def test_a_command_that_a_text_of_the_code_names_exists(named):
    """A hint that names a command which was renamed leads nowhere."""
    _, command, *options = named
    assert problem_of(" ".join([command, *options])) is None


def test_there_are_commands_to_look_at_and_one_that_does_not_exist_is_found():
    """In the middle of a sentence too, with words after it that are none of the command."""
    assert len(NAMED) > 80
    wrong = "Nobody has it: cdc rewind shop --position x, then cdc snapshot shop '*.*'. Or cdc cursor seek. cdc step plan --at 1."
    problems = [problem_of(" ".join([command, *options])) for command, options in named_in(wrong)]
    assert problems == ["no command rewind", None, "no command seek", "no option --at"]


def test_a_hint_names_what_is_known_later():
    """The name of the source is known where a merge ends; capitals stand for what nobody knows."""
    error = MergeError("the rows do not add up", hint="Take the table again: cdc snapshot {source} shop.orders")
    assert error.hint == "Take the table again: cdc snapshot SOURCE shop.orders"
    error.fill(source="shop")
    assert error.hint == "Take the table again: cdc snapshot shop shop.orders"
    error.effect = "Nothing was published."
    assert (
        load_error(dump_error(error)).hint
        == error.hint
        == ("Nothing was published. Take the table again: cdc snapshot shop shop.orders")
    )


def test_a_command_in_a_hint_can_be_pasted():
    """The source, where the error passes a place that knows it, and the table, quoted for a shell."""
    error = MergeError("wrong", hint="cdc snapshot {source} {table}", table="shop.`a b`")
    assert error.hint == "cdc snapshot SOURCE 'shop.`a b`'"
    error.fill(source="shop")
    assert error.hint == "cdc snapshot shop 'shop.`a b`'"
    assert MergeError("wrong", hint="cdc snapshot {source} {table}", source="shop").hint == "cdc snapshot shop TABLE"

"""``docs/operations.md`` names every error that is raised, messages as they are in the code, and commands and keys that exist."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from cdc_lib import errors
from cdc_lib.cli.main import app
from cdc_lib.config import SourceConfig
from tests.harness.docs.pages import models_of, named_after

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "operations.md").read_text()
ROOMS = ("cdc_lib", "spark_jobs", "plugins", "dags")
CLASSES = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, errors.CdcError)}
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL))
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
FIRST_CELLS = [line.split(" | ")[0] for line in TEXT.splitlines() if line.startswith("| `")]
MESSAGES = sorted({message for cell in FIRST_CELLS for message in re.findall(r"`([^`]+)`", cell)})
COMMANDS = sorted(
    {
        re.split("[#|>]", line)[0].strip()
        for line in {*(line for block in BLOCKS for line in block.splitlines()), *SPANS}
        if line.startswith("cdc ")
    }
)
KEY = re.compile(r"^([a-z][a-z_]*(?:\.[a-z_]+)*)(:( .*)?)?$")


@cache
def sources():
    return [ast.parse(path.read_text()) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def raised():
    """The classes of the tree that some code makes; those that are bases alone nobody meets."""
    calls = (node for tree in sources() for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)} & CLASSES


@cache
def texts():
    """Every text of the code, with … for what is filled in; parts that stand one after the other are one."""
    found = []
    for tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_every_error_that_is_raised_is_named():
    """Somebody meets it, and looks for it here."""
    assert raised() - set(re.findall(r"`([A-Z][A-Za-z]+)`", TEXT)) == set()


def test_every_error_that_is_named_exists():
    """An error that was renamed or removed is found."""
    named = {span for span in SPANS if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", span)}
    assert named <= CLASSES


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_page_is_in_the_code(message):
    """All of its fixed parts; a reworded message is found."""
    parts = [part.strip(" :()") for part in re.split("…|; ", message)]
    assert any(len(part) > 5 for part in parts)
    assert [part for part in parts if part not in texts()] == []


SYMPTOMS = re.findall(r"^\| ([a-z][^|`]*) \| `([^`]+)`.* \| (.*) \|$", TEXT.partition("\n## ")[0], flags=re.MULTILINE)
"""The task that is red, how its log begins, and what to do."""


def test_the_page_begins_with_ten_symptoms():
    """Before its first heading: on the first screen, without an error's class."""
    assert len(SYMPTOMS) == 10
    first = TEXT.partition("\n## ")[0]
    assert len(first.splitlines()) < 30
    assert not CLASSES & set(re.findall(r"\w+", first))


@pytest.mark.parametrize("message", sorted({message for _, message, _ in SYMPTOMS}))
def test_the_first_line_of_a_symptom_is_in_the_code(message):
    """A reworded message is found; that of a symptom is further down too, with what it means."""
    parts = [part.strip(" :") for part in re.split("…|; ", message) if part.strip(" :")]
    assert parts
    assert [part for part in parts if part not in texts()] == []


PROCEDURES = TEXT.partition("## Procedures")[2]
HEADINGS = re.findall(r"^### (.*)$", PROCEDURES, flags=re.MULTILINE)
TESTS = ROOT / "tests" / "integration" / "spark"
WAYS = {path.name: path.read_text() for path in sorted(TESTS.glob("test_operations_*.py"))}
RUN = re.compile(r"cdc (?:[^\"\n{]|\{[^\"\n}]*\})+")
"""A command in a test; what is filled in is in braces."""


def run_where(heading):
    """Return the tests that run a procedure: a way out names its heading, or a docstring does between asterisks."""
    return [name for name, text in WAYS.items() if f'"{heading}"' in text or f"*{heading}*" in text]


@pytest.mark.parametrize("heading", sorted(HEADINGS))
def test_a_procedure_is_run_by_a_test(heading):
    """By its heading, at a real server, to equal tables; a new section without such a test is found."""
    assert run_where(heading) != []


SECTIONS = sorted(
    {
        call.args[0].value
        for text in WAYS.values()
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Way"
    }
)
"""Headings and messages that the tests of the ways out begin with."""


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_a_test_runs_is_on_the_page(section):
    """A heading or sentence that was reworded is found here, before the slow test."""
    assert section in TEXT


def test_there_are_sections_to_look_at():
    assert len(SECTIONS) > 20


def test_a_procedure_without_a_test_is_found():
    assert run_where("Turn the server off and on") == []
    assert len(HEADINGS) > 20


def shape_of(command):
    """Return a command's words up to its arguments, and its options; why it is done is no matter."""
    words, at = shlex.split(command)[1:], get_command(app)
    path = []
    general = [words.pop(0) for word in tuple(words) if words[0] == word and word.startswith("--")]
    while words and hasattr(at, "get_command") and not words[0].startswith("-"):
        at = at.get_command(at.make_context("cdc", [], resilient_parsing=True), words[0])
        path.append(words.pop(0))
    if named_after(at, words[:1]) is not at:
        path.append(words.pop(0))
    return tuple(path), frozenset(word for word in (*general, *words) if word.startswith("--")) - {"--why"}


RUN_BY_TESTS = {
    shape_of(command.strip()) for text in WAYS.values() for command in RUN.findall(text) if command.count("'") % 2 == 0
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_is_run_by_a_test_of_the_page(command):
    """Of a procedure or of what a message's row says to do, with all of its options."""
    path, options = shape_of(command)
    assert any(path == other and options <= more for other, more in RUN_BY_TESTS)


def test_there_are_messages_and_commands_to_look_at():
    """Were the page written in another way, the tests above would look at nothing."""
    assert len(MESSAGES) > 60
    assert len(COMMANDS) > 25


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_exists_with_its_options(command):
    """As the typer app has it; positional arguments are no more than it takes."""
    words = shlex.split(command)
    assert words.pop(0) == "cdc"
    at = get_command(app)
    known = {option for parameter in at.params for option in parameter.opts}
    while words and hasattr(at, "get_command"):
        word = words.pop(0)
        if word.startswith("--"):
            assert word in known
        else:
            at = at.get_command(None, word)
            assert at is not None, word
    at = named_after(at, words)
    options = {option: p for p in at.params for option in (*p.opts, *p.secondary_opts) if option.startswith("-")}
    places = [p for p in at.params if p.param_type_name == "argument"]
    positional = 0
    while words:
        word = words.pop(0)
        if word.startswith("-"):
            assert word in options
            if not options[word].is_flag and words:
                words.pop(0)
        else:
            positional += 1
    assert positional <= len(places)


def is_key(path):
    """Whether a source file may hold a key, written with dots."""
    models = [SourceConfig]
    for name in path.split("."):
        fields = [model.model_fields[name] for model in models if name in model.model_fields]
        if not fields:
            return False
        models = [model for one in fields for model in models_of(one.annotation)]
    return True


def named_keys():
    """Spans like ``name:``, ``name: value`` and ``section.name``."""
    for span in SPANS:
        match = KEY.match(span)
        if match and (match[2] or "." in match[1]):
            yield match[1]


@pytest.mark.parametrize("key", sorted(set(named_keys()) - {"shop.orders"}))
def test_a_key_may_stand_in_a_source_file(key):
    """As the models of the configuration have it."""
    assert is_key(key)


def test_text_that_is_no_configuration_key_is_recognized():
    """Also one level down, and after a list."""
    assert is_key("failover.on_missing_transactions")
    assert is_key("routes.keys")
    assert not is_key("switch.lost_transaction")
    assert not is_key("stores.url")

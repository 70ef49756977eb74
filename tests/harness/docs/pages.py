"""The commands, source files and code of the documentation, checked against the project."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from typer import BadParameter
from typer.main import get_command

from cdc_lib.cli.main import app
from cdc_lib.cli.registry import CommandWithMore
from cdc_lib.config import SourceConfig

ROOT = Path(__file__).parents[3]
USAGE_ERROR: Any = BadParameter.__base__
"""The base class of typer's errors for wrong arguments; typer exports only its subclasses."""

SHELLS = ("sh", "bash", "console", "shell")
_BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return every page of the site that is a file, and the README."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language, without the indentation that tabs give them."""
    return [inspect.cleandoc("\n" + body) for _, of, body in _BLOCK.findall(text) if of == language]


def commands(text: str) -> list[str]:
    """Return the ``cdc`` commands of a page's shell blocks, without pipes, redirections and comments."""
    lines = (line.strip().removeprefix("./dev ") for block in blocks(text, "sh") for line in block.splitlines())
    return [re.split(r" +#| \| | > | &$", line)[0].strip() for line in lines if line.startswith("cdc ")]


def shell_lines(text: str) -> list[str]:
    """Return every line of a page's shell blocks, without the comment after it and without prompts."""
    listed = (line for language in SHELLS for block in blocks(text, language) for line in block.splitlines())
    lines = (re.split(r"(?:^| +)# ", line)[0].strip().removeprefix("$ ") for line in listed)
    return [line for line in lines if line]


def languages(text: str) -> set[str]:
    """Return the languages of a page's code blocks; blocks without one are pictures."""
    return {language for _, language, _ in _BLOCK.findall(text)}


def usage_problem(command: str) -> str | None:
    """Parse a whole command and return the usage error: unknown options, wrong values, or too many arguments."""
    at: Any = get_command(app)
    words = shlex.split(command)[1:]
    context = at.make_context("cdc", [], resilient_parsing=True)
    while words and hasattr(at, "list_commands"):
        if words[0] == "--help":
            return None
        if words[0].startswith("-"):
            words.pop(0)
            continue
        word = words.pop(0)
        at = at.get_command(context, word)
        if at is None:
            return f"no command {word}"
    at = named_after(at, words)
    if "--help" in words:
        return None
    try:
        at.make_context("cdc", words, parent=context)
    except USAGE_ERROR as error:
        return error.format_message()
    return None


def named_after(at: Any, words: list[str]) -> Any:
    """Return the command that the next word of a command names, and take the word; the command itself if it names none."""
    inner = at.inner(words[0]) if words and isinstance(at, CommandWithMore) else None
    if inner is not None:
        words.pop(0)
    return inner or at


def dev_usage() -> dict[str, str]:
    """Return the commands of ``./dev``, each with its arguments as the usage shows them."""
    shown = (ROOT / "dev").read_text().partition("usage: ./dev COMMAND")[2].partition("\nenvironment:")[0]
    return dict(re.findall(r"^  ([a-z-]+)(.*?)  ", shown, flags=re.MULTILINE))


def dev_problem(line: str) -> str | None:
    """Return why ``./dev`` does not accept a line; None if its usage shows the command and its options."""
    words = shlex.split(line)[1:]
    if not words:
        return None
    if words[0] == "cdc":
        return usage_problem(shlex.join(words))
    usage = dev_usage()
    name = "bench" if words[0].startswith("bench-") else words[0]
    if name not in usage:
        return f"./dev has no command {words[0]}"
    wrong = [word for word in words[1:] if word not in usage[name] and "ARGS" not in usage[name] and name != "bench"]
    return f"./dev {name} does not take {wrong[0]}" if wrong else None


def problem_of(command: str) -> str | None:
    """Return the first word of a command that the typer app does not accept; None if it accepts all."""
    at: Any = get_command(app)
    words = shlex.split(command)[1:]
    known = {option for parameter in at.params for option in parameter.opts}
    while words and hasattr(at, "list_commands"):
        word = words.pop(0)
        if word.startswith("-"):
            if word not in known and word != "--help":
                return f"no option {word}"
            continue
        context = at.make_context("cdc", [], resilient_parsing=True)
        if word not in at.list_commands(context):
            return f"no command {word}"
        at = at.get_command(context, word)
    at = named_after(at, words)
    options = {option: p for p in at.params for option in (*p.opts, *p.secondary_opts) if option.startswith("-")}
    positional = 0
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            positional += 1
        elif word not in options and word != "--help":
            return f"no option {word}"
        elif word in options and not options[word].is_flag and words:
            words.pop(0)
    most = sum(p.nargs if p.nargs > 0 else 1_000 for p in at.params if p.param_type_name == "argument")
    return None if positional <= most else f"{positional} arguments where {most} are taken"


def unknown_keys(document: Any, models: list[type[BaseModel]] | None = None, path: str = "") -> Iterator[str]:
    """Yield the keys of a parsed source file that no model has."""
    models = [SourceConfig] if models is None else models
    if isinstance(document, list):
        for item in document:
            yield from unknown_keys(item, models, path)
        return
    if not isinstance(document, dict) or not models:
        return
    for key, value in document.items():
        fields = [model.model_fields[key] for model in models if key in model.model_fields]
        if not fields:
            yield f"{path}{key}"
            continue
        inner = [model for field in fields for model in models_of(field.annotation)]
        yield from unknown_keys(value, inner, f"{path}{key}.")


def models_of(annotation: Any) -> list[type[BaseModel]]:
    """Return the models in an annotation."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_of(part)]


def imports(code: str) -> list[tuple[str, str]]:
    """Return ``(module, name)`` of each ``from ... import`` of a Python block; fails if the block is not valid Python."""
    nodes = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom))
    return [(node.module or "", alias.name) for node in nodes for alias in node.names]

"""What the pages of the documentation say: their commands, source files and code, held against the project."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from typer.main import get_command

from cdc_lib.cli.main import app
from cdc_lib.config import SourceConfig

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return every page of the site that is a file, and the README."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language, without the indentation that tabs give them."""
    return [inspect.cleandoc("\n" + body) for _, found, body in _BLOCK.findall(text) if found == language]


def commands(text: str) -> list[str]:
    """Return the ``cdc`` commands of a page's shell blocks, without what follows them on the line."""
    lines = (line.strip().removeprefix("./dev ") for block in blocks(text, "sh") for line in block.splitlines())
    return [re.split(r" +#| \| | > | &$", line)[0].strip() for line in lines if line.startswith("cdc ")]


def problem_of(command: str) -> str | None:
    """Return what the typer app does not know of a command; None where it takes every word."""
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
    """Yield the keys of a source file, as YAML gave it, that no model has."""
    models = [SourceConfig] if models is None else models
    if isinstance(document, list):
        for one in document:
            yield from unknown_keys(one, models, path)
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
    """Return ``(module, name)`` of each ``from ... import`` of a Python block; it must be Python."""
    nodes = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom))
    return [(node.module or "", alias.name) for node in nodes for alias in node.names]

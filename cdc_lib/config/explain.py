"""Turns pydantic's errors into messages for the author of the file: location, key, given value, allowed values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from cdc_lib.config.documents import KeyPath, dotted

_SECRET_KEYS = ("password", "passwd", "pwd", "pass")
_SECRET_WORDS = ("pass", "pwd", "secret", "token", "credential", "auth", "access_key", "access-key", "_env")
_SECRET_PATHS = (("lake", "properties"), ("lake", "uri"), ("merge", "conf"))
"""Sections with settings of other programs, which may be secrets."""

_LIKE_A_LOG_IN = re.compile(r"@|(pass|pwd|secret|token|credential|key)[\w.-]*['\"]?\s*[=:]", re.IGNORECASE)


def explain(error: ValidationError, model: type[BaseModel], given: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
    """Return ``(key path, sentence)`` for each problem.

    Args:
        error: pydantic's error.
        model: the validated model.
        given: values as in the file, before variables are resolved, so that no variable's value is shown.
    """
    return [_one(problem, model, given) for problem in error.errors(include_url=False, include_context=False)]


def _one(problem: Any, model: type[BaseModel], given: Mapping[str, Any]) -> tuple[KeyPath, str]:
    path: KeyPath = tuple(problem["loc"])
    kind, message = problem["type"], str(problem["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return path, _unknown(path, model)
    if kind == "missing":
        return path, f"is missing{_allowed(model, path)}"
    shown = f" (given {_shown(path, given)})"
    if kind == "value_error":  # our own validators say themselves what is allowed
        value = _value(path, given)
        whole = _is_section(model, path) and isinstance(value, Mapping)  # too much to be shown
        return path, f"{message}{'' if value is None or whole else shown}"
    return path, f"{message[:1].lower()}{message[1:]}{shown}{_allowed(model, path)}"


def _unknown(path: KeyPath, model: type[BaseModel]) -> str:
    """Return a message that suggests a similar key; it has no value, because a misspelled key may be that of a secret."""
    key = str(path[-1])
    if difflib.get_close_matches(key.lower(), _SECRET_KEYS, n=1, cutoff=0.75):
        return (
            "a password is never in a file; write password_env: NAME of an environment variable that holds it, "
            "or connection: ID of an Airflow connection"
        )
    keys = list(_fields(model, path[:-1]))
    near = difflib.get_close_matches(key, keys, n=1, cutoff=0.6)
    meant = f"; did you mean {near[0]!r}?" if near else ";"
    return f"unknown key{meant} allowed: {', '.join(keys)}"


def _allowed(model: type[BaseModel], path: KeyPath) -> str:
    field = _fields(model, path[:-1]).get(str(path[-1])) if path else None
    return f"; allowed: {field.description}" if field is not None and field.description else ""


def _fields(model: type[BaseModel], path: Sequence[str | int]) -> Mapping[str, Any]:
    section = _section(model, path)
    return section.model_fields if section is not None else {}


def _is_section(model: type[BaseModel], path: KeyPath) -> bool:
    return _section(model, path) is not None


def _section(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    """Return the model at a key path, through optional sections."""
    here: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, int):  # an element of a list has the model that its list was followed to
            continue
        field = here.model_fields.get(str(part)) if here is not None else None
        here = _model_in(field.annotation) if field is not None else None
    return here


def _model_in(annotation: Any) -> type[BaseModel] | None:
    inside = {Union, UnionType, tuple}  # an optional section, or a list of sections
    choices = get_args(annotation) if get_origin(annotation) in inside else (annotation,)
    for choice in choices:
        if isinstance(choice, type) and issubclass(choice, BaseModel):
            return choice
    return None


def _shown(path: KeyPath, given: Mapping[str, Any]) -> str:
    """Return a value as text, unless its key or text suggests a secret."""
    value, text = _value(path, given), repr(_value(path, given))
    named = any(word in str(part).lower() for part in path for word in _SECRET_WORDS)
    if named or path[:2] in _SECRET_PATHS or _LIKE_A_LOG_IN.search(text):
        return "a value that is not shown"
    if value and isinstance(value, Mapping | list):  # what is in it has keys of its own
        return "keys and values" if isinstance(value, Mapping) else "a list"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _value(path: KeyPath, given: Any) -> Any:
    for part in path:
        if isinstance(given, Mapping):
            given = given.get(part)
        elif isinstance(given, list) and isinstance(part, int) and part < len(given):
            given = given[part]
        else:
            return None
    return given


def sentence(path: KeyPath, line: int | None, file: str, text: str) -> str:
    """Return one problem as one line: file and line, key, message."""
    location = f"{file}, line {line}" if line is not None else file
    return f"{location}: {dotted(path)}: {text}" if path else f"{location}: {text}"

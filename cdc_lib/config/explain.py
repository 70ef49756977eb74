"""What pydantic found wrong, in words for the person who wrote the file: place, key, value given, what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from cdc_lib.config.documents import KeyPath, dotted

_SECRET_KEYS = frozenset({"password", "passwd", "pwd", "pass"})
_SECRET_WORDS = ("password", "passwd", "pwd", "secret", "token", "access_key", "access-key")


def explain(error: ValidationError, model: type[BaseModel], given: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
    """Return ``(key path, sentence)`` for each problem.

    Args:
        error: what pydantic raised.
        model: the model that was validated.
        given: values as they stand in the file, before variables are filled in, so that none of those is shown.
    """
    return [_one(problem, model, given) for problem in error.errors(include_url=False, include_context=False)]


def _one(problem: Any, model: type[BaseModel], given: Mapping[str, Any]) -> tuple[KeyPath, str]:
    path: KeyPath = tuple(problem["loc"])
    kind, said = problem["type"], str(problem["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return path, _unknown(path, model, given)
    if kind == "missing":
        return path, f"is missing{_allowed(model, path)}"
    shown = f" (given {_shown(path, given)})"
    if kind == "value_error":  # our own validators say themselves what is allowed
        value = _value(path, given)
        whole = _is_section(model, path) and isinstance(value, Mapping)  # too much to be shown
        return path, f"{said}{'' if value is None or whole else shown}"
    return path, f"{said[:1].lower()}{said[1:]}{shown}{_allowed(model, path)}"


def _unknown(path: KeyPath, model: type[BaseModel], given: Mapping[str, Any]) -> str:
    key = str(path[-1])
    if key.lower() in _SECRET_KEYS:
        return (
            "a password never stands in a file; write password_env: NAME of an environment variable that holds it, "
            "or connection: ID of an Airflow connection"
        )
    keys = list(_fields(model, path[:-1]))
    near = difflib.get_close_matches(key, keys, n=1, cutoff=0.6)
    meant = f"; did you mean {near[0]!r}?" if near else ";"
    return f"unknown key (given {_shown(path, given)}){meant} allowed: {', '.join(keys)}"


def _allowed(model: type[BaseModel], path: KeyPath) -> str:
    field = _fields(model, path[:-1]).get(str(path[-1])) if path else None
    return f"; allowed: {field.description}" if field is not None and field.description else ""


def _fields(model: type[BaseModel], path: Sequence[str | int]) -> Mapping[str, Any]:
    section = _section(model, path)
    return section.model_fields if section is not None else {}


def _is_section(model: type[BaseModel], path: KeyPath) -> bool:
    return _section(model, path) is not None


def _section(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    """Follow a key path to the model that stands there, through optional sections."""
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
    """Show a value, unless its key says that it may be a secret."""
    if any(word in str(part).lower() for part in path for word in _SECRET_WORDS):
        return "a value that is not shown"
    text = repr(_value(path, given))
    if "@" in text:  # an address may hold a log-in
        return "a value that is not shown"
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
    """Put one problem on one line: where, which key, what."""
    place = f"{file}, line {line}" if line is not None else file
    return f"{place}: {dotted(path)}: {text}" if path else f"{place}: {text}"

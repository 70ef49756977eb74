"""``${NAME}`` and ``${NAME:-default}`` inside the texts of a source file.

As in a shell, the default is used for a variable that is unset or empty. ``$${`` is a literal ``${``. A text that consists of
one variable and is empty means no value (null), so that the environment can leave an optional key unset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cdc_lib.config.base import why_withheld
from cdc_lib.config.documents import KeyPath

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-(?P<text>[^}]*))?\}|(?P<odd>\$\{)")


class Unresolved(Exception):
    """A reference that cannot be resolved; its text says which and why."""


def fill_in(value: Any, environ: Mapping[str, str], problems: dict[KeyPath, str], at: KeyPath = ()) -> Any:
    """Return the value with all references resolved.

    Args:
        value: mappings, lists, texts and numbers of the YAML file.
        environ: the environment.
        problems: gets one line for each key whose text cannot be resolved.
        at: key path of the value.
    """
    if isinstance(value, Mapping):
        return {key: fill_in(item, environ, problems, (*at, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_in(item, environ, problems, (*at, index)) for index, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    try:
        return _text(value, environ)
    except Unresolved as error:
        problems[at] = str(error)
        return value


def _text(text: str, environ: Mapping[str, str]) -> str | None:
    filled = _REFERENCE.sub(lambda match: _one(match, environ), text)
    whole = _REFERENCE.fullmatch(text)
    return None if whole is not None and filled == "" else filled


def _one(match: re.Match[str], environ: Mapping[str, str]) -> str:
    if match["odd"]:
        raise Unresolved("${ begins a variable, written ${NAME} or ${NAME:-default}; a literal ${ is written $${")
    name = match["name"]
    if name is None:
        return "${"
    if why := why_withheld(name):
        raise Unresolved(why)
    value = environ.get(name)
    if match["default"] is not None:
        return value or match["text"]
    if value is None:
        raise Unresolved(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
    return value

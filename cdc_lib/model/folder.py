"""The one way from a name to a folder: no path is made of a name as it is.

Whoever may create a table at the source chooses its name, so that a name could be ``..``, hold slashes, or be read as a pattern or
as a part of an address. One folder belongs to one tuple of names, and to no other, also where a file system takes large
and small letters for the same.
"""

from __future__ import annotations

import hashlib
import re

from cdc_lib.errors import ConfigError

LONGEST_FOLDER = 180
"""Bytes of a folder's name, most file systems allow 255; what is longer ends in a hash of all names."""

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_$-]")
_HIDDEN = re.compile(r"^[_$-]")
_PLAIN_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_$.-]*")
_HASH_DIGITS = 32


def folder_of(*names: str) -> str:
    """Return names, of a database and a table say, as one folder: ``shop.orders``.

    * What is neither an ASCII letter or digit nor one of ``_ $ -`` becomes ``@`` and four hex digits, as MySQL names the files of
      such tables. A dot stands between names only; a first character of ``_ $ -`` would hide the folder from Spark, and goes too.
    * An empty name is a lone ``@``.
    * Where there are capital letters, ``@-`` and a number follow whose bits tell where: ``Orders@-1``.
    * What is longer than :data:`LONGEST_FOLDER` is cut, and ends in ``@@`` and a hash of the names.

    The result is ASCII, never empty, never begins with a dot and holds no slash. Nothing reads a name back from it.
    """
    text = _HIDDEN.sub(_escaped, ".".join(_NOT_PLAIN.sub(_escaped, name) or "@" for name in names))
    capitals = sum(1 << place for place, char in enumerate(text) if char.isupper())
    folder = f"{text}@-{capitals:x}" if capitals else text
    if len(folder) <= LONGEST_FOLDER:
        return folder
    digest = hashlib.sha256("\0".join(f"{len(name)}:{name}" for name in names).encode("utf-8", "surrogatepass"))
    return f"{text[: LONGEST_FOLDER - 2 - _HASH_DIGITS]}@@{digest.hexdigest()[:_HASH_DIGITS]}"


def is_plain_folder(name: str) -> bool:
    """Whether a name is a folder as it is: for catalogs that make folders of names and take no location."""
    return _PLAIN_FOLDER.fullmatch(name) is not None and len(name) <= LONGEST_FOLDER


def below(base: str, *folders: str) -> str:
    """Return the address of folders below a base, checked to stay there.

    Args:
        base: an address or a path without ``..``.
        *folders: what :func:`folder_of` gave.

    Raises:
        ConfigError: a part leads elsewhere.
    """
    for folder in folders:
        if folder in ("", ".", "..") or {"/", "\\"} & set(folder):
            raise ConfigError(
                f"{folder!r} cannot be a folder below {base}", hint="Names become folders by folder_of alone."
            )
    if leads_up(base):
        raise ConfigError(f"{base} has .. in it", hint="Write the folder that it leads to.")
    return "/".join((base.rstrip("/"), *folders))


def leads_up(address: str) -> bool:
    """Whether a part of an address or path is ``..``, written as it is or escaped as addresses do."""
    plain = re.sub("%2e", ".", address, flags=re.IGNORECASE)
    return ".." in re.split(r"[/\\]|%2f|%5c", plain, flags=re.IGNORECASE)


def _escaped(match: re.Match[str]) -> str:
    code_units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"@{code_units[i : i + 4]}" for i in range(0, len(code_units), 4))

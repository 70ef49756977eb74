"""Makes folder names from database and table names: no path contains a raw name.

Anyone who may create a table at the source chooses its name: it could be ``..``, contain slashes, or be read as a pattern or
as a part of a URL. One folder belongs to exactly one tuple of names, also on a case-insensitive file system.
"""

from __future__ import annotations

import hashlib
import re

from cdc_lib.errors import ConfigError

LONGEST_FOLDER = 180
"""Maximum bytes of a folder's name (most file systems allow 255). A longer one is cut and ends in a hash of all names."""

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_$-]")
_HIDDEN = re.compile(r"^[_$-]")
_PLAIN_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_$.-]*")
_HASH_DIGITS = 32
_LONGEST_TEXT = LONGEST_FOLDER - 2 - _HASH_DIGITS
"""Maximum bytes before the hash of a name that is cut."""


def folder_of(*names: str) -> str:
    """Return names, of a database and a table say, as one folder: ``shop.orders``.

    * A character other than ASCII letters, digits and ``_ $ -`` becomes ``@`` and four hex digits, as in MySQL's file
      names. A dot only separates names. A first character of ``_ $ -`` is encoded too: it would hide the folder from Spark.
    * An empty name is a single ``@``.
    * Capital letters add ``@-`` and a number whose bits are their indexes: ``Orders@-1``.
    * A name longer than :data:`LONGEST_FOLDER` is cut, and ends in ``@@`` and a hash of the names.

    The result is ASCII, never empty, never begins with a dot and has no slash. It is never decoded.
    """
    text = _text_of(names)
    capitals = sum(1 << index for index, char in enumerate(text) if char.isupper())
    folder = f"{text}@-{capitals:x}" if capitals else text
    if len(folder) <= LONGEST_FOLDER:
        return folder
    digest = hashlib.sha256("\0".join(f"{len(name)}:{name}" for name in names).encode("utf-8", "surrogatepass"))
    return f"{text[:_LONGEST_TEXT]}@@{digest.hexdigest()[:_HASH_DIGITS]}"


def front_of_folders(*names: str) -> str:
    """Return what all folders begin with whose first names are these; folders of other names may begin with it too."""
    return f"{_text_of(names)}."[:_LONGEST_TEXT]


def is_plain_folder(name: str) -> bool:
    """Whether a name can be a folder unchanged: for catalogs that derive folders from names and accept no location."""
    return _PLAIN_FOLDER.fullmatch(name) is not None and len(name) <= LONGEST_FOLDER


def below(base: str, *folders: str) -> str:
    """Return the address of folders below a base, checked to stay there.

    Args:
        base: an address or a path without ``..``.
        *folders: results of :func:`folder_of`.

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
    """Whether a part of a URL or path is ``..``, plain or percent-encoded."""
    plain = re.sub("%2e", ".", address, flags=re.IGNORECASE)
    return ".." in re.split(r"[/\\]|%2f|%5c", plain, flags=re.IGNORECASE)


def _text_of(names: tuple[str, ...]) -> str:
    return _HIDDEN.sub(_escaped, ".".join(_NOT_PLAIN.sub(_escaped, name) or "@" for name in names))


def _escaped(match: re.Match[str]) -> str:
    code_units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"@{code_units[i : i + 4]}" for i in range(0, len(code_units), 4))

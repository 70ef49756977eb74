"""Valid object keys, the same for all object stores."""

from __future__ import annotations

import re

from cdc_lib.errors import ConfigError

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")

LONGEST_KEY = 900
"""Maximum bytes of a key; S3 allows 1024 including the prefix."""

LONGEST_SEGMENT = 200
"""Maximum bytes between two slashes; file systems allow 255, and a temporary name needs some of them."""


def check_key(key: str) -> str:
    """Return the key if it is valid.

    A segment must not begin with a dot: ``.`` and ``..`` leave the folder. Other such names are a store's temporary files and
    locks, which are never listed.

    Raises:
        ConfigError: it is empty, absolute or too long, or leaves its folder.
    """
    segments = key.split("/")
    if any(not segment or segment.startswith(".") for segment in segments) or _CONTROL.search(key):
        raise ConfigError(
            f"{key!r} cannot be the key of an object",
            hint="It looks like shop/batches/x.json: no leading slash, no empty part, none that begins with a dot.",
        )
    if len(key.encode()) > LONGEST_KEY or any(len(segment.encode()) > LONGEST_SEGMENT for segment in segments):
        raise ConfigError(
            "the key of an object is too long",
            hint=f"{LONGEST_SEGMENT} bytes between slashes and {LONGEST_KEY} in all are the limit.",
            key=key,
        )
    return key


def check_prefix(prefix: str) -> str:
    """Return a key prefix if it is valid; it may end in the middle of a name.

    Raises:
        ConfigError: no key can begin with it.
    """
    folder, _, _ = prefix.rpartition("/")
    if folder or prefix.startswith("/"):
        check_key(folder)
    return prefix


def unreached(address: str, *, tls: bool = False) -> str:
    """Return the hint for a store that does not answer."""
    how = " and speaks TLS there" if tls else ""
    return f"It is retried. Check that {address} (store.endpoint_url) runs{how}, and that this machine reaches it: cdc doctor tries it."


def hint_of_missing(key: str) -> str:
    """Return the hint for an object that a document names and that does not exist."""
    source, _, rest = key.partition("/")
    restore = "or restore it from a backup or the store's versions."
    if rest.startswith("batches/"):
        return f"It was removed by hand: cdc batches refill {source} writes it again, {restore}"
    if rest.startswith("snapshots/"):
        return f"It was removed by hand: cdc snapshot {source} TABLE reads its table again, {restore}"
    return f"It was removed by hand: {restore.removeprefix('or ')}"

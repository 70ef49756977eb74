"""The raw events of a whole window, kept so that it can be decoded again without the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lib.model.cascades import Cascades
from cdc_lib.model.server_identity import ServerIdentity


@dataclass(frozen=True, slots=True)
class RawArchive:
    """Two files beside the Parquet of a window.

    Args:
        path: path of the events below the manifest's folder: the server's packets as one zstd stream.
        bytes: size of the file.
        sha256: hex digest of the file.
        received: bytes before compression.
        facts: path of the :class:`RawFacts`.
        facts_sha256: hex digest of that file.
    """

    path: str
    bytes: int
    sha256: str
    received: int
    facts: str
    facts_sha256: str


@dataclass(frozen=True, slots=True)
class RawFacts:
    """What the decoder needs from the server in addition to the events.

    Args:
        identity: identity of the server.
        variables: global variables that affect decoding.
        charsets: character set name of each collation number.
        kept: by ``database.table``, the lake mode of a table whose rows a statement changed.
        omittable_columns: by ``database.table``, the columns whose changes may be missing in an after image.
        cascades: foreign keys whose row changes are not in the binlog.
        made_of: by ``database.table``, the expressions of the generated columns of one whose columns a statement declared again.
    """

    identity: ServerIdentity
    variables: dict[str, str]
    charsets: dict[int, str]
    kept: dict[str, str] = field(default_factory=dict)
    omittable_columns: dict[str, list[str]] = field(default_factory=dict)
    cascades: Cascades = field(default_factory=Cascades)
    made_of: dict[str, dict[str, str]] = field(default_factory=dict)

"""The raw events of a whole window, kept so that it can be decoded again without the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lib.model.cascades import Cascades
from cdc_lib.model.server_identity import ServerIdentity


@dataclass(frozen=True, slots=True)
class RawArchive:
    """Two files beside the Parquet of a window.

    Args:
        path: of the events, below the manifest's own folder: what the server sent, packet by packet, as one zstd stream.
        bytes: size of the file.
        sha256: hex digest of the file.
        received: bytes before they were compressed.
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
    """What a decoder asked of the server beside the events.

    Args:
        identity: of the server.
        variables: its global variables on which the decoding depends.
        charsets: character set name of each collation number.
        kept: by ``database.table``, how the lake keeps a table of which a statement changed rows.
        untold: by ``database.table``, the columns whose changes an after image may leave out.
        cascades: what foreign keys change without the binlog.
    """

    identity: ServerIdentity
    variables: dict[str, str]
    charsets: dict[int, str]
    kept: dict[str, str] = field(default_factory=dict)
    untold: dict[str, list[str]] = field(default_factory=dict)
    cascades: Cascades = field(default_factory=Cascades)

"""A source at work: its file, its log-in, its store and its cursors; what steps, requests and readings of its state begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from cdc_lib.config import Credentials, SourceConfig, StoreKeys
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store.cursors import ObjectCursorStore, required_cursor
from cdc_lib.store.objects.open import open_store

if TYPE_CHECKING:
    # The driver takes its time, and readers of the store alone may not have it.
    from cdc_lib.mysql.connection import Session
    from cdc_lib.mysql.server_facts import ServerFacts


@dataclass(frozen=True, slots=True)
class Source:
    """One source at one of its servers.

    Args:
        config: its file; ``config.server`` is the server that is asked.
        credentials: its log-in; what only uses the store does not need it.
        store: object store of batches, cursors and cuts.
        cursors: the cursor store.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    cursors: CursorStore

    @classmethod
    def open(cls, config: SourceConfig, credentials: Credentials, keys: StoreKeys | None = None) -> Self:
        """Return a source without contacting server or store.

        Args:
            config: its file.
            credentials: its log-in.
            keys: of the store's S3 account; those of the environment without.

        Raises:
            ConfigError: an environment variable that should hold a key of the store is not set.
        """
        return cls.over(config, open_store(config.store, keys), credentials)

    @classmethod
    def over(cls, config: SourceConfig, store: ObjectStore, credentials: Credentials | None = None) -> Self:
        """Return a source whose batches and cursors are in an open store; without a log-in no server is asked."""
        return cls(config, credentials or Credentials("", ""), store, ObjectCursorStore(store))

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.config.source

    def cursor(self, consumer: str) -> Cursor | None:
        """Return a cursor as it is stored; None before its first write."""
        return self.cursors.load(self.name, consumer)

    def required(self, consumer: str) -> Cursor:
        """Return a cursor that must exist.

        Raises:
            CursorMoved: nothing was planned yet.
        """
        return required_cursor(self.cursors, self.name, consumer)

    def at(self, address: tuple[str, int]) -> Self:
        """Return the same source at another of its servers."""
        return self if address == self.config.addresses[0] else replace(self, config=self.config.at(*address))

    def at_cursor(self, drain: Cursor | None) -> Self:
        """Return the same source at the server of a drain cursor; see :meth:`cdc_lib.config.source.SourceConfig.at_server_of`."""
        return replace(self, config=self.config.at_server_of(drain))

    def at_its_server(self) -> Self:
        """Return the same source at the server of its drain cursor, which is loaded only where there are standbys."""
        return self.at_cursor(self.cursor(DRAIN) if self.config.standbys else None)

    def at_reachable(self) -> Self:
        """Return the same source at the server of its drain cursor, or at the first standby after it if that cannot be reached.

        A server that was given up may have extra changes: only an operator may go back to it.
        """
        from cdc_lib.mysql.connection import can_be_reached

        here = self.at_its_server().config.server
        candidates = self.config.addresses[self.config.addresses.index((here.host, here.port)) :]
        for candidate in candidates[:-1]:
            if can_be_reached(self.at(candidate).config.server, self.credentials, self.config.failover):
                return self.at(candidate)
        return self.at(candidates[-1])

    def with_text_keys(self, drain: Cursor) -> Self:
        """Return the same source whose lake holds the dates of some keys as text; see ``Cursor.text_keys``."""
        return replace(self, config=self.config.with_text_keys(drain.text_keys))

    def connect(self) -> Session:
        """Open a session at the server; close it.

        Raises:
            SourceError: see :func:`cdc_lib.mysql.connection.connect`.
        """
        from cdc_lib.mysql.connection import connect

        return connect(self.config.server, self.credentials)

    def facts(self) -> ServerFacts:
        """Log in, read the facts of the server, log out.

        Raises:
            SourceError: it cannot be reached, or a statement fails.
            UnsupportedServer: the user may not read the binlog status.
        """
        from cdc_lib.mysql.server_facts import facts_of

        return facts_of(self.config.server, self.credentials)

"""What stores in clouds have in common: a test of their conditional writes, and uploads in parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO, ClassVar

from cdc_lib.ports import ObjectStore, Unfinished
from cdc_lib.store.objects.keys import check_key, check_prefix
from cdc_lib.store.objects.own_write import written_under_condition
from cdc_lib.store.objects.probe import ConditionsProbe
from cdc_lib.store.objects.streams import Upload, completed


class CloudStore(ObjectStore, ABC):
    """Base of stores in a cloud; safe to share between threads.

    Before its first conditional write a process tries the store with a few tiny objects, once (see :meth:`probe`).

    Args:
        address: URL of the bucket or container, for messages.
        prefix: prefix of every key, without slashes at its ends; may be empty.
        endpoint_url: server in place of the cloud's own.
        patience: seconds after which a conditional write is not sent again.
    """

    _probe: ClassVar[ConditionsProbe] = ConditionsProbe()

    def __init__(self, address: str, prefix: str, endpoint_url: str | None, patience: float) -> None:
        self.prefix = check_key(prefix) if prefix else ""
        self._shown = f"{type(self).__name__}({address}/{self.prefix}, endpoint_url={endpoint_url})"
        self._patience = patience

    def __repr__(self) -> str:
        """Text for messages; holds no secret."""
        return self._shown

    @contextmanager
    def open_write(self, key: str) -> Iterator[BinaryIO]:
        """Stream a large object; it appears when the block ends without an error, else never."""
        with completed(self._upload_of(check_key(key))) as file:
            yield file

    def unfinished(self, prefix: str, before: datetime) -> Sequence[Unfinished]:  # noqa: ARG002 - as the port has it
        """Return unfinished writes that began before a time; nothing where the cloud itself removes them within a week."""
        check_prefix(prefix)
        return ()

    def discard(self, writes: Iterable[Unfinished]) -> None:
        """Remove unfinished writes."""

    def probe(self) -> None:
        """Test the conditional writes of this store, once per process.

        Raises:
            ConfigError: it ignores a condition, or access is denied.
            StoreUnavailable: it does not respond.
        """
        self._probe.once(self._shown, self)

    def _put_if(self, key: str, data: bytes, condition: Any) -> str | None:
        """Write under a condition until the answer is known; returns the etag, or None if the condition is false."""
        check_key(key)
        self.probe()
        return written_under_condition(self, key, data, lambda: self._send_if(key, data, condition), self._patience)

    @abstractmethod
    def _send_if(self, key: str, data: bytes, condition: Any) -> str | None:
        """Send a conditional write once; returns the etag, or None if the server refused the condition."""

    @abstractmethod
    def _upload_of(self, key: str) -> Upload:
        """Return the upload of an object."""

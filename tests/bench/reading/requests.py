"""What a get costs on S3: requests and bytes are counted between the client and a real S3 server."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pyiceberg.io.pyarrow import PyArrowFileIO

from cdc_lib.read.cache import Cache
from cdc_lib.read.snapshot import PinnedSnapshot
from cdc_lib.read.table import TableReader
from tests.bench.reading.readers import Client
from tests.harness.network.proxy import Proxy
from tests.harness.servers.s3 import S3Server

_METHODS = (b"GET ", b"HEAD ")


class CountingProxy(Proxy):
    """Forwards HTTP; counts requests and the bytes of the answers."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.requests = 0
        self.bytes = 0

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=self._answer, args=(client, server), daemon=True).start()
        while data := client.recv(1 << 16):
            self.requests += data.startswith(_METHODS)
            server.sendall(data)
        server.shutdown(socket.SHUT_RDWR)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                self.bytes += len(data)
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one get cost: milliseconds, requests, and KiB of the answers."""

    ms: float
    requests: int
    kib: float


def costs(pinned: PinnedSnapshot, rows: int, gets: int) -> list[Cost]:
    """Copy the files of a snapshot to S3, and return what a second get of each of some keys costs.

    Args:
        pinned: whose files are in a local folder.
        rows: of the table; every even key has a row or had one.
        gets: number of keys.
    """
    chosen = random.Random(3)
    keys = [2 * chosen.randrange(rows) for _ in range(gets)]
    found = []
    with (
        S3Server() as server,
        CountingProxy(server.host, server.port) as proxy,
        _copied(pinned, server, proxy.own_port) as moved,
    ):
        client = Client(TableReader(lambda: moved))
        for key in keys:
            client.get(key)
        for key in keys:
            requests, read = proxy.requests, proxy.bytes
            took, _ = client.get(key)
            found.append(Cost(took, proxy.requests - requests, (proxy.bytes - read) / 1024))
    return found


@contextmanager
def _copied(pinned: PinnedSnapshot, server: S3Server, port: int) -> Iterator[PinnedSnapshot]:
    bucket, client = server.make_bucket(), server.client()
    files = pinned.parts.files

    def moved(path: str) -> str:
        return f"s3://{bucket}/{Path(path).name}"

    for path in {*(one.path for one in files.data), *(one.path for one in files.vectors.values())}:
        client.upload_file(path.removeprefix("file://").removeprefix("file:"), bucket, Path(path).name)
    io = PyArrowFileIO(
        {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.region": server.region,
            "s3.access-key-id": server.access_key,
            "s3.secret-access-key": server.secret_key,
            "s3.force-virtual-addressing": "false",
        }
    )
    data = tuple(replace(one, path=moved(one.path)) for one in files.data)
    vectors = {moved(of): replace(one, path=moved(one.path), of_file=moved(of)) for of, one in files.vectors.items()}
    there = replace(files, data=data, vectors=vectors)
    yield PinnedSnapshot(replace(pinned.parts, files=there, io=io, cache=Cache()))

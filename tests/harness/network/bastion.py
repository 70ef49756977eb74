"""An SSH server in a process of its own, as a bastion is before a private network.

It is asyncssh's server, or OpenSSH's where that is installed. asyncssh's knows names of the private network that nothing else resolves.

    python -m tests.harness.network.bastion FOLDER PORT NAME=HOST ...
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import asyncssh

from tests.harness.servers.process import free_port

USER = "tunnel"
PASSPHRASE, PASSWORD = "0pen-sesame", "w1de-gate"
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


@dataclass
class Bastion:
    """Runs while its block runs.

    Args:
        folder: for keys and the list of what it was asked for.
        names: hosts of the private network, by the names that only it knows.
        kind: ``asyncssh`` or ``openssh``.
        forwards: False for one that allows no connections.
    """

    folder: Path
    names: Mapping[str, str] = field(default_factory=dict)
    kind: str = "asyncssh"
    forwards: bool = True

    def __post_init__(self) -> None:
        self.port = free_port()
        self.user = USER if self.kind == "asyncssh" else os.environ.get("USER", "root")
        self.key, self.known_hosts = self.folder / "user", self.folder / "known_hosts"
        host, user = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-ed25519")
        for name, key in (("host", host), ("user", user)):
            key.write_private_key(self.folder / name)
            (self.folder / name).chmod(0o600)
        user.write_private_key(self.folder / "locked", passphrase=PASSPHRASE, rounds=50)
        user.write_public_key(self.folder / "authorized_keys")
        self.fingerprint = host.get_fingerprint()
        self.known_hosts.write_bytes(b"[127.0.0.1]:%d %s" % (self.port, host.export_public_key()))

    def section(self, **changed: Any) -> dict[str, Any]:
        """Return ``server.ssh`` of a source file."""
        given = {"key_file": self.key, "known_hosts": self.known_hosts, "keepalive": "1s"}
        ours = {"host": "127.0.0.1", "port": self.port, "user": self.user, **given, **changed}
        return {name: value for name, value in ours.items() if value is not None}

    def start(self) -> None:
        """Start it and wait until it listens."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), stderr=log)
        until = time.monotonic() + 60
        while time.monotonic() < until and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; SIGKILL breaks all connections."""
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait()

    def asked(self) -> list[str]:
        """Return the hosts of the connections that it opened or refused, and the log-ins that it saw, in order."""
        file = self.folder / "asked"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _command(self) -> list[str]:
        if self.kind == "openssh":
            assert SSHD is not None
            settings = {
                "Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": self.folder / "host", "PidFile": "none",
                "AuthorizedKeysFile": self.folder / "authorized_keys", "UsePAM": "no", "StrictModes": "no",
                "AllowTcpForwarding": "yes" if self.forwards else "no",
            }  # fmt: skip
            return [SSHD, "-D", "-e", "-r", "-f", "/dev/null", *(f"-o{key}={value}" for key, value in settings.items())]
        known = [f"{name}={host}" for name, host in self.names.items()] if self.forwards else ["-"]
        return [sys.executable, "-m", "tests.harness.network.bastion", str(self.folder), str(self.port), *known]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()


class _Server(asyncssh.SSHServer):
    def __init__(self, folder: Path, names: Mapping[str, str] | None) -> None:
        self._folder, self._names = folder, names

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn

    def begin_auth(self, username: str) -> bool:
        self._note(f"log-in of {username}")
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:  # noqa: ARG002 - asyncssh's
        self._note(dest_host)
        if self._names is None:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "forwarding is off")
        return self._conn.forward_connection(self._names.get(dest_host, dest_host), dest_port)

    def _note(self, what: str) -> None:
        with (self._folder / "asked").open("a") as file:
            file.write(json.dumps(what) + "\n")


async def _main(folder: Path, port: int, known: list[str]) -> None:
    names = None if known == ["-"] else dict(one.split("=") for one in known)
    await asyncssh.listen(
        "127.0.0.1", port, server_host_keys=[folder / "host"], authorized_client_keys=str(folder / "authorized_keys"),
        server_factory=lambda: _Server(folder, names),
    )  # fmt: skip
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - it ends with its starter
        await asyncio.sleep(1)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))

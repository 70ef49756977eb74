"""Which host keys of an SSH server are accepted: those of a file, or the one with a fingerprint. None is accepted unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asyncssh import SSHClient, SSHKey

from cdc_lib.config import SshConfig
from cdc_lib.errors import ConfigError, TunnelRefused

_KINDS = ["ssh-ed25519", *(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521)), "rsa-sha2-512", "rsa-sha2-256"]
"""Kinds of plain host keys in the order in which they are asked for; a certificate has another fingerprint."""


class HostKeyCheck(SSHClient):
    """Decides about a host key that no file lists.

    Attributes:
        seen: kind and fingerprint of the key; empty if the file has it.
        failure: why the connection ended; empty while it works.
    """

    def __init__(self, ssh: SshConfig) -> None:
        self._ssh = ssh
        self.seen = ""
        self.failure = ""

    def options(self) -> dict[str, Any]:
        """Return the settings of a connection that belong to this check.

        Raises:
            ConfigError: the source file names no fingerprint, and there is no file of known keys.
        """
        if self._ssh.host_key is not None:
            return {"known_hosts": ([], [], []), "server_host_key_algs": _KINDS}
        file = self._ssh.known_hosts or Path("~/.ssh/known_hosts").expanduser()
        try:
            return {"known_hosts": file.read_bytes() or b"#"}
        except OSError as error:
            raise ConfigError(
                f"the host key of {self._ssh.named} cannot be checked: {file}: {error.strerror}",
                hint=f"Put the key there ({_SCAN.format(self._ssh)}), or its fingerprint into server.ssh.host_key.",
            ) from error

    def validate_host_public_key(self, host: str, addr: str, port: int, key: SSHKey) -> bool:  # noqa: ARG002 - asyncssh's
        """Return whether a key that no file lists has the fingerprint of the source file."""
        fingerprint = key.get_fingerprint("sha256")
        self.seen = f"{key.get_algorithm()} {fingerprint}"
        return fingerprint == self._ssh.host_key

    def connection_lost(self, exc: Exception | None) -> None:
        """Note why the connection ended."""
        self.failure = self.failure or str(exc or "the SSH server closed it")

    def refusal(self) -> TunnelRefused:
        """Return the error of a key that is not accepted."""
        known = (
            f"is not {self._ssh.host_key}"
            if self._ssh.host_key
            else f"is not in {self._ssh.known_hosts or '~/.ssh/known_hosts'}"
        )
        shown = self.seen or "a certificate"
        return TunnelRefused(
            f"the host key of {self._ssh.named} is not accepted: it shows {shown}, which {known}",
            hint="Nothing was sent. Compare with ssh-keygen -lf of the key on that host: if it is the right one, put it into "
            f"the file ({_SCAN.format(self._ssh)}), or its fingerprint into server.ssh.host_key. "
            "If it is not, another host answers.",
        )


_SCAN = "ssh-keyscan -p {0.port} {0.host}"

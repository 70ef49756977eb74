"""Advisories in the form of OSV (https://ossf.github.io/osv-schema/), read from files and given as OSV's service gives them.

OSV offers all advisories of an ecosystem as one archive, ``all.zip``. A machine without a way to the service audits with it.
"""

from __future__ import annotations

import json
import threading
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


class NotAdvisories(Exception):
    """A file holds no advisories in the form of OSV."""


class Advisories:
    """All advisories of some files.

    Args:
        files: JSON files, folders of them, or OSV's archives.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._by_package: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for file in files:
            found = 0
            for text in _texts(file):
                found += self._add(text, file)
            if not found:
                raise NotAdvisories(f"{file} holds no advisory in the form of OSV")

    def of(self, ecosystem: str, name: str, version: str) -> list[dict[str, Any]]:
        """Return the advisories that affect a version of a package."""
        key = (ecosystem, canonicalize_name(name) if ecosystem == "PyPI" else name)
        return [
            one
            for one in self._by_package[key]
            if any(_affects(part, version) for part in one["affected"] if _key(part) == key)
        ]

    def _add(self, text: bytes, file: Path) -> int:
        try:
            one = json.loads(text)
            keys = {_key(part) for part in one.get("affected", ())}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotAdvisories(f"{file} holds something else than advisories of OSV: {error}") from error
        if one.get("withdrawn"):
            return 1
        for key in keys:
            self._by_package[key].append(one)
        return len(keys)


def _texts(file: Path) -> Iterator[bytes]:
    if file.is_dir():
        yield from (one.read_bytes() for one in sorted(file.rglob("*.json")))
    elif zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            yield from (archive.read(name) for name in archive.namelist() if name.endswith(".json"))
    else:
        yield file.read_bytes()


def _key(affected: dict[str, Any]) -> tuple[str, str]:
    package = affected["package"]
    name = package["name"]
    return package["ecosystem"], canonicalize_name(name) if package["ecosystem"] == "PyPI" else name


def _affects(affected: dict[str, Any], version: str) -> bool:
    """Whether a version is listed, or lies in a range; a range that cannot be compared counts."""
    if version in affected.get("versions", ()):
        return True
    return any(
        _lies_in(found["events"], version)
        for found in affected.get("ranges", ())
        if found["type"] in ("ECOSYSTEM", "SEMVER")
    )


def _lies_in(events: list[dict[str, str]], version: str) -> bool:
    try:
        at = Version(version)
        parsed = sorted((Version(text), kind) for event in events for kind, text in event.items() if kind != "limit")
    except InvalidVersion:
        return True
    affected = False
    for bound, kind in parsed:
        if kind == "introduced" and at >= bound:
            affected = True
        elif (kind == "fixed" and at >= bound) or (kind == "last_affected" and at > bound):
            affected = False
    return affected


@contextmanager
def served(advisories: Advisories) -> Iterator[str]:
    """Answer queries as OSV's service does, on a port of this machine; gives the address of the query."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            package = query["package"]
            found = advisories.of(package["ecosystem"], package["name"], query["version"])
            body = json.dumps({"vulns": found} if found else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, name="advisories", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""A drain in its own process, so that it can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.network.tcp_proxy import TcpProxy


def through(capture: Capture, proxy: TcpProxy, folder: Path) -> Capture:
    """Return the same source, reached through a proxy, with a store in another folder."""
    return _capture(proxy.own_port, capture.server.cdc_user, capture.server.cdc_password, capture.database, folder)


def start(capture: Capture, folder: Path, window: Window) -> subprocess.Popen[bytes]:
    """Start a drain of a window into ``folder``."""
    server = capture.server
    job = [
        server.port,
        server.cdc_user,
        server.cdc_password,
        capture.database,
        str(folder),
        *map(str, (window.start, window.stop)),
    ]
    return subprocess.Popen([sys.executable, "-m", __name__, json.dumps(job)], cwd=Path(__file__).parents[3])


def _capture(port: int, user: str, password: str, database: str, folder: Path) -> Capture:
    server: Any = SimpleNamespace(host="127.0.0.1", port=port, cdc_user=user, cdc_password=password)
    return Capture(server, database, folder, drain={"row_group_rows": 50})


def main(port: int, user: str, password: str, database: str, folder: str, first: str, last: str) -> None:
    """Drain the window."""
    window = Window(SOURCE, 1, Position.parse(first), Position.parse(last))
    _capture(port, user, password, database, Path(folder)).drain(window)


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))

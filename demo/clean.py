"""``./dev demo-clean``: stop the demo and remove all it made."""

from __future__ import annotations

import os
import shutil
import signal
import time

from demo import database, server
from demo.paths import HOME, DemoError, State, running_pid, shown

STOP_SECONDS = 90


def clean() -> None:
    """Stop a running demo, drop its shop on the user's server, remove its folder.

    Raises:
        DemoError: it does not stop, or the shop on the user's server cannot be dropped.
    """
    _stop()
    if not HOME.exists():
        print("there is nothing to remove")
        return
    state = State.load()
    if state.server == "url" and state.made:
        if server.URL_VARIABLE not in os.environ:
            raise DemoError(
                f"the shop is on a server of yours: set {server.URL_VARIABLE} again, so that it can be dropped"
            )
        database.drop(server.start(state))
    shutil.rmtree(HOME)
    print(f"removed {shown(HOME)}")


def _stop() -> None:
    pid = running_pid()
    if pid is None:
        return
    print(f"stopping the demo (process {pid}) ...", flush=True)
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while running_pid() is not None:
        if time.monotonic() > deadline:
            raise DemoError(f"the demo (process {pid}) does not stop")
        time.sleep(0.2)

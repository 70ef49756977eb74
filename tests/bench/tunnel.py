"""A window drained directly, through an SSH server and through a SOCKS proxy on this machine: ``./dev bench tunnel``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from cdc_lib.config import Credentials, HopLogin
from cdc_lib.config.load import load_source
from cdc_lib.drain.window import Drainer
from cdc_lib.model.window import Window
from cdc_lib.mysql.server_facts import facts_of
from cdc_lib.mysql.tunnel.ssh import close_tunnels
from cdc_lib.source import Source
from cdc_lib.store.objects.local import LocalStore
from tests.bench.lake.end_to_end import source_file
from tests.bench.report import Figure, save, spread
from tests.bench.usage import ROOT
from tests.bench.workloads import DATABASE, WORKLOADS, Written, prepare, write
from tests.harness.network.bastion import Bastion
from tests.harness.network.socks_proxy import SocksProxy
from tests.harness.servers import MySqlServer

RUNS = 3


def main() -> int:
    """Write a workload, drain it each way in turns, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench tunnel", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the 1,000,000 rows (1)")
    parser.add_argument(
        "--kind", choices=("asyncssh", "openssh"), default="openssh", help="of the SSH server (openssh)"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "tunnel.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    with ExitStack() as stack:
        server = stack.enter_context(MySqlServer(settings={"max-binlog-size": "1G"}))
        prepare(server)
        written = write(server, WORKLOADS[0], options.scale)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lakecdc-bench-"))
        bastion = stack.enter_context(Bastion(Path(folder), {}, kind=options.kind))
        proxy = stack.enter_context(SocksProxy({server.host: server.host}))
        ways: dict[str, dict[str, object]] = {
            "directly": {},
            "through an SSH server": {"ssh": {key: str(value) for key, value in bastion.section().items()}},
            "through a SOCKS proxy": {"socks": {"host": "127.0.0.1", "port": proxy.port}},
        }
        took: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(RUNS + 1):
            for way, hop in ways.items():
                took[way].append(_seconds(server, bastion, written, hop))
        close_tunnels()
        version = f"{server.flavor} {server.version}"
    size = written.stop.offset - written.start.offset
    direct = min(took["directly"][1:])
    figures = []
    for way, seconds in took.items():
        runs = [size / each / 1e6 for each in seconds[1:]]
        compared = (
            {} if way == "directly" else {"compared_to": "directly", "ratio": round(direct / min(seconds[1:]), 2)}
        )
        figures.append(
            Figure(
                f"{written.workload.title}, drained {way}",
                round(max(runs), 1),
                "MB/s",
                spread=spread(runs, 1),
                **compared,
            )
        )
    for figure in figures:
        print(
            f"{figure.name}: {figure.value:,} MB/s"
            + (f", {figure.ratio} x {figure.compared_to}" if figure.ratio else "")
        )
    about = {
        "rows": written.rows,
        "bytes": size,
        "ssh_server": options.kind,
        "load_before": load,
        "runs": f"{RUNS} each way, in turns; the fastest counts; server, hop and drain share the machine, and the session is encrypted by TLS too",
        "warm_up": "one run each way is not counted",
    }
    save(figures, version, about, options.output)
    return 0


def _seconds(server: MySqlServer, bastion: Bastion, written: Written, hop: dict[str, object]) -> float:
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as name:
        folder = Path(name)
        source_file(folder, server, f"{DATABASE}.*", start="latest")
        config = load_source(folder / "bench.yaml")
        changed = config.server.model_validate({**config.server.model_dump(), **hop})
        config = config.model_copy(update={"server": changed})
        credentials = Credentials(
            server.cdc_user, server.cdc_password, hop=HopLogin(bastion.user if "ssh" in hop else "")
        )
        identity = facts_of(config.server, credentials).identity
        drainer = Drainer(Source.over(config, LocalStore(folder / "store"), credentials))
        began = time.perf_counter()
        drainer.window(Window("bench", 1, written.start, written.stop), identity)
        return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())

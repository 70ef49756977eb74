"""``./dev chaos`` and ``./dev soak``: kills steps at random, on the run's own servers and store."""

from __future__ import annotations

import argparse
import faulthandler
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.driver import Chaos
from tests.chaos.scenarios import Scenarios
from tests.chaos.settings import chaos_config
from tests.chaos.site import Site
from tests.harness.servers import S3Server


def main(arguments: list[str] | None = None) -> int:
    """Run until enough steps were killed; raises, with exit status 1, when a fault is found."""
    parser = argparse.ArgumentParser(prog="./dev chaos", description="Kill steps at random and compare every row.")
    parser.add_argument("--kills", type=int, default=200, help="minimum number of killed steps (200)")
    parser.add_argument("--minutes", type=float, default=0, help="minimum duration (0)")
    parser.add_argument("--all", action="store_true", help="all scenarios, for every seed")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 24), help="random when not given")
    parser.add_argument("--server", choices=("mysql", "mariadb"), default="mysql")
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    options = parser.parse_args(arguments)
    scenarios = Scenarios.every() if options.all else Scenarios.of(options.seed)
    print(f"seed {options.seed}; scenarios: {scenarios}", flush=True)
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="lakecdc-chaos-"))
        s3 = stack.enter_context(S3Server(folder / "s3")) if options.store == "s3" else None
        kind = "mysql with GTIDs" if options.server == "mysql" else "mariadb"
        site = stack.enter_context(Site(kind, apart=scenarios.clocks))
        config = chaos_config(site, "shop", folder, scenarios, s3)
        chaos = stack.enter_context(
            Chaos(
                site,
                config,
                "shop",
                folder,
                options.seed,
                merge_kills=max(1, options.kills // 8, int(options.minutes)),
                scenarios=scenarios,
                say=_say,
            )
        )
        try:
            chaos.run(options.kills, options.minutes)
        except BaseException:
            again = f"--minutes {options.minutes:g}{' --all' * options.all}"
            print(f"\nA FAULT; to run it again: ./dev chaos --kills {options.kills} {again} --seed {options.seed}"
                  f" --server {options.server} --store {options.store}\nits store, lake and logs: {folder}", flush=True)  # fmt: skip
            raise
        finally:
            print(chaos.killed.table())
            for name, count in sorted(chaos.events.items()):
                print(f"{name}: {count}" + (f" in {chaos.seconds[name]:.0f} s" if name in chaos.seconds else ""))
            print(f"{chaos.killed.total} kills in {time.monotonic() - began:.0f} s", flush=True)
        shutil.rmtree(folder)
    return 0


_BEGAN = time.monotonic()


def _say(line: str) -> None:
    print(f"{time.monotonic() - _BEGAN:6.1f} {line}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    faulthandler.register(signal.SIGUSR1)
    sys.exit(main())

"""``python -m demo``; ``./dev demo`` calls it in the right environment."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from demo.paths import DemoError

INTERRUPTED = 130


def main() -> int:
    """Run the demo, or ``clean`` or ``query``; 0 only if all differences are 0."""
    parser = argparse.ArgumentParser(prog="./dev demo", description="The main job on this machine, from shop to lake.")
    parser.add_argument("--keep", action="store_true", help="continue after the verdict until ^C or ./dev demo-clean")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of the shop at its beginning (200000)")
    parser.add_argument("--rate", type=float, default=50, help="transactions a second of the workload, at most (50)")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("clean", help="stop the demo and remove all it made")
    asked = commands.add_parser("query", help="SQL over the demo's lake")
    asked.add_argument("sql", help='for example "SELECT count(*) FROM orders"')
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return _do(options)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; nothing is left running. ./dev demo continues from here, ./dev demo-clean removes it")
        return INTERRUPTED


def _do(options: argparse.Namespace) -> int:
    """Import only what the command needs: cleaning must work even if other imports fail."""
    if options.command == "clean":
        from demo.clean import clean

        clean()
        return 0
    if options.command == "query":
        from demo.query import query

        query(options.sql)
        return 0
    from demo.run import Demo

    return 0 if Demo(options.rows, options.rate, options.keep).run() else 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Stop once; a second ^C must not interrupt the cleanup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    print("\nstopping ...", file=sys.stderr, flush=True)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

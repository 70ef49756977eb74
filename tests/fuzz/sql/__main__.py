"""``python -m tests.fuzz.sql``: many programs side by side, until the time is over."""

from __future__ import annotations

import argparse
import itertools
import logging
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.fuzz.sql.generate import FEATURES, Maker
from tests.fuzz.sql.program import LAKES, Program, parse
from tests.fuzz.sql.run import Outcome, recorded, run_program
from tests.fuzz.sql.shrink import Shrinker
from tests.fuzz.sql.types import FAMILIES
from tests.fuzz.sql.verdict import Failure
from tests.fuzz.sql.world import SERVERS, World

_SEEN = "seen: "
_FIGURES_SECONDS = 60


def main(arguments: list[str] | None = None) -> int:
    """Run programs; the exit status is 1 if one of them failed."""
    wanted = _parser().parse_args(arguments)
    logging.getLogger("cdc_lib").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="fuzz-sql-") as folder, World(Path(folder)) as world:
        world.spark.sparkContext.setLogLevel("ERROR")
        if wanted.replay:
            return 1 if [path for path in wanted.replay if _replayed(world, path) is not None] else 0
        hunt = Hunt(world, wanted)
        hunt.go()
    return 1 if hunt.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev fuzz sql", description="Generated SQL against the whole product.")
    parser.add_argument("--minutes", type=float, default=10, help="how long; programs that were begun are finished")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 20), help="random when not given")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--programs", type=int, default=1 << 30, help="how many at most")
    parser.add_argument("--server", choices=[*SERVERS, "both"], default="both")
    parser.add_argument("--metadata", choices=["FULL", "MINIMAL", "both"], default="both")
    parser.add_argument(
        "--only", nargs="+", choices=[*FEATURES, *FAMILIES], default=[], help="kinds of statements and of column types"
    )
    parser.add_argument(
        "--save", type=Path, help="folder for case files; what fails as one that it has is only counted"
    )
    parser.add_argument("--beside", type=int, default=4, help="programs side by side")
    parser.add_argument("--shrink", type=int, default=40, help="runs to make one program smaller")
    parser.add_argument("--replay", type=Path, nargs="+", help="run case files instead")
    return parser


def _replayed(world: World, path: Path) -> Failure | None:
    program = parse(path.read_bytes().decode())
    outcome = _run(world, program)
    print(f"{path}: {_told(outcome.failure)}", flush=True)
    for sql, answer in outcome.refused:
        print(f"  refused: {sql[:100]}: {answer}", flush=True)
    return outcome.failure


def _run(world: World, program: Program) -> Outcome:
    return run_program(world, program.flavor, recorded(program), program.metadata, program.lake)


def _told(failure: Failure | None) -> str:
    return "\n  ".join([failure.signature, *failure.detail]) if failure is not None else "equal after each part"


class Hunt:
    """Runs programs and shrinks those that fail.

    Attributes:
        failures: how often each signature was seen.
    """

    def __init__(self, world: World, wanted: argparse.Namespace) -> None:
        self._world, self._wanted = world, wanted
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._shrunk: set[str] = set()
        self.failures: Counter[str] = Counter()
        self._statements, self._refused, self._programs = 0, 0, 0
        for path in sorted(wanted.save.glob("*.sql")) if wanted.save else ():
            self._shrunk |= {
                line.removeprefix(_SEEN) for line in parse(path.read_bytes().decode()).about if line.startswith(_SEEN)
            }

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def go(self) -> None:
        """Run one program after another on each of some threads."""
        wanted = self._wanted
        print(f"seed {wanted.seed}", flush=True)
        flavors = list(SERVERS) if wanted.server == "both" else [wanted.server]
        settings = ["FULL", "MINIMAL"] if wanted.metadata == "both" else [wanted.metadata]
        kinds = list(itertools.product(LAKES, settings, flavors))
        numbers = iter(range(wanted.first, wanted.first + wanted.programs))
        with ThreadPoolExecutor(wanted.beside) as pool:
            running = [pool.submit(self._programs_of, numbers, kinds) for _ in range(wanted.beside)]
            while wait(running, timeout=_FIGURES_SECONDS).not_done:
                self._say_figures()
        for one in running:
            one.result()
        self._say_figures()

    def _programs_of(self, numbers: Iterator[int], kinds: Sequence[tuple[str, str, str]]) -> None:
        """Run programs until the time is over."""
        while self._seconds < self._wanted.minutes * 60:
            with self._lock:
                number = next(numbers, None)
            if number is None:
                return
            lake, metadata, flavor = kinds[number % len(kinds)]
            self._program(number, flavor, metadata, lake)

    def _program(self, number: int, flavor: str, metadata: str, lake: str) -> None:
        wanted = self._wanted
        maker = Maker(Random(f"{wanted.seed} {number}"), flavor, tuple(wanted.only))
        outcome = run_program(self._world, flavor, maker.feed(), metadata, lake)
        with self._lock:
            self._programs += 1
            self._statements += outcome.program.statements
            self._refused += len(outcome.refused)
        if outcome.failure is not None:
            self._failed(number, outcome.program, outcome.failure)

    def _failed(self, number: int, program: Program, failure: Failure) -> None:
        with self._lock:
            self.failures[failure.signature] += 1
            if failure.signature in self._shrunk:
                return
            self._shrunk.add(failure.signature)
        print(f"[{self._seconds:.0f} s] program {number}: {_told(failure)}", flush=True)
        again = self._again(program)
        if again is None:
            print(f"[{self._seconds:.0f} s] program {number} did not fail again:\n{program.text()}", flush=True)
            return
        shrinker = Shrinker(program, again, self._again, self._wanted.shrink)
        smallest = shrinker.smallest()
        with self._lock:
            self._shrunk.add(shrinker.failure.signature)
        about = (
            f"seed {self._wanted.seed}, program {number}",
            *(f"{_SEEN}{one}" for one in sorted({failure.signature, shrinker.failure.signature})),
            *(line[:300] for text in shrinker.failure.detail for line in text.split("\n")),
        )
        text = replace(smallest, about=about).text()
        print(
            f"[{self._seconds:.0f} s] program {number}, {program.statements} statements, as {smallest.statements}:\n{text}",
            flush=True,
        )
        if self._wanted.save:
            self._wanted.save.mkdir(parents=True, exist_ok=True)
            (self._wanted.save / f"{program.flavor}-{self._wanted.seed}-{number}.sql").write_text(text)

    def _again(self, program: Program) -> Failure | None:
        """Run a program again."""
        return run_program(self._world, program.flavor, recorded(program), program.metadata, program.lake).failure

    def _say_figures(self) -> None:
        each = "".join(f"\n  {count:4d} {signature}" for signature, count in self.failures.most_common())
        print(
            f"[{self._seconds:.0f} s] {self._programs} programs, {self._statements} statements, {self._refused} refused, "
            f"{sum(self.failures.values())} failed{each}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())

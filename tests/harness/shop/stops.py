"""Stops of docs/operations.md on a shop: what causes each, its message, and what the page says to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.harness.shop.source import PAGE, Shop

Deed = Callable[[Shop], object]


def nothing(_: Shop) -> None:
    """Do nothing: the command itself is wrong, or what the page says to do is another command."""


@dataclass(frozen=True)
class Stop:
    """A message of the page, what causes it, and what the page says to do.

    Args:
        message: as on the page.
        happens: causes it.
        command: prints it.
        do: what the page says.
        code: exit status of the command.
        then: commands that succeed afterwards.
        hint: a part of the hint that is printed with the message.
    """

    message: str
    happens: Deed
    command: str
    do: Deed
    code: int = 1
    then: tuple[str, ...] = ("cdc run shop",)
    hint: str = ""

    def follow(self, shop: Shop) -> None:
        """Cause it, read its message, and do what the page says."""
        assert f"`{self.message}`" in PAGE
        self.happens(shop)
        printed = " ".join(_run(shop, self.command, self.code).split())
        assert all(part.strip() in printed for part in self.message.split("…")), printed
        assert _filled(shop, self.hint) in printed, printed
        self.do(shop)
        for command in self.then:
            _run(shop, command)


def follow_all(shop: Shop, stops: Mapping[str, Stop], subtests: pytest.Subtests, *, last_change: int) -> None:
    """Follow each stop as a test of its own; after one more change the tables equal the source.

    Args:
        shop: where they happen.
        stops: by name.
        subtests: pytest's fixture.
        last_change: number of the change after them.
    """
    for name, stop in stops.items():
        with subtests.test(name):
            stop.follow(shop)
    shop.change(last_change)
    shop.runs(2)
    shop.assert_equal()


def _run(shop: Shop, command: str, code: int = 0) -> str:
    return shop.cdc(_filled(shop, command), code)


def _filled(shop: Shop, text: str) -> str:
    return text.format_map(vars(shop))


@dataclass(frozen=True)
class Others:
    """What other tasks and people do at a moment of a command's work.

    Args:
        patch: puts the functions back at the end of the test.
    """

    patch: pytest.MonkeyPatch

    def act_before(self, owner: Any, name: str, deed: Callable[[], object], times: int = 1) -> None:
        """Let somebody act just before a function of the command runs, the next few times."""
        self._act(owner, name, deed, times, before=True)

    def act_after(self, owner: Any, name: str, deed: Callable[[], object], times: int = 1) -> None:
        """Let somebody act just after a function of the command has run, the next few times."""
        self._act(owner, name, deed, times, before=False)

    def _act(self, owner: Any, name: str, deed: Callable[[], object], times: int, *, before: bool) -> None:
        original = getattr(owner, name)

        def with_deed(*arguments: Any, **named: Any) -> Any:
            self.patch.setattr(owner, name, original)
            result = None if before else original(*arguments, **named)
            deed()
            if times > 1:
                self._act(owner, name, deed, times - 1, before=before)
            return original(*arguments, **named) if before else result

        self.patch.setattr(owner, name, with_deed)

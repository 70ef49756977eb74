"""The desk at which the page asks stores: one that gives no answer holds back no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from cdc_airflow.page.desk import THREADS, Desk, NoAnswer, Question


@pytest.fixture
def silence() -> Iterator[threading.Event]:
    """What readers of a silent store wait for; set in the end, so that they end."""
    event = threading.Event()
    yield event
    event.set()


def answer(desk: Desk, question: Question[int], seconds: float = 30) -> int | None:
    """Ask as the page does, again as long as there is no answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return desk.ask(question)
        except NoAnswer:
            continue
    return None


def test_a_server_that_gives_no_answer_takes_no_reader_from_another(silence: threading.Event):
    """However many sources ask it: all of its readers wait, and the others read."""
    desk = Desk()
    silent = [Question(number, "store", "silent", silence.wait) for number in range(3 * THREADS)]
    found = desk.ask_all(silent)
    assert all(isinstance(one, NoAnswer) for one in found.values())
    assert answer(desk, Question("source", "another store", "another", lambda: 7)) == 7
    assert answer(desk, Question("neighbour", "store", "silent", lambda: 8), seconds=1) is None


def test_what_is_being_read_is_asked_for_once(silence: threading.Event):
    """Many readers of the page are one reader of the store."""
    desk, asked = Desk(), []

    def read() -> int:
        asked.append(1)
        silence.wait()
        return len(asked)

    question = Question("source", "store", "server", read)
    for _ in range(3):
        with pytest.raises(NoAnswer):
            desk.ask(question)
    silence.set()
    assert answer(desk, question) == 1

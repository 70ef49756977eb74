"""Binary JSON documents and their differences, against values that Python holds."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.binlog.types.json_diff import REMOVE, apply, parse
from cdc_lib.binlog.types.jsonb import JsonCodec
from tests.fuzz.streams import outcome
from tests.harness.binlog.json_changes import changes
from tests.harness.binlog.json_updates import partial_updates
from tests.harness.binlog.json_values import document, encode, text

_RANDOM = st.integers(0, 2**32).map(random.Random)


def printed(*documents: bytes) -> list[str]:
    sizes = np.array([len(document) for document in documents])
    codec = JsonCodec()
    codec.append(np.frombuffer(b"".join(documents), np.uint8), np.cumsum([0, *sizes[:-1]]), sizes, len(documents))
    return codec.finish().to_pylist()


@given(_RANDOM)
def test_documents_are_printed_as_the_values_that_they_hold(chosen):
    """One after the other, with offsets of either width; no text runs into the next."""
    values = [document(chosen) for _ in range(chosen.randint(1, 4))]
    assert printed(*[encode(value, chosen) for value in values]) == [text(value) for value in values]


@given(_RANDOM)
def test_differences_lead_to_the_document_that_they_say(chosen):
    """With any content next to the paths that they change."""
    before = document(chosen)
    data, after = changes(chosen, before)
    diffs = [(d, None if d.operation == REMOVE else printed(data[d.start : d.start + d.size])[0]) for d in parse(data)]
    assert apply(text(before), diffs) == text(after)


@given(_RANDOM)
def test_a_partial_update_ends_in_the_document_that_its_differences_lead_to(chosen):
    """Through the reader: in events with several rows, beside others that have whole documents."""
    stream, expected = partial_updates(chosen)
    found = outcome(stream, chosen)
    rows = [row for groups in found.plain.rows().values() for row in groups.to_pylist()]
    assert [(row["id"], row["j"]) for row in rows] == expected

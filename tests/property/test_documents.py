"""What is written down is read back as it was, whatever it is."""

from __future__ import annotations

import json

from hypothesis import given

from cdc_lib.store.documents import dump, load, to_plain, unit_from_plain
from tests.harness.generated import strategies


@given(strategies.DOCUMENTS)
def test_a_document_comes_back_as_it_was_written(model):
    """Every kind, with every text, number and time that it can hold."""
    again = load(type(model), dump(model), "here")
    assert again == model
    assert type(again) is type(model)


@given(strategies.DOCUMENTS)
def test_the_same_model_gives_the_same_bytes(model):
    """Also when it has been read in between; manifests are compared by their bytes."""
    assert dump(load(type(model), dump(model), "here")) == dump(model)


@given(strategies.windows() | strategies.TASKS)
def test_a_unit_of_work_survives_an_xcom(unit):
    """Which carries it as JSON."""
    assert unit_from_plain(json.loads(json.dumps(to_plain(unit)))) == unit

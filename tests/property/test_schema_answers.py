"""Law: an answer to a statement is what the source file would have said about it from the start."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.errors import SchemaChangeAsked
from cdc_lib.merge.load import load_batches
from cdc_lib.merge.stopped_statements import refuse_statements
from cdc_lib.merge.table_resets import statement_effects
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.failed_table import question_of
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import Point
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import SchemaAnswer
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, BatchWriter, at, table

ORDERS = table("shop.orders", {"id": BIGINT})
KEYS = {"truncate": "truncate", "drop": "drop_table"}
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """The manifest of a window without statements."""
    writer = BatchWriter(LocalStore(tmp_path_factory.mktemp("store")))
    (batch,) = load_batches(writer.store, [writer.window(4, 1000, {})])
    return batch.manifest


def with_statements(manifest, kinds):
    statements = (TableStatement(kind, ORDERS.name, at(10 * n)) for n, kind in enumerate(kinds, 1))
    return replace(manifest, statements=tuple(statements))


def answered(window, asks, decide):
    """Answer what a merge asks, one question after the other, and return the answers."""
    answers: tuple[SchemaAnswer, ...] = ()
    while True:
        try:
            refuse_statements(ORDERS.name, replace(asks, answers=answers), [window], None)
        except SchemaChangeAsked as error:
            question = question_of(error)
            assert question is not None
            assert question not in {one.question for one in answers}
            answers = (*answers, SchemaAnswer("shop", question, decide(question), "ann", NOW))
        else:
            return answers


@given(
    kinds=st.lists(st.sampled_from(["truncate", "drop", "create", "create_if_missing"]), max_size=6),
    truncate=st.sampled_from(["follow", "keep"]),
    drop=st.sampled_from(["follow", "keep"]),
)
def test_statements_have_the_effects_that_the_source_file_would_have_given_them(manifest, kinds, truncate, drop):
    """Each is asked about once, in order."""
    window = with_statements(manifest, kinds)
    said, asks = SchemaPolicy(truncate=truncate, drop_table=drop), SchemaPolicy(truncate="ask", drop_table="ask")
    answers = answered(window, asks, lambda question: said.of(question.kind))
    assert [one.question.position for one in answers] == [one.position for one in window.statements if one.kind in KEYS]
    found, expected = (
        statement_effects(ORDERS.name, [window], None, Marker(), policy)
        for policy in (replace(asks, answers=answers), said)
    )
    assert found == expected


@given(decisions=st.lists(st.sampled_from(["follow", "keep"]), min_size=1, max_size=6))
def test_an_answer_is_about_one_statement_only(manifest, decisions):
    """Rows are removed at the last TRUNCATE that is followed, and are kept at those after it."""
    window = with_statements(manifest, ["truncate"] * len(decisions))
    asks = SchemaPolicy(truncate="ask")
    answers = answered(window, asks, lambda question: decisions[question.position.offset // 10 - 1])
    found = statement_effects(ORDERS.name, [window], None, Marker(), replace(asks, answers=answers))
    points = [Point(1, 1, 10 * n) for n in range(1, len(decisions) + 1)]
    followed = [at for at, one in zip(points, decisions, strict=True) if one == "follow"]
    assert found.before == (followed[-1] if followed else None)
    assert found.kept == tuple(at for at in points if not followed or at > followed[-1])

"""Stores what people answered about schema changes: one document for each statement, never replaced."""

from __future__ import annotations

from cdc_lib.model.schema_question import SchemaAnswer, SchemaQuestion
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def stored_answers(store: ObjectStore, source: str) -> tuple[SchemaAnswer, ...]:
    """Return all answers of a source, by table and position."""
    keys = sorted(info.key for info in store.list(layout.answers_prefix(source)) if info.key.endswith(".json"))
    return tuple(found for key in keys if (found := documents.find(SchemaAnswer, store, key)) is not None)


def find_answer(store: ObjectStore, source: str, question: SchemaQuestion) -> SchemaAnswer | None:
    """Return the answer to a question; None without one."""
    return documents.find(SchemaAnswer, store, layout.answer_key(source, question))


def keep_answer(store: ObjectStore, answer: SchemaAnswer) -> bool:
    """Write an answer unless the question has one; returns whether it was written."""
    return store.put_if_absent(layout.answer_key(answer.source, answer.question), documents.dump(answer))

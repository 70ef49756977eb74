"""Questions about schema changes that wait for a person, and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.model.failed_table import Stopped
from cdc_lib.model.held_table import HeldTable
from cdc_lib.model.position import Position
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import DECISIONS, Decision, SchemaAnswer, SchemaQuestion
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.source import Source
from cdc_lib.store.failed_tables import last_stopped
from cdc_lib.store.schema_answers import find_answer, keep_answer, stored_answers


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A statement at which the last merge of a table stopped.

    Args:
        question: the statement.
        lake_table: the full name of the table that waits.
        since: when that merge ended (UTC).
        what: what the source did.
        answer: what the next merge applies; None while nobody has answered.
    """

    question: SchemaQuestion
    lake_table: str
    since: datetime
    what: str
    answer: SchemaAnswer | None = None

    @property
    def outlook(self) -> str:
        """What happens next, once the question is answered; empty before."""
        given = self.answer
        return f"{given.by} has answered {given.decision}. The next merge applies it." if given is not None else ""


def answers_for(config: SourceConfig, store: ObjectStore) -> tuple[SchemaAnswer, ...]:
    """Return the answers that a merge of a source applies; the store is not asked where no change waits for a person."""
    return stored_answers(store, config.source) if config.schema_changes.asks else ()


def policy_of(config: SourceConfig, table: TableName, answers: Sequence[SchemaAnswer]) -> SchemaPolicy:
    """Return what the source file and the answers say about statements on a table."""
    policy = config.schema_changes.policy(*table.pair)
    mine = tuple(one for one in answers if one.question.table == table)
    return replace(policy, answers=mine) if mine else policy


def undecided(source: Source, held: Iterable[HeldTable]) -> frozenset[TableName]:
    """Return the tables that stopped at statements which the source file and the answers still leave undecided."""
    stopped = [(one, one.stopped) for one in held if one.stopped is not None]
    answers = answers_for(source.config, source.store) if stopped else ()
    policies = ((one.table, at, policy_of(source.config, at.question.table, answers)) for one, at in stopped)
    return frozenset(table for table, at, policy in policies if at.is_undecided(policy))


def open_questions(store: ObjectStore, source: str) -> list[OpenQuestion]:
    """Return the statements at which tables wait, also those that are answered and not merged yet."""
    return questions_of(store, last_stopped(store, source))


def questions_of(store: ObjectStore, stopped: Stopped | None) -> list[OpenQuestion]:
    """Return the questions among the tables that stopped in the last merge of a source.

    Args:
        store: keeps the answers.
        stopped: these tables; None if there are none.
    """
    if stopped is None:
        return []
    return [
        OpenQuestion(
            one.question,
            one.lake_table,
            one.since or stopped.at,
            one.what,
            find_answer(store, stopped.source, one.question),
        )
        for one in stopped.tables
        if one.question is not None
    ]


def answer_question(
    source: Source, table: str, decision: Decision, position: Position | None = None, *, by: str
) -> SchemaAnswer:
    """Record the answer about the statement at which a table waits; the next merge applies it.

    The same answer given twice is one answer.

    Args:
        source: the source; its server is not asked.
        table: ``database.table``.
        decision: what the lake does.
        position: of the statement; None for the one at which the table waits.
        by: who answers, for people.

    Raises:
        ConfigError: the table does not wait at this statement, the decision is not possible there, the source file no longer
            asks, or somebody has answered otherwise. Nothing was recorded.
    """
    question = find_question(source, table, decision, position)
    answer = SchemaAnswer(source.name, question, decision, by, datetime.now(UTC))
    if keep_answer(source.store, answer):
        return answer
    before = find_answer(source.store, source.name, question)
    if before is None or before.decision != decision:
        raise ConfigError(
            f"{before.by if before else 'somebody'} has answered {before.decision if before else 'otherwise'}",
            hint=f"An answer is not changed. Until it is merged, schema_changes.{question.kind} of the source file can replace it.",
            source=source.name,
            table=question.table,
        )
    return before


def find_question(source: Source, table: str, decision: Decision, position: Position | None = None) -> SchemaQuestion:
    """Return the statement that an answer would be about; nothing is recorded.

    Args:
        source: the source; its server is not asked.
        table: ``database.table``.
        decision: what the lake would do.
        position: of the statement; None for the one at which the table waits.

    Raises:
        ConfigError: the table does not wait at this statement, the decision is not possible there, or the source file no
            longer asks.
    """
    question = asked_at(source.config, last_stopped(source.store, source.name), TableName.parse(table), position)
    refuse_decision(question, decision, source.name)
    return question


def asked_at(
    config: SourceConfig, stopped: Stopped | None, table: TableName, position: Position | None
) -> SchemaQuestion:
    """Return the question at which a table waits.

    Args:
        config: the source.
        stopped: the tables that stopped in the last merge; None if there are none.
        table: the source table.
        position: of the statement; None for the one at which the table waits.

    Raises:
        ConfigError: there is no such question.
    """
    asked = [one.question for one in (stopped.tables if stopped is not None else ()) if one.question is not None]
    found = [one for one in asked if one.table == table and position in (None, one.position)]
    if not found:
        raise ConfigError(
            f"{table} does not wait for an answer{f' at {position}' if position is not None else ''}",
            hint=_waiting(asked, config.source),
            source=config.source,
        )
    question = found[0]
    if config.schema_changes.policy(*table.pair).of(question.kind) != "ask":
        raise ConfigError(
            f"the source file no longer asks about {question.kind} of {table}",
            hint=f"Merge again: schema_changes.{question.kind} of the source file applies.",
            source=config.source,
        )
    return question


def refuse_decision(question: SchemaQuestion, decision: Decision, source: str) -> None:
    """Refuse a decision that would leave the lake's rows wrong.

    Raises:
        ConfigError: the decision is not possible for the kind of change.
    """
    if decision not in DECISIONS[question.kind]:
        raise ConfigError(
            f"{decision} is not possible for {question.kind}",
            hint=f"Answer {' or '.join(DECISIONS[question.kind])}.",
            source=source,
            table=question.table,
        )


def _waiting(asked: Sequence[SchemaQuestion], source: str) -> str:
    if not asked:
        return f"No table of {source} waits. Questions are asked by a merge."
    listed = (f"{one.table} at {one.position} ({one.kind}: {' or '.join(DECISIONS[one.kind])})" for one in asked)
    return f"These wait: {', '.join(listed)}."

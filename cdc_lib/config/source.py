"""The whole of one source file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from cdc_lib.config.approvals import ApprovalsConfig
from cdc_lib.config.base import Duration, Section, TimeZoneName, VariableName
from cdc_lib.config.booleans import BooleanRule
from cdc_lib.config.columns import ColumnsRule, MaskRule
from cdc_lib.config.computed import ComputedRule
from cdc_lib.config.lake import LakeConfig
from cdc_lib.config.layouts import LayoutRule
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.config.modes import ModeRule
from cdc_lib.config.patterns import database_of, matches
from cdc_lib.config.reselect import ReselectConfig
from cdc_lib.config.routes import FilterRule, RouteRule
from cdc_lib.config.rules import TablePattern
from cdc_lib.config.schedule import ON_CHANGE, problem
from cdc_lib.config.schema_changes import SchemaChangesConfig
from cdc_lib.config.sealed_days import SealedDaysConfig
from cdc_lib.config.server import Address, ServerConfig
from cdc_lib.config.start import ALLOWED, FailoverConfig, Start
from cdc_lib.config.store import StoreConfig
from cdc_lib.config.tables import TablesConfig
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.config.work import DrainConfig, MergeConfig, SnapshotConfig
from cdc_lib.model.cascades import OnCascade
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.table_name import TableName
from cdc_lib.model.value_policy import InvalidText, LegacyTemporals, OnError, ValuePolicy, ZeroDates

SOURCE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
"""Names of sources: they are in object keys, DAG ids and lake namespaces."""


class SourceConfig(Section):
    """One MySQL or MariaDB server whose binlog is followed into a lake.

    Args:
        source: the source's name; is in object keys, DAG ids and lake namespaces.
        server: how the server is reached.
        standbys: servers that take over in this order when ``server`` cannot be reached; log-in and TLS are the same.
        tables: which tables are captured.
        columns: which of their columns are captured; all without a rule.
        masks: columns that are stored masked.
        mask_key_env: environment variable with the key of the hashes.
        mask_key_connection: Airflow connection whose password is the key of the hashes.
        routes: lake tables other than those of the same name.
        filters: rows that the lake keeps.
        modes: modes of lake tables; ``mirror`` without a rule.
        layouts: partitions, sort order, properties and format of lake tables.
        booleans: TINYINT columns that the lake holds as booleans.
        computed: lake columns that are computed from the other columns of a row.
        comments: tables whose comments, and those of their columns, the lake tables get.
        schema_changes: what lake tables do about columns, tables and rows that statements add or remove at the source.
        start: where a source without a cursor begins.
        failover: what happens when another server answers.
        schedule: cron expression of the DAG, or ``on_change`` for a run when the binlog has grown; None for runs by hand only.
        timezone: time zone of ``schedule``, ``verify.schedule`` and ``verify.cover_schedule``.
        store: object store of batches and cursors.
        lake: catalog of the lake tables.
        drain: planning windows and reading the binlog.
        snapshot: reading tables by SELECT.
        merge: the Spark application.
        maintenance: compaction and cleanup of lake tables.
        reselect: rows that the merge re-selects from the source.
        verify: comparing tables with their source.
        sealed_days: when a day counts as complete in the lake.
        approvals: what waits in Airflow until a person has approved it.
        retention_warning: warn if the server may purge what is drained next within this time.
        raw_archive: whether the raw events of each window are stored with its batch.
        on_error: whether an error in one table stops the source, or quarantines that table.
        cascades: whether tables that foreign keys changed without binlog events are read again, stop the source, or are ignored.
        zero_dates: how ``0000-00-00`` is stored, which no date type can hold.
        invalid_text: how bytes are stored that are not valid in their column's character set.
        legacy_temporals: whether MariaDB columns in the format before 5.6 may be read as having no fraction.
    """

    source: str = Field(pattern=SOURCE_NAME, description="letters, digits, - and _; equal to the file's name")
    server: ServerConfig = Field(description="host, port, user, password_env or connection, ...")
    standbys: tuple[Address, ...] = Field(default=(), description="list of host, port")
    tables: TablesConfig = Field(description='a list of patterns such as ["shop.*"], or include and exclude')
    columns: tuple[ColumnsRule, ...] = Field(default=(), description="list of tables, include, exclude")
    masks: tuple[MaskRule, ...] = Field(default=(), description="list of tables, columns, mask, text, characters")
    mask_key_env: VariableName | None = Field(
        default=None, description="name of the environment variable that holds the key of the hashes"
    )
    mask_key_connection: str | None = Field(default=None, min_length=1, description="id of an Airflow connection")
    routes: tuple[RouteRule, ...] = Field(default=(), description="list of tables, into, keys, columns, where")
    filters: tuple[FilterRule, ...] = Field(default=(), description="list of tables, where")
    modes: tuple[ModeRule, ...] = Field(default=(), description="list of tables, mode")
    layouts: tuple[LayoutRule, ...] = Field(
        default=(), description="list of tables, partition_by, sort_by, properties, format_version, write_mode"
    )
    booleans: tuple[BooleanRule, ...] = Field(default=(), description="list of tables, columns, other_values")
    computed: tuple[ComputedRule, ...] = Field(default=(), description="list of tables, columns")
    comments: tuple[TablePattern, ...] = Field(
        default=("*.*",), description='list of patterns of tables, for example ["shop.*"]; [] for none'
    )
    schema_changes: SchemaChangesConfig = Field(
        default=SchemaChangesConfig(),
        description="add_column, drop_column, widen, narrow, rename, drop_table, truncate, tables",
    )
    start: Start = Field(default="snapshot", description=ALLOWED)
    failover: FailoverConfig = Field(
        default=FailoverConfig(), description="fallback_interval, on_missing_transactions, attempts, ..."
    )
    schedule: str | None = Field(
        default="*/5 * * * *",
        description='cron expression in timezone such as "*/5 * * * *", on_change (when the binlog has grown), or null (by hand)',
    )
    timezone: TimeZoneName = Field(
        default="UTC",
        description="name of a time zone such as Europe/Berlin: that of schedule, verify.schedule and verify.cover_schedule",
    )
    store: StoreConfig = Field(description="url and, for S3, endpoint_url, region, ...")
    lake: LakeConfig = Field(description="catalog, type, uri, warehouse, namespace, foreign_changes, properties")
    drain: DrainConfig = Field(default=DrainConfig(), description="max_window_bytes, max_windows, parallelism, ...")
    snapshot: SnapshotConfig = Field(
        default=SnapshotConfig(), description="chunk_rows, run_for, range_bytes, max_ranges"
    )
    merge: MergeConfig = Field(
        default=MergeConfig(), description="spark_server, connection, spark_master, driver_memory, parallelism, conf"
    )
    maintenance: MaintenanceConfig = Field(
        default=MaintenanceConfig(),
        description="keep_snapshots_for, keep_orphans_for, max_deleted_ratio, min_small_files",
    )
    reselect: ReselectConfig = Field(
        default=ReselectConfig(), description="mode, when_lag_exceeds, max_keys, connections, tables"
    )
    verify: VerifyConfig = Field(
        default=VerifyConfig(), description="schedule, tables, chunk_rows, statement_delay, wait, max_rows"
    )
    sealed_days: SealedDaysConfig = Field(default=SealedDaysConfig(), description="time_zone, delay")
    approvals: ApprovalsConfig = Field(
        default=ApprovalsConfig(), description="rewind, resume, answer, repair_rows, timeout"
    )
    retention_warning: Duration = Field(
        default=timedelta(hours=24),
        description="a duration such as 24h: a warning is given when the server may purge what is drained next sooner",
    )
    raw_archive: bool = Field(
        default=False, description="true or false: keep the raw events of each window, of all tables of the server"
    )
    on_error: OnError = Field(default="stop", description="stop or quarantine")
    cascades: OnCascade = Field(default="snapshot", description="snapshot, stop or ignore")
    _text_keys: frozenset[TableName] = PrivateAttr(default=frozenset())
    zero_dates: ZeroDates = Field(default="null", description="null, string or error")
    invalid_text: InvalidText = Field(default="error", description="error or replace")
    legacy_temporals: LegacyTemporals = Field(default="error", description="error or no_fraction")

    @field_validator("zero_dates", mode="before")
    @classmethod
    def _unquoted_null(cls, value: object) -> object:
        """Accept an unquoted ``null``, which YAML parses as no value."""
        return "null" if value is None else value

    @field_validator("schedule")
    @classmethod
    def _cron(cls, expression: str | None) -> str | None:
        wrong = problem(expression) if expression not in (None, ON_CHANGE) else None
        if wrong:
            raise ValueError(wrong)
        return expression

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of the server and its standbys, in the order in which they take over."""
        return ((self.server.host, self.server.port), *((one.host, one.port) for one in self.standbys))

    def at(self, host: str, port: int) -> SourceConfig:
        """Return the same source with another of its addresses as the server."""
        return self.model_copy(update={"server": self.server.model_copy(update={"host": host, "port": port})})

    def at_server_of(self, cursor: Cursor | None) -> SourceConfig:
        """Return the same source at the server of a drain cursor if the file still names that; else at the first one it names."""
        known = (cursor.identity.host, cursor.identity.port) if cursor is not None else None
        return self.at(*known) if known is not None and known in self.addresses else self

    def carries_comments(self, database: str, table: str) -> bool:
        """Whether the lake gets the comments of a table: it is captured, and a pattern covers it."""
        return self.tables.captures(database, table) and any(matches(one, database, table) for one in self.comments)

    @property
    def values(self) -> ValuePolicy:
        """Policies for values that the lake's types cannot hold."""
        return ValuePolicy(self.zero_dates, self.invalid_text, self.legacy_temporals, self._text_keys)

    def with_text_keys(self, tables: Iterable[TableName]) -> SourceConfig:
        """Return the same source whose lake holds the dates of these tables' keys as text; see ``Cursor.text_keys``."""
        found = self.model_copy()
        found._text_keys = frozenset(tables)  # noqa: SLF001 - of its own class
        return found

    @model_validator(mode="after")
    def _one_namespace_per_database(self) -> Self:
        """Refuse one namespace for several databases: their tables of the same name would share a lake table."""
        databases = {database_of(pattern) for pattern in self.tables.include}
        one = len(databases) == 1 and None not in databases
        if not one and "{database}" not in self.lake.namespace:
            raise ValueError(
                f"lake.namespace {self.lake.namespace!r} must hold {{database}}: tables.include names several "
                "databases, whose tables of one name would be mixed"
            )
        return self

    @model_validator(mode="after")
    def _hashes_have_a_key(self) -> Self:
        """Refuse hashes without a key: they can be reversed by hashing all possible values."""
        if self.hashes and self.mask_key_env is None and self.mask_key_connection is None:
            raise ValueError(
                "masks with hash need mask_key_env: NAME (an environment variable) or mask_key_connection: ID (Airflow's)"
            )
        return self

    @model_validator(mode="after")
    def _raw_events_show_everything(self) -> Self:
        """Refuse raw events with masks or columns: they contain what must not be stored."""
        if self.raw_archive and (self.masks or self.columns):
            raise ValueError(
                "raw_archive keeps what the server sends as it is: it cannot be used with masks or columns"
            )
        return self

    @property
    def hashes(self) -> bool:
        """Whether any mask needs the key."""
        return any(rule.mask == "hash" for rule in self.masks)

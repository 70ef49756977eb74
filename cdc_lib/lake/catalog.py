"""Reads lake tables with PyIceberg, without Spark. Needs the ``read`` extra of the installation.

Other engines get the rows as Arrow tables. DuckDB's Iceberg reader needs an extension from DuckDB's server;
`tests/integration/spark/test_duckdb_reader.py` compares its rows if the extension can be installed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from requests import RequestException, Response
from sqlalchemy.exc import OperationalError

from cdc_lib.config import LakeConfig, SourceConfig, StoreConfig, StoreKeys, store_keys_from_environment
from cdc_lib.config.shape import targets_of
from cdc_lib.errors import CdcError, ConfigError, LakeMissing, LakeRefused, StoreError, StoreUnavailable
from cdc_lib.lake import file_io
from cdc_lib.lake.log_in import is_over
from cdc_lib.lake.s3_settings import takes_settings_of_store
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.table_name import TableName

_SPARK_ONLY = frozenset({"io-impl", "type", "catalog-impl", "uri", "warehouse"})
"""Properties that name Java classes, or that have settings of their own in the source file."""


def preview(config: SourceConfig, table: str, limit: int) -> pa.Table:
    """Return some rows of a table, in no particular order.

    Args:
        config: the source.
        table: ``database.table`` at the source.
        limit: how many rows at most.

    Raises:
        ConfigError: there is no such lake or no such table, or the catalog's type cannot be read without Spark.
    """
    with open_table(config, table) as opened, translate_errors(table):
        return opened.scan(limit=limit).to_arrow()


def shown(rows: pa.Table) -> dict[str, list[Any]]:
    """Return the cells of each column for display and JSON.

    Numbers and booleans are unchanged, bytes are hex digits, everything else is text: Python has no dates of the year 0,
    but the lake may.
    """
    return {name: list(map(_shown, _readable(rows.column(name)).to_pylist())) for name in rows.column_names}


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string()) if pa.types.is_temporal(column.type) else column


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


@contextmanager
def open_table(config: SourceConfig, table: str) -> Iterator[Table]:
    """Open the lake table of ``database.table``, and close its catalog in the end.

    Raises:
        ConfigError: as in :func:`preview`.
    """
    TableName.parse(table)  # a wrong name is reported before a lake that is not there
    with translate_errors(table):
        catalog = open_catalog(config)
    with catalog:
        yield load_table(config, catalog, table)


def load_table(config: SourceConfig, catalog: Catalog, table: str) -> Table:
    """Load the lake table of ``database.table`` from an open catalog.

    Raises:
        ConfigError: as in :func:`preview`.
    """
    database, name = TableName.parse(table).pair
    # If several routes apply, the first one's lake table is read.
    target = targets_of(config, database, name)[0]
    namespace = config.lake.namespace_of(config.source, target.database)
    try:
        with translate_errors(table):
            return catalog.load_table((*namespace, target.table))
    except NoSuchTableError as error:
        raise ConfigError(
            f"the lake has no table {'.'.join(namespace)}.{target.table}",
            hint="It is made by the first merge that has rows of it. See cdc status.",
            source=config.source,
            table=table,
        ) from error


def drop_table(config: SourceConfig, name: LakeName) -> None:
    """Remove a lake table from its catalog; nothing of the table is read, and its files stay.

    Raises:
        ConfigError: the catalog has no such table, or its type cannot be used without Spark.
    """
    try:
        with translate_errors(str(name)), open_catalog(config) as catalog:
            catalog.drop_table((*name.namespace, name.name))
    except NoSuchTableError as error:
        raise ConfigError(
            f"the lake has no table {name}", hint="cdc lake tables lists those that there are.", source=config.source
        ) from error


@contextmanager
def translate_errors(table: str | None = None) -> Iterator[None]:
    """Translate the errors of libraries into a CdcError; their messages may hold credentials and are not shown.

    Args:
        table: what is read; None while the catalog is opened.

    Raises:
        StoreUnavailable: the catalog does not answer, or its answer says to try again.
        LakeRefused: it refuses the log-in.
        StoreError: any other error.
    """
    try:
        yield
    except (CdcError, NoSuchTableError):
        raise
    except Exception as error:  # noqa: BLE001 - four libraries raise errors of their own
        if (status := _status(error)) is not None:
            raise _answer(error, status) from None
        is_away = isinstance(error, RequestException | OperationalError | ConnectionError | TimeoutError)
        if is_away or table is None:
            hint = "Start it, or correct lake.uri in the source file: cdc doctor looks at it."
            kind = StoreUnavailable if is_away else StoreError
            raise kind(f"the lake's catalog cannot be reached: {_kind(error)}", hint=hint) from None
        hint = "Read it with Spark: a location that holds # or ? cannot be opened without it. Else restore its files."
        raise StoreError(f"the lake table of {table} cannot be read: {_kind(error)}", hint=hint) from None


def _status(error: Exception) -> int | None:
    """Return the HTTP status with which a catalog answered: PyIceberg keeps the response in the cause, a client of AWS in the error."""
    answer = getattr(error.__cause__, "response", None)
    if isinstance(answer, Response):
        return answer.status_code
    given = getattr(error, "response", None)
    return given["ResponseMetadata"]["HTTPStatusCode"] if isinstance(given, dict) else None


def _answer(error: Exception, status: int) -> CdcError:
    """Return the error for a catalog that answers with one: its class says whether a task is tried again."""
    said = f"{status} ({type(error).__name__})"
    if is_over(f"{type(error).__name__} {error}"):
        return StoreUnavailable(
            f"the lake's catalog says that the log-in is over: {said}",
            hint="It is retried: a credential gives each attempt a new token. Replace a token that was set by hand (lake.properties).",
        )
    if status >= 500 or status == 429:
        return StoreUnavailable(
            f"the lake's catalog answers with an error: {said}", hint="It is retried. Look into the catalog's log."
        )
    if status in (401, 403) or "invalid_client" in str(error):
        return LakeRefused(
            f"the lake's catalog refuses the log-in: {said}",
            hint="Correct token or credential under lake.properties, or grant its role the tables: cdc doctor tries it.",
        )
    return StoreError(
        f"the lake's catalog refuses the request: {said}",
        hint="Correct lake.uri, lake.warehouse or lake.properties in the source file: cdc doctor tries them.",
    )


def _kind(error: BaseException) -> str:
    """Return an error's class, with the message of the operating system or SQLite."""
    cause = getattr(error, "orig", None) or error
    message = str(cause) if isinstance(cause, sqlite3.Error | OSError) and "@" not in str(cause) else ""
    return f"{type(cause).__name__}: {message}" if message else type(cause).__name__


def open_catalog(config: SourceConfig, keys: StoreKeys | None = None) -> Catalog:
    """Open the catalog of a source's lake for reading; close it, or use it in a ``with`` statement.

    Args:
        config: the source.
        keys: of the store's S3 account; those of the environment without.

    Raises:
        LakeMissing: there is no lake yet.
        ConfigError: its type cannot be read without Spark.
    """
    return load_catalog(config.lake.catalog, **catalog_properties(config, keys))


def catalog_properties(config: SourceConfig, keys: StoreKeys | None = None) -> dict[str, str]:
    """Return the lake's settings as PyIceberg properties; see :func:`open_catalog`."""
    lake = config.lake
    properties = _storage(config.store, lake, keys)
    properties |= {name: value for name, value in lake.properties.items() if name not in _SPARK_ONLY}
    if lake.warehouse is not None:
        properties["warehouse"] = lake.warehouse
    return properties | _catalog(lake)


def _catalog(lake: LakeConfig) -> dict[str, str]:
    if lake.type == "jdbc" and lake.uri is not None:
        return {"type": "sql", "uri": sqlalchemy_url(lake.uri), "init_catalog_tables": "false"}
    if lake.type == "hadoop":
        raise ConfigError("a lake of type hadoop cannot be read without Spark", hint="Use a jdbc or rest catalog.")
    return {"type": lake.type} | ({"uri": lake.uri} if lake.uri is not None else {})


def sqlalchemy_url(jdbc: str) -> str:
    """Return the SQLAlchemy URL of a JDBC URL.

    Raises:
        LakeMissing: the file of a SQLite catalog does not exist.
        ConfigError: the URL is not a JDBC URL.
    """
    if not jdbc.startswith("jdbc:"):
        raise ConfigError("lake.uri of a jdbc catalog begins with jdbc:", hint="For example jdbc:sqlite:/data/cat.db")
    address = jdbc.removeprefix("jdbc:")
    if not address.startswith("sqlite:"):
        return address
    file = Path(unquote(address.removeprefix("sqlite:").removeprefix("file:").partition("?")[0]))
    if not file.is_file():
        # SQLite would create an empty one.
        raise LakeMissing(
            f"there is no lake yet: {file} is not there",
            hint="The first merge makes it. After a merge: correct lake.uri.",
        )
    return f"sqlite:///{file.absolute()}"


def _storage(store: StoreConfig, lake: LakeConfig, keys: StoreKeys | None) -> dict[str, str]:
    """Return the S3 settings of the store, for a lake that may be in S3; ``lake.properties`` override them, as in the merge job."""
    if not takes_settings_of_store(lake):
        return {}
    # PyIceberg looks for s3.region first.
    settings = {"s3.endpoint": store.s3_endpoint_url, "s3.region": lake.properties.get("client.region", store.region)}
    settings["s3.force-virtual-addressing"] = str(not store.path_style).lower()
    if store.s3_ca is not None:
        settings |= {"py-io-impl": file_io.CLASS, file_io.CA: str(store.s3_ca)}
    if keys is None and store.scheme == "s3":
        keys = store_keys_from_environment(store)
    if keys is not None and store.scheme in ("file", "s3"):
        settings |= {"s3.access-key-id": keys.access_key, "s3.secret-access-key": keys.secret_key}
    return {name: value for name, value in settings.items() if value is not None}

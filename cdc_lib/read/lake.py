"""The lake's tables read by PyIceberg, without Spark. Needs the ``read`` extra of the installation.

PyIceberg reads tables with deletion vectors rightly; DuckDB's own reader of Iceberg does not, so rows are handed to other
engines as Arrow tables from here.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from cdc_lib.config import LakeConfig, SourceConfig, StoreConfig, store_keys_from_environment
from cdc_lib.config.shape import targets_of
from cdc_lib.errors import ConfigError

_SPARK_ONLY = frozenset({"io-impl", "type", "catalog-impl", "uri", "warehouse"})
"""Properties that name Java classes, or that are said elsewhere in the source file."""


def head(config: SourceConfig, table: str, limit: int) -> pa.Table:
    """Return some rows of a table, in no particular order.

    Args:
        config: the source.
        table: ``database.table`` at the source.
        limit: how many rows at most.

    Raises:
        ConfigError: there is no such lake or no such table, or the catalog's type cannot be read without Spark.
    """
    return open_table(config, table).scan(limit=limit).to_arrow()


def open_table(config: SourceConfig, table: str) -> Table:
    """Open the lake table of ``database.table``.

    Raises:
        ConfigError: as in :func:`head`.
    """
    database, dot, name = table.partition(".")
    if not (database and dot and name):
        raise ConfigError(f"{table!r} is not database.table", hint="For example: cdc head shop shop.orders")
    # A table of several routes is looked at in the lake table of the first.
    target = targets_of(config, database, name)[0]
    namespace = config.lake.namespace_of(config.source, target.database)
    try:
        return open_catalog(config).load_table((*namespace.split("."), target.table))
    except NoSuchTableError as error:
        raise ConfigError(
            f"the lake has no table {namespace}.{target.table}",
            hint="It is made by the first merge that has rows of it. See cdc status.",
            source=config.source,
            table=table,
        ) from error


def open_catalog(config: SourceConfig) -> Catalog:
    """Open the catalog of a source's lake for reading.

    Raises:
        ConfigError: there is no lake yet, or its type cannot be read without Spark.
    """
    return load_catalog(config.lake.catalog, **catalog_properties(config))


def catalog_properties(config: SourceConfig) -> dict[str, str]:
    """Write the lake's settings as PyIceberg wants them."""
    lake = config.lake
    properties = _storage(config.store, lake)
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
    """Turn a JDBC address into SQLAlchemy's for the same database.

    Raises:
        ConfigError: the file of a SQLite catalog is not there, or the address is no JDBC one.
    """
    if not jdbc.startswith("jdbc:"):
        raise ConfigError("lake.uri of a jdbc catalog begins with jdbc:", hint="For example jdbc:sqlite:/data/cat.db")
    address = jdbc.removeprefix("jdbc:")
    if not address.startswith("sqlite:"):
        return address
    file = Path(unquote(address.removeprefix("sqlite:").removeprefix("file:").partition("?")[0]))
    if not file.is_file():
        # SQLite would make an empty one.
        raise ConfigError(f"there is no lake yet: {file} is not there", hint="The first merge makes it.")
    return f"sqlite:///{file.absolute()}"


def _storage(store: StoreConfig, lake: LakeConfig) -> dict[str, str]:
    """A lake in S3 is reached as the store is, unless ``lake.properties`` say otherwise; the merge job does the same."""
    if lake.warehouse is None or urlsplit(lake.warehouse).scheme not in {"s3", "s3a"}:
        return {}
    settings = {"s3.endpoint": store.endpoint_url, "s3.region": store.region}
    settings["s3.force-virtual-addressing"] = str(not store.path_style).lower()
    keys = store_keys_from_environment(store) if store.scheme == "s3" else None
    if keys is not None:
        settings |= {"s3.access-key-id": keys.access_key, "s3.secret-access-key": keys.secret_key}
    return {name: value for name, value in settings.items() if value is not None}

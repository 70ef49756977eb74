"""The Spark session of a merge: the lake's catalog, object storage, and Spark's settings.

Possible secrets (keys, catalog properties) are set in the running session: every user of the machine can read the command line
of the Java process.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_lib.config.lake import LakeConfig
from cdc_lib.config.source import SourceConfig
from cdc_lib.config.store import StoreConfig
from cdc_lib.doctor.java_check import java_of
from cdc_lib.errors import ConfigError
from cdc_lib.jobs.secrets import secret_variables
from cdc_lib.lake.location import sqlite_file
from cdc_lib.lake.s3_settings import is_in_s3, only_catalog_knows, takes_settings_of_store
from cdc_lib.model.lexer import quoted
from cdc_lib.model.spark_master import is_in_one_process
from cdc_lib.ports import ObjectStore
from cdc_lib.store.clock import refuse_other_clock
from spark_jobs.errors import translate_errors
from spark_jobs.runtime.attach import OWN_FILE_SYSTEMS, attached_session, is_attached, tag_thread
from spark_jobs.runtime.azure_settings import azure_settings
from spark_jobs.runtime.class_archive import archive_options
from spark_jobs.runtime.gateway import start_java
from spark_jobs.runtime.google_settings import google_settings
from spark_jobs.runtime.jars import jar_paths
from spark_jobs.runtime.java_classes import java_classes
from spark_jobs.runtime.java_options import java_options
from spark_jobs.runtime.storage_keys import storage_keys
from spark_jobs.runtime.trust_store import executor_settings, trust_options, trust_store
from spark_jobs.runtime.ui import tell_application
from spark_jobs.runtime.versions import refuse_other_versions

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
    # A batch has few files: the driver lists them, without a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # Batches hold the proleptic Gregorian calendar; the default refuses dates before 1900.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
}
"""Default Spark settings; ``merge.conf`` of the source file overrides them."""

CATALOG_DRIVERS = ("sqlite", "postgresql")
"""JDBC drivers in ``jars.lock``, by the word after ``jdbc:`` in ``lake.uri``."""

STORE_JARS = {"gs": "gcs", "abfss": "azure"}
"""Names in ``jars.lock`` of what reads batches, by the scheme of the store; those of S3 serve lakes too."""

_REGION = "us-east-1"
"""Of a store whose source file names none."""

FIXED = {
    # Spark substitutes environment variables in every statement, also in names and values of the source: a table named
    # ${env:AWS_SECRET_ACCESS_KEY} would get the secret as its name in the lake.
    "spark.sql.variable.substitute": "false",
}
"""Settings that cannot be overridden."""


@contextmanager
def spark_session(config: SourceConfig, rows: int = 0, store: ObjectStore | None = None) -> Iterator[SparkSession]:
    """Start Spark for one source, and stop it at the end of the block.

    Args:
        config: the source.
        rows: number of rows that the job reads, 0 if unknown; see :mod:`spark_jobs.runtime.java_options`.
        store: of a job that writes to the lake: its clock and this machine's must be the same. None for a job that reads.

    Raises:
        WrongClock: the clocks differ.
    """
    with application(config, rows) as spark:
        connect_catalog(spark, config)
        refuse_other_versions(spark)
        if store is not None:
            refuse_other_clock(store, config.source, partial(java_now, spark))
        yield spark


@contextmanager
def application(config: SourceConfig, rows: int = 0) -> Iterator[SparkSession]:
    """Start Spark, or connect to that of the server, without the catalog of the source.

    Args:
        config: the source.
        rows: number of rows that the job reads, 0 if unknown.
    """
    make_catalog_folder(config.lake)
    if is_attached():
        yield attached_session()
        return
    spark = started(f"cdc-merge-{config.source}", spark_settings(config, rows), hidden_from_java(config))
    try:
        tell_application(spark.sparkContext, config.merge.application_url)
        yield spark
    finally:
        spark.stop()


def started(name: str, settings: Mapping[str, str], hidden: Collection[str] = ()) -> SparkSession:
    """Start Java and Spark.

    Args:
        name: of the application.
        settings: of :func:`start_settings`.
        hidden: environment variables that Java does not get.

    Raises:
        ConfigError: Java is missing, or Spark does not support its version.
    """
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        start_java(settings, hidden)
        spark = builder.getOrCreate()
    except Exception:
        java_of()  # raises a clear error if Java is wrong or missing, instead of a long traceback
        raise
    write_no_checksum_files(spark)
    return spark


def write_no_checksum_files(spark: SparkSession) -> None:
    """Let Hadoop write no ``.crc`` file beside each file on a local disk.

    Hadoop starts a process that sets the permissions of each file: a merge of a small table writes 13 files.
    """
    of_spark: Any = spark
    local = java_classes(spark).named("java.net.URI")("file:///")
    file_system = java_classes(spark).static("org.apache.hadoop.fs.FileSystem", "get")
    file_system(local, of_spark._jsc.hadoopConfiguration()).setWriteChecksum(False)  # noqa: SLF001 - no public way to it


def hidden_from_java(config: SourceConfig) -> set[str]:
    """Return the variables with secrets that Java does not need: Python asks the source, and gives Java the keys of the store.

    The variables that the clients of AWS and Azure read stay: a warehouse or a Glue catalog may need them.
    """
    return {name for name in secret_variables(config) if not name.startswith(("AWS_", "AZURE_"))}


def make_catalog_folder(lake: LakeConfig) -> None:
    """Create the folder of a SQLite catalog, which SQLite itself does not.

    Raises:
        ConfigError: it cannot be created.
    """
    if not (lake.uri or "").startswith("jdbc:sqlite:"):
        return
    folder = sqlite_file(lake.uri or "").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the folder of the lake's catalog cannot be made: {error.strerror or error}",
            hint=f'mkdir -p "{folder}" && chown "$(id -un)" "{folder}"',
        ) from error


def table_session(spark: SparkSession, config: SourceConfig) -> SparkSession:
    """Return a session of the same application with separate settings and views."""
    session = spark.newSession()
    connect_catalog(session, config)
    return session


def store_session(spark: SparkSession, config: SourceConfig) -> SparkSession:
    """Return a session of the same application that reads the store, without the source's catalog."""
    session = spark.newSession()
    tag_thread(session)
    if is_attached():
        _set_conf_of_source(session, config.merge.conf)
    for name, value in hadoop_settings(config.store).items():
        session.conf.set(name, value)
    return session


@contextmanager
def set_for(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings in a block, in a session that no other thread uses."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value_before in before.items():
            if value_before is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value_before)


def java_now(session: SparkSession) -> datetime:
    """Return the time (UTC) by the clock that gives commits of lake tables their times."""
    millis = java_classes(session).static("java.lang.System", "currentTimeMillis")()
    return datetime.fromtimestamp(int(millis) / 1000, UTC)


def connect_catalog(session: SparkSession, config: SourceConfig) -> None:
    """Configure the store and the catalog in a session, and open the catalog; the session becomes the thread's active one.

    Calls of Iceberg's Java API, outside Spark SQL, find only an open catalog.

    Raises:
        ConfigError: ``merge.conf`` has a setting that only the server's start can have.
    """
    if is_attached():
        _set_conf_of_source(session, config.merge.conf)
    # Spark hands the settings of a session to Hadoop, also on executors.
    for name, value in {**hadoop_settings(config.store), **catalog_settings(config)}.items():
        session.conf.set(name, value)
    activate(session)
    with translate_errors("open the lake's catalog", catalog=config.lake.catalog):
        session.sql(f"USE {quoted(config.lake.catalog)}")


def activate(session: SparkSession) -> None:
    """Make a session the active one of this thread, and what the thread does in Spark work of the job."""
    tag_thread(session)
    # A thread without an active session parses with Spark's defaults, not with this session's settings: see FIXED.
    spark: Any = session
    set_active = java_classes(session).static("org.apache.spark.sql.SparkSession", "setActiveSession")
    set_active(spark._jsparkSession)  # noqa: SLF001 - no public way to it


def _set_conf_of_source(session: SparkSession, conf: Mapping[str, str]) -> None:
    for name, value in conf.items():
        if name in FIXED or session.conf.get(name, None) == value:
            continue
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            raise ConfigError(
                f"the Spark server cannot change {name} while it runs",
                hint=f"Take it out of merge.conf, and start the server with it: cdc spark serve --conf {name}={value}",
            ) from error


def spark_settings(config: SourceConfig, rows: int = 0) -> dict[str, str]:
    """Return the settings that Java needs at its start; they contain no secret."""
    merge, paths = config.merge, session_jars(config)
    java = java_options(merge.spark_master, merge.driver_memory, rows)
    if is_in_one_process(merge.spark_master):
        java += archive_options(paths)
    trust = trust_store(config.store.ca)
    return start_settings(merge.spark_master, merge.driver_memory, paths, merge.conf, java=java, trust=trust)


def start_settings(
    master: str,
    memory: str,
    jars: Sequence[Path],
    conf: Mapping[str, str],
    *,
    java: Sequence[str],
    trust: Path | None = None,
) -> dict[str, str]:
    """Return the settings of a Java process.

    Args:
        master: where Spark runs its tasks.
        memory: of Java.
        jars: additional ones.
        conf: settings that override the defaults.
        java: Java options, unless ``conf`` has its own.
        trust: Java's trust store; None for that of each machine. Its options come first: Java uses the last value of a property.
    """
    files = [str(path) for path in jars]
    # In one process the class path is enough; a cluster sends the jars to its executors.
    local = is_in_one_process(master)
    classes = {"spark.driver.extraClassPath": ":".join(files)} if local else {"spark.jars": ",".join(files)}
    options = [conf[JAVA_OPTIONS]] if JAVA_OPTIONS in conf else java
    return {
        "spark.master": master,
        "spark.driver.memory": memory,
        **classes,
        **DEFAULTS,
        **conf,
        **({} if local else executor_settings(trust, conf)),
        JAVA_OPTIONS: " ".join(
            (f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}", *trust_options(trust), *options)
        ),
        **FIXED,
    }


def session_jars(config: SourceConfig) -> list[Path]:
    """Return the additional jars of a source's jobs."""
    names = ["iceberg"]
    names += [name for name in CATALOG_DRIVERS if (config.lake.uri or "").startswith(f"jdbc:{name}:")]
    if config.store.scheme == "s3" or is_in_s3(config.lake) or only_catalog_knows(config.lake):
        names.append("s3")
    if config.store.scheme in STORE_JARS:
        names.append(STORE_JARS[config.store.scheme])
    return jar_paths(names)


def catalog_settings(config: SourceConfig) -> dict[str, str]:
    """Return the settings of the lake's catalog."""
    lake = config.lake
    properties: dict[str, str] = {"type": lake.type}
    if lake.uri:
        properties["uri"] = lake.uri
    if lake.warehouse:
        properties["warehouse"] = lake.warehouse
    if lake.type == "jdbc":
        properties["jdbc.schema-version"] = "V1"
    if is_in_s3(lake):
        properties |= _file_io(config.store)
    elif takes_settings_of_store(lake):
        properties |= _s3_properties(config.store)
    root = f"spark.sql.catalog.{lake.catalog}"
    # With a cache, this job would see a table without another job's commit.
    properties = {"cache-enabled": "false", **properties, **lake.properties}
    return {root: "org.apache.iceberg.spark.SparkCatalog", **{f"{root}.{k}": v for k, v in properties.items()}}


def hadoop_settings(store: StoreConfig) -> Mapping[str, str]:
    """Return Spark's settings to read batches from S3, Google Cloud Storage or Azure; empty for a local folder."""
    if store.scheme == "gs":
        return google_settings(store) | ({"fs.gs.impl.disable.cache": "true"} if OWN_FILE_SYSTEMS in os.environ else {})
    if store.scheme == "abfss":
        own = ("fs.abfss.impl.disable.cache", "fs.abfs.impl.disable.cache") if OWN_FILE_SYSTEMS in os.environ else ()
        return azure_settings(store) | dict.fromkeys(own, "true")
    if store.scheme != "s3":
        return {}
    settings = {
        "fs.s3a.path.style.access": str(store.path_style).lower(),
        "fs.s3a.endpoint.region": store.region or _REGION,
    }
    if store.endpoint_url:
        settings["fs.s3a.endpoint"] = store.endpoint_url
        settings["fs.s3a.connection.ssl.enabled"] = str(urlsplit(store.endpoint_url).scheme == "https").lower()
    if OWN_FILE_SYSTEMS in os.environ:
        settings["fs.s3a.impl.disable.cache"] = "true"
    keys = storage_keys(store)
    return settings | (keys.for_hadoop if keys is not None else {})


def _file_io(store: StoreConfig) -> dict[str, str]:
    """Return Iceberg's properties of a lake in S3: those of the store; ``lake.properties`` override them."""
    return {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": _REGION,
        "s3.path-style-access": str(store.path_style).lower(),
        **_s3_properties(store),
    }


def _s3_properties(store: StoreConfig) -> dict[str, str]:
    """Return Iceberg's properties for files that may be in S3: what the source file says of the store, and nothing by default.

    Iceberg chooses the FileIO by the address of each file, and the defaults of the catalog hold for all that is not said here.
    """
    properties: dict[str, str] = {}
    if store.region:
        properties["client.region"] = store.region
    if store.s3_endpoint_url:
        properties |= {
            "client.region": store.region or _REGION,
            "s3.endpoint": store.s3_endpoint_url,
            "s3.path-style-access": str(store.path_style).lower(),
        }
    keys = storage_keys(store)
    return properties | (keys.for_iceberg if keys is not None else {})

"""The Spark session of a merge: the lake's catalog, object storage, and the settings that were measured.

What may be a secret (keys, catalog properties) is set in the running session: on the command line of the Java process
every user of the machine could read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from cdc_lib.config.credentials import store_keys_from_environment
from cdc_lib.config.source import SourceConfig
from cdc_lib.config.store import StoreConfig
from spark_jobs.archive import archive_options
from spark_jobs.jars import jar_paths
from spark_jobs.java import java_options
from spark_jobs.java_names import remember_names
from spark_jobs.sql import quoted
from spark_jobs.tables.faults import told

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

MEASURED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
    # A batch has few files, and a listing job for them would take longer than the listing.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # Batches hold the proleptic Gregorian calendar; the default refuses dates before 1900.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
}
"""Spark's settings; ``merge.conf`` of the source file goes over them."""


@contextmanager
def spark_session(config: SourceConfig, rows: int = 0) -> Iterator[SparkSession]:
    """Start Spark for one source and stop it whatever happens.

    Args:
        config: the source.
        rows: how many rows the job goes through, where that is known: from many on Java takes more time to compile.
    """
    builder = SparkSession.builder.appName(f"cdc-merge-{config.source}")
    for name, value in spark_settings(config, rows).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        prepare(spark, config)
        yield spark
    finally:
        spark.stop()


def prepare(spark: SparkSession, config: SourceConfig) -> None:
    """Make the store and the catalog known to a running session, and let it remember Java's names."""
    remember_names(spark._jvm)  # noqa: SLF001 - no public way to it
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - no public way to set it late
    for name, value in hadoop_settings(config.store).items():
        hadoop.set(name, value)
    connect_catalog(spark, config)


def table_session(spark: SparkSession, config: SourceConfig) -> SparkSession:
    """Return a session of the same application whose settings and views are its own."""
    session = spark.newSession()
    connect_catalog(session, config)
    return session


@contextmanager
def set_for(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Let settings hold in a block, in a session that no other thread uses meanwhile."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, found in before.items():
            if found is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, found)


def connect_catalog(session: SparkSession, config: SourceConfig) -> None:
    """Set the catalog in one session and open it.

    A call that goes past Spark SQL, to Iceberg's own objects, finds only a catalog that is open.
    """
    for name, value in catalog_settings(config).items():
        session.conf.set(name, value)
    with told("open the lake's catalog", config.lake.catalog):
        session.sql(f"USE {quoted(config.lake.catalog)}")


def spark_settings(config: SourceConfig, rows: int = 0) -> dict[str, str]:
    """Return the settings that must be known before the Java process starts; no secret is among them."""
    paths = session_jars(config)
    jars = [str(path) for path in paths]
    local = config.merge.spark_master.startswith("local")
    # In one process the class path will do; a cluster has the jars sent to its executors.
    classes = {"spark.driver.extraClassPath": ":".join(jars)} if local else {"spark.jars": ",".join(jars)}
    java = [f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}", *java_options(config.merge, rows)]
    if local:
        java += archive_options(paths)
    return {
        "spark.master": config.merge.spark_master,
        "spark.driver.memory": config.merge.driver_memory,
        "spark.driver.extraJavaOptions": " ".join(java),
        **classes,
        **MEASURED,
        **config.merge.conf,
    }


def session_jars(config: SourceConfig) -> list[Path]:
    """Return the jars that a source's jobs need beside Spark's own."""
    names = ["iceberg"]
    if (config.lake.uri or "").startswith("jdbc:sqlite:"):
        names.append("sqlite")
    if config.store.scheme == "s3" or _on_s3(config):
        names.append("s3")
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
    if _on_s3(config):
        properties |= _file_io(config.store)
    root = f"spark.sql.catalog.{lake.catalog}"
    # A catalog that caches tables would show this job a table as it was before another job's commit.
    properties = {"cache-enabled": "false", **properties, **lake.properties}
    return {root: "org.apache.iceberg.spark.SparkCatalog", **{f"{root}.{k}": v for k, v in properties.items()}}


def hadoop_settings(store: StoreConfig) -> Mapping[str, str]:
    """Return the settings by which Spark reads batches from S3; empty for a local folder."""
    if store.scheme != "s3":
        return {}
    settings = {
        "fs.s3a.path.style.access": str(store.path_style).lower(),
        "fs.s3a.endpoint.region": store.region or "us-east-1",
    }
    if store.endpoint_url:
        settings["fs.s3a.endpoint"] = store.endpoint_url
        settings["fs.s3a.connection.ssl.enabled"] = str(urlsplit(store.endpoint_url).scheme == "https").lower()
    keys = store_keys_from_environment(store)
    if keys is not None:
        settings["fs.s3a.aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
        settings["fs.s3a.access.key"] = keys.access_key
        settings["fs.s3a.secret.key"] = keys.secret_key
    return settings


def _file_io(store: StoreConfig) -> dict[str, str]:
    """Return how Iceberg reaches S3: as the store does, unless ``lake.properties`` says otherwise."""
    properties = {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": store.region or "us-east-1",
        "s3.path-style-access": str(store.path_style).lower(),
    }
    if store.endpoint_url:
        properties["s3.endpoint"] = store.endpoint_url
    keys = store_keys_from_environment(store) if store.scheme == "s3" else None
    if keys is not None:
        properties |= {"s3.access-key-id": keys.access_key, "s3.secret-access-key": keys.secret_key}
    return properties


def _on_s3(config: SourceConfig) -> bool:
    return config.lake.type == "glue" or (config.lake.warehouse or "").startswith(("s3://", "s3a://"))

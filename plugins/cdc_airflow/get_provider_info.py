"""What Airflow reads about this package at its start: connection types, operators, links, settings. Imports nothing."""

from __future__ import annotations

from typing import Any

SOURCE_TYPE = "cdc_mysql"
"""Type of the connections to MySQL and MariaDB servers whose binlog is read."""

STORE_TYPE = "cdc_store"
"""Type of the connections to the stores of batches and cursors."""

SPARK_TYPE = "cdc_spark"
"""Type of the connections to Spark servers (``cdc spark serve``)."""

_NAME = "lakecdc"
_OPTIONAL_TEXT = ["string", "null"]

_SOURCE_FIELDS = {
    "tables": {
        "label": "Tables",
        "description": "Patterns that the test checks, separated by commas: shop.*, crm.customers. All tables without.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "tls": {
        "label": "TLS of the test",
        "description": "preferred: if the server offers it. required: always. verify: and the server's certificate and name are checked.",
        "schema": {"type": "string", "enum": ["preferred", "required", "verify"], "default": "preferred"},
    },
    "tls_ca": {
        "label": "CA file of the test",
        "description": "File with the authorities that verify trusts; the system's without.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "hosts": {
        "label": "Other hosts",
        "description": "Servers beside the host that the log-in may go to, separated by commas: db2.example, db3.example:3307, or * for all.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "source_file": {
        "label": "Source file",
        "description": "Path of a source file. The test then checks everything that its runs need, as cdc doctor does, and "
        "takes host, tables and TLS from the file.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
}

_STORE_FIELDS = {
    "url": {
        "label": "URL",
        "description": "file:///absolute/folder, s3://bucket/prefix, gs://bucket/prefix or "
        "abfss://container@account.dfs.core.windows.net/prefix, as store.url of the source file.",
        "schema": {"type": "string", "minLength": 1},
    },
    "endpoint_url": {
        "label": "Endpoint",
        "description": "http(s)://host:port of a server that is not Amazon's, Google's or Azure's.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "region": {"label": "Region", "description": "Name of the S3 region.", "schema": {"type": _OPTIONAL_TEXT}},
    "ca": {
        "label": "CA file",
        "description": "File with the authorities that the server's certificate is checked with; the system's without.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "path_style": {
        "label": "Bucket in the path",
        "description": "Off: the bucket is in the host name.",
        "schema": {"type": "boolean", "default": True},
    },
    "hosts": {
        "label": "Other endpoints",
        "description": "Where runs may use the keys beside URL and endpoint, separated by commas: s3.example:9000, or * for all.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
}

_CONNECTION_TYPES = [
    {
        "connection-type": SOURCE_TYPE,
        "hook-class-name": "cdc_airflow.connections.SourceConnectionHook",
        "hook-name": "MySQL binlog source",
        "ui-field-behaviour": {
            "hidden-fields": ["schema"],
            "relabeling": {"login": "User"},
            "placeholders": {"host": "db.example.com", "port": "3306", "login": "cdc"},
        },
        "conn-fields": _SOURCE_FIELDS,
    },
    {
        "connection-type": STORE_TYPE,
        "hook-class-name": "cdc_airflow.connections.StoreConnectionHook",
        "hook-name": "CDC store",
        "ui-field-behaviour": {
            "hidden-fields": ["host", "port", "schema"],
            "relabeling": {"login": "Access key", "password": "Secret key"},
            "placeholders": {
                "login": "empty: the AWS credentials of the process; empty for gs:// and abfss://",
                "password": "for gs://: the JSON key of a service account; for abfss://: an account key, a SAS token or a connection string",
            },
        },
        "conn-fields": _STORE_FIELDS,
    },
    {
        "connection-type": SPARK_TYPE,
        "hook-class-name": "cdc_airflow.spark_connections.SparkServerConnectionHook",
        "hook-name": "CDC Spark server",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "login", "extra"],
            "relabeling": {"password": "Token"},
            "placeholders": {
                "host": "https://spark.internal, or a name for http",
                "port": "8998",
                "password": "empty: the server asks for none",
            },
        },
    },
]


def get_provider_info() -> dict[str, Any]:
    """Return the provider's description, as ``airflow/provider_info.schema.json`` has it."""
    return {
        "package-name": _NAME,
        "name": "CDC",
        "description": "Batch change data capture from MySQL and MariaDB into Apache Iceberg.",
        "integrations": [
            {"integration-name": "CDC", "external-doc-url": "https://pypi.org/project/lakecdc/", "tags": ["software"]}
        ],
        "hooks": [
            {
                "integration-name": "CDC",
                "python-modules": ["cdc_airflow.hooks", "cdc_airflow.connections", "cdc_airflow.spark_connections"],
            },
        ],
        "operators": [
            {
                "integration-name": "CDC",
                "python-modules": [
                    "cdc_airflow.operators",
                    "cdc_airflow.operators.ack",
                    "cdc_airflow.operators.answer",
                    "cdc_airflow.operators.backfill",
                    "cdc_airflow.operators.cover",
                    "cdc_airflow.operators.drain",
                    "cdc_airflow.operators.erase",
                    "cdc_airflow.operators.maintenance",
                    "cdc_airflow.operators.merge",
                    "cdc_airflow.operators.plan",
                    "cdc_airflow.operators.resume",
                    "cdc_airflow.operators.rewind",
                    "cdc_airflow.operators.seal_days",
                    "cdc_airflow.operators.second_decoder",
                    "cdc_airflow.operators.snapshot",
                    "cdc_airflow.operators.verify",
                ],
            }
        ],
        "triggers": [{"integration-name": "CDC", "python-modules": ["cdc_airflow.triggers", "cdc_airflow.server_job"]}],
        "extra-links": [
            f"cdc_airflow.links.{name}" for name in ("WindowLink", "CutLink", "VerifyReportLink", "SparkUiLink")
        ],
        "notifications": ["cdc_airflow.notifications.WebhookNotifier"],
        "connection-types": _CONNECTION_TYPES,
        "config": {
            "cdc": {
                "description": "Change data capture from MySQL and MariaDB.",
                "options": {
                    "sources": {
                        "description": "Folder of the source files. The variable CDC_SOURCES wins. Without both it is the folder "
                        "sources beside the DAG file.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/opt/airflow/sources",
                        "default": "",
                    },
                    "spread_schedules": {
                        "description": "Whether sources that run every n minutes (*/n) begin at different minutes.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": None,
                        "default": "True",
                    },
                    "metrics_token": {
                        "description": "Token with which Prometheus reads /cdc-metrics/. Without it only users of Airflow may.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "sensitive": True,
                        "example": None,
                        "default": "",
                    },
                    "preload": {
                        "description": "Whether the scheduler (LocalExecutor) and the DAG processor import what their processes need, once, before they fork them.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": None,
                        "default": "True",
                    },
                    "watch_interval": {
                        "description": "Seconds between two looks at the end of the binlog, for sources with schedule: on_change.",
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": None,
                        "default": "10",
                    },
                },
            }
        },
        "asset-uris": [{"schemes": ["cdc", "cdc-binlog"], "handler": None}],
    }

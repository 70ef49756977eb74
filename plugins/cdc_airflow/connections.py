"""The connection types of this package, and what their Test button says.

A test answers one line for each finding of the preflight: ``ok``, ``warning`` or ``error``, what was found, what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.sdk.log import mask_secret

from cdc_airflow.connection_answer import TestedConnectionHook
from cdc_airflow.connection_fields import checked, extra_of, lacking, named_connection
from cdc_airflow.connection_forms import with_form
from cdc_airflow.get_provider_info import SOURCE_TYPE, STORE_TYPE
from cdc_airflow.spark_connections import spark_of
from cdc_lib.config import (
    Credentials,
    HopLogin,
    SourceConfig,
    SshConfig,
    StoreConfig,
    load_source,
)
from cdc_lib.config.credentials import (
    StoreKeys,
    azure_keys,
    google_keys,
    hop_login_from_environment,
    login_from_environment,
)
from cdc_lib.config.server import ServerConfig, TlsConfig
from cdc_lib.config.tables import TablesConfig
from cdc_lib.errors import ConfigError
from cdc_lib.model.azure_secret import azure_secret
from cdc_lib.model.service_account import service_account

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from cdc_lib.model.finding import Finding
    from cdc_lib.ports import ObjectStore


@with_form
class SourceConnectionHook(TestedConnectionHook):
    """A connection of the type "MySQL binlog source": the log-in of a source, and a test of its server.

    Runs take the log-in from it (``server.connection``), and host, tables and TLS from the source file. The test takes these
    from the connection, or from the source file that it names.
    """

    default_conn_name = "cdc_mysql_default"
    conn_type = SOURCE_TYPE
    hook_name = "MySQL binlog source"

    def _findings(self, connection: Connection) -> Iterable[Finding]:
        """Run the preflight."""
        from cdc_lib.doctor.examine import examine, examine_server
        from cdc_lib.source import Source

        extra = extra_of(connection)
        if extra.get("source_file"):
            config = load_source(Path(str(extra["source_file"])))
            credentials = replace(log_in(connection, config.server.user), hop=hop_login_of(config.server))
            spark = spark_of(config.merge)
            source = Source.open(spark.applied_to(config), credentials, store_keys_of(config))
            return [*_other_address(connection, config), *examine(source, environ=spark.environ)]
        return examine_server(_server(connection, extra), _tables(connection, extra), log_in(connection))


@with_form
class StoreConnectionHook(TestedConnectionHook):
    """A connection of the type "CDC store": the keys of a store, and a test that writes, reads and removes an object.

    Runs take the keys from it (``store.connection``), and everything else from the source file.
    """

    default_conn_name = "cdc_store_default"
    conn_type = STORE_TYPE
    hook_name = "CDC store"

    def _findings(self, connection: Connection) -> Iterable[Finding]:
        """Write, replace, read and delete a probe."""
        from cdc_lib.doctor.store_check import check_store
        from cdc_lib.store.objects.open import open_store

        given = {name: value for name, value in extra_of(connection).items() if name in _STORE_SETTINGS and value != ""}
        config = checked(StoreConfig, given, connection)
        return check_store(config, open_store(config, keys_of(connection, config)))


AZURE_CLOUDS = (
    ".core.windows.net",
    ".storage.azure.net",
    ".core.chinacloudapi.cn",
    ".core.usgovcloudapi.net",
    ".fabric.microsoft.com",
)
"""How the hosts of Azure's own accounts end."""

_STORE_SETTINGS = ("url", "endpoint_url", "region", "ca", "path_style")


def log_in(connection: Connection, user: str | None = None) -> Credentials:
    """Return the log-in that a connection holds; its password goes to Airflow's masker first.

    Args:
        connection: the connection.
        user: wins over its login.

    Raises:
        ConfigError: there is no user or no password.
    """
    login = user or connection.login
    if not login or connection.password is None:
        raise lacking(connection, "password" if login else "login")
    mask_secret(connection.password)
    return Credentials(login, connection.password, password_from=f"the Airflow connection {connection.conn_id}")


def credentials_of(server: ServerConfig, standbys: Sequence[tuple[str, int]] = ()) -> Credentials:
    """Return the log-in of a server: of the connection that the source file names, else from the environment.

    A ``user`` in the file wins over that of the connection.

    Args:
        server: as the source file has it.
        standbys: host and port of other servers that get the same log-in.

    Raises:
        ConfigError: there is no such connection, it has no user or no password, it is for another host, or a variable is not set.
    """
    hop = hop_login_of(server)
    if server.connection is None:
        found = login_from_environment(server)
        mask_secret(found.password)
        return replace(found, hop=hop)
    connection = named_connection(server.connection)
    for host, port in ((server.host, server.port), *standbys):
        refuse_other_host(connection, host, port, 3306)
    return replace(log_in(connection, server.user), hop=hop)


def refuse_other_host(connection: Connection, host: str, port: int, usual: int) -> None:
    """Refuse to send a connection's log-in elsewhere: who writes a source file need not be who may read the connection.

    A connection of the type MySQL binlog source, MySQL or SSH without a host is for any; others with a password may be for anything.

    Args:
        connection: the connection. Its extra ``hosts`` may list other addresses, ``host`` or ``host:port``, or ``*``.
        host: where the source file sends its log-in.
        port: as above.
        usual: port of a connection that names none.

    Raises:
        ConfigError: the connection does not allow that address.
    """
    if not connection.host and connection.conn_type in (SOURCE_TYPE, "mysql", "ssh"):
        return
    others = [one.strip() for one in str(extra_of(connection).get("hosts") or "").split(",")]
    if (host, port) == (connection.host, connection.port or usual) or {"*", host, f"{host}:{port}"} & {*others}:
        return
    raise ConfigError(
        f"the log-in of the connection {connection.conn_id} is not for {host}:{port}",
        hint=f'Correct the address, or let the connection allow it: "hosts": "{host}:{port}" in its extra.',
        connection=connection.conn_id,
        host=host,
        port=port,
    )


def refuse_other_store(connection: Connection, store: StoreConfig) -> None:
    """Refuse to use a connection's keys at another endpoint than its own, which would get signed requests, tokens or SAS tokens.

    A connection with an endpoint or URL is for that endpoint, or the cloud's own; its extra ``hosts`` may list others, as
    :func:`refuse_other_host` says. One of the type CDC store without both is for any; of other types, for the cloud's own.

    Args:
        connection: the connection.
        store: as the source file has it.

    Raises:
        ConfigError: the connection does not allow that endpoint.
    """
    extra = extra_of(connection)
    if connection.conn_type == STORE_TYPE and not (extra.get("url") or extra.get("endpoint_url")):
        return
    asked = _endpoint(store.url, store.endpoint_url)
    if asked != _endpoint(str(extra.get("url") or ""), str(extra.get("endpoint_url") or "")) and asked is not None:
        refuse_other_host(connection, *asked, 443)


def _endpoint(url: str, endpoint_url: str | None) -> tuple[str, int] | None:
    """Return host and port that the keys of a store go to; None for the cloud's own."""
    at = urlsplit(endpoint_url or (url if url.startswith("abfss:") else ""))
    if not at.hostname or (not endpoint_url and at.hostname.endswith(AZURE_CLOUDS)):
        return None
    return at.hostname, at.port or (80 if at.scheme == "http" else 443)


def hop_login_of(server: ServerConfig) -> HopLogin:
    """Return the log-in at the SSH server or SOCKS proxy on the way: of the connection that it names, else from the environment.

    A user and a key that the file names win over those of the connection.

    Raises:
        ConfigError: there is no such connection, it has no user or no secret, or a variable is not set.
    """
    hop = server.hop
    if hop is None or hop.connection is None:
        found = hop_login_from_environment(server)
    else:
        connection = named_connection(hop.connection)
        refuse_other_host(connection, hop.host, hop.port, 22 if server.ssh else 1080)
        extra = extra_of(connection)
        own_key = isinstance(hop, SshConfig) and (hop.key_file is not None or hop.agent)
        found = HopLogin(
            hop.user or connection.login or "",
            connection.password or "",
            "" if own_key else str(extra.get("private_key") or ""),
            str(extra.get("private_key_passphrase") or ""),
        )
        if not found.user:
            raise lacking(connection, "login")
        if not (found.password or found.key or own_key):
            raise lacking(connection, "password and no private_key" if server.ssh else "password")
    for secret in (found.password, found.key, found.passphrase):
        if secret:
            mask_secret(secret)
    return found


def keys_of(connection: Connection, store: StoreConfig) -> StoreKeys | None:
    """Return the keys of a store that a connection holds; None when it has none.

    Args:
        connection: the connection.
        store: the store.

    Raises:
        ConfigError: it has one of two only, or what it has is not the key of a Google service account or a secret of the Azure
            account.
    """
    if store.scheme == "gs":
        return _google_keys_of(connection)
    if store.scheme == "abfss":
        return _azure_keys_of(connection, store)
    if not connection.login and not connection.password:
        return None
    if not connection.login or not connection.password:
        raise lacking(connection, "secret key (its password)" if connection.login else "access key (its login)")
    mask_secret(connection.password)
    return StoreKeys(connection.login, connection.password)


def _google_keys_of(connection: Connection) -> StoreKeys | None:
    """Return the key of a service account: the password of a CDC store, or the key of a connection of the type Google Cloud."""
    extra = extra_of(connection)
    of_google = [extra.get(name) or extra.get(f"extra__google_cloud_platform__{name}") for name in _GOOGLE_KEYS]
    text = connection.password
    if not text and of_google[0]:
        text = of_google[0] if isinstance(of_google[0], str) else json.dumps(of_google[0])
    if not text and of_google[1]:
        text = _read(Path(str(of_google[1])), connection)
    if not text:
        return None
    mask_secret(text)
    mask_secret(service_account(text).private_key)
    return google_keys(text)


def _azure_keys_of(connection: Connection, store: StoreConfig) -> StoreKeys | None:
    """Return the secret of an account: the password of a CDC store, or what a connection of the type Azure Blob Storage has."""
    extra = extra_of(connection)
    of_azure = {name: str(extra.get(name) or extra.get(f"extra__wasb__{name}") or "") for name in _AZURE_KEYS}
    if of_azure["tenant_id"]:
        raise ConfigError(
            f"the connection {connection.conn_id} is a service principal, and a store takes none from a connection",
            hint="Give it a connection string, a SAS token or an account key; or leave out store.connection, and set "
            "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET where tasks run.",
        )
    text = of_azure["connection_string"] or of_azure["sas_token"].rpartition("?")[2] or connection.password
    if not text:
        return None
    mask_secret(text)
    secret = azure_secret(text, store.account)
    mask_secret(secret.sas or secret.account_key)
    return azure_keys(text, store.account)


def _read(path: Path, connection: Connection) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the key file of the connection {connection.conn_id} cannot be read",
            hint="Correct its Keyfile Path, or give the text of the file as its Keyfile JSON.",
            file=str(path),
        ) from error


_GOOGLE_KEYS = ("keyfile_dict", "key_path")
_AZURE_KEYS = ("connection_string", "sas_token", "tenant_id")
_MISSING = {
    "gs": "key of a service account (its password)",
    "abfss": "account key, SAS token or connection string (its password)",
}


def store_keys_of(config: SourceConfig, team: str | None = None) -> StoreKeys | None:
    """Return the keys of the connection that ``store.connection`` names; None when the file names none.

    Args:
        config: of the source.
        team: as in :func:`~cdc_airflow.connection_fields.named_connection`.

    Raises:
        ConfigError: there is no such connection, or it has no keys.
    """
    if config.store.connection is None:
        return None
    connection = named_connection(config.store.connection, team)
    refuse_other_store(connection, config.store)
    if endpoint := config.lake.properties.get("s3.endpoint"):
        refuse_other_store(connection, config.store.model_copy(update={"endpoint_url": endpoint}))
    keys = keys_of(connection, config.store)
    if keys is None:
        raise lacking(connection, _MISSING.get(config.store.scheme, "access key (its login)"))
    return keys


def open_store_of(config: SourceConfig, team: str | None) -> ObjectStore:
    """Open the store of a source, with the keys of the connection that its file names; arguments as of :func:`store_keys_of`.

    Raises:
        ConfigError: there is no such connection, or it has no keys.
    """
    from cdc_lib.store.objects.open import open_store

    return open_store(config.store, store_keys_of(config, team))


def _server(connection: Connection, extra: Mapping[str, Any]) -> ServerConfig:
    if not connection.host:
        raise lacking(connection, "host")
    tls = extra.get("tls") or "preferred"
    encrypted = None if tls == "preferred" else TlsConfig(ca=extra.get("tls_ca") or None, verify=tls == "verify")
    given = {
        "host": connection.host,
        "port": connection.port or 3306,
        "connection": connection.conn_id,
        "tls": encrypted,
    }
    return checked(ServerConfig, given, connection)


def _tables(connection: Connection, extra: Mapping[str, Any]) -> TablesConfig:
    patterns = [one.strip() for one in str(extra.get("tables") or "*.*").split(",")]
    return checked(TablesConfig, {"include": [one for one in patterns if one]}, connection)


def _other_address(connection: Connection, config: SourceConfig) -> Iterable[Finding]:
    from cdc_lib.model.finding import Finding

    for host, port in config.addresses:
        try:
            refuse_other_host(connection, host, port, 3306)
        except ConfigError as error:
            yield Finding("error", f"runs of {config.source} are refused: {error.message}", error.hint)

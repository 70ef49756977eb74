"""What ``cdc init`` asks for, and the values of the files that the answers give."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import typer
from pydantic import ValidationError

from cdc_lib.config.base import Section
from cdc_lib.config.explain import explain
from cdc_lib.config.lake import LakeConfig
from cdc_lib.config.server import ServerConfig
from cdc_lib.config.store import StoreConfig
from cdc_lib.config.tables import TablesConfig
from cdc_lib.config.work import SparkServerConfig
from cdc_lib.errors import ConfigError
from cdc_lib.model.readers import READERS

PORT, USER = 3306, "cdc"
SCHEDULE = "*/5 * * * *"
DATA = Path("/var/lib/cdc")
"""Folder of batches and lake, where this user can write there."""

VERIFY = {"after_merge": 100, "cover_every": "7d"}
_CATALOGS = {"jdbc": "jdbc", "http": "rest", "https": "rest", "thrift": "hive", "glue": "glue"}
_FILE_OR_S3 = "file:///folder or s3://bucket/prefix"

Check = Callable[[str], str]
"""Says what is wrong with an answer; an empty text if nothing is."""


class Questions:
    """Takes each value from its option, or from somebody at a terminal, or from its default.

    Args:
        given: values of the options, by their names; None where the option was not given.
        asks: whether somebody can be asked; if not, defaults are taken.
    """

    def __init__(self, given: Mapping[str, object], *, asks: bool) -> None:
        self._given = {name: str(value) for name, value in given.items() if value is not None}
        self._asks = asks

    def refuse_missing(self, *needed: str) -> None:
        """Refuse options that have no default, all at once, if nobody can be asked for them.

        Raises:
            ConfigError: some were not given.
        """
        if self.has("--access-key-env"):
            needed = (*needed, "--secret-key-env")
        missing = [option for option in needed if not self.has(option)]
        if missing and not self._asks:
            raise ConfigError(
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
                hint="Give what is missing. It is asked for in a terminal only, and not with --yes.",
            )

    def has(self, option: str) -> bool:
        """Whether an option was given that no question took yet."""
        return option in self._given

    def text(self, option: str, question: str, default: str | None = None, check: Check | None = None) -> str:
        """Return the given value, an answer that the check finds right, or the default; an empty one means no value."""
        if option in self._given:
            return self._given.pop(option)
        if self._asks:
            taken = _taken(check) if check else None
            return str(typer.prompt(question, default, value_proc=taken, show_default=bool(default), err=True))
        assert default is not None, option  # see refuse_missing
        return default

    def unused(self) -> list[str]:
        """Return the options that were given and that no answer needed."""
        return list(self._given)


def _taken(check: Check) -> Callable[[str], str]:
    def take(answer: str) -> str:
        if wrong := answer and check(answer):
            raise typer.BadParameter(wrong)
        return answer

    return take


def _valid(section: type[Section], field: str, *, listed: bool = False) -> Check:
    """Return the check that the source file makes of one value."""

    def wrong(answer: str) -> str:
        given = {field: split(answer) if listed else answer}
        try:
            section.model_validate(given)
        except ValidationError as error:
            return "; ".join(text for path, text in explain(error, section, given) if path[:1] == (field,))
        return ""

    return wrong


def split(answer: str) -> list[str]:
    """Return the parts of an answer with commas between them."""
    return [part for one in answer.split(",") if (part := one.strip())]


def server(ask: Questions, source: str) -> dict[str, Any]:
    """Return ``server:`` of a source; its password is in a variable or in a connection of Airflow."""
    found: dict[str, Any] = {
        "host": ask.text("--host", "Host of the MySQL or MariaDB server", check=_valid(ServerConfig, "host")),
        "port": _number(ask.text("--port", "Port", str(PORT), _valid(ServerConfig, "port"))),
        "user": ask.text("--user", "User", USER, _valid(ServerConfig, "user")),
    }
    if connected := ask.has("--connection"):
        found["connection"] = ask.text("--connection", "")
    if not connected or ask.has("--password-env"):
        variable = re.sub(r"\W", "_", f"{source.upper()}_PASSWORD".lstrip("0123456789"), flags=re.ASCII)
        found["password_env"] = ask.text(
            "--password-env",
            "Environment variable that holds the password",
            variable,
            _valid(ServerConfig, "password_env"),
        )
    question = "File with the certificate of the server's authority, which is then checked; empty: it is not checked"
    if authority := ask.text("--ca", question, "", _no_file):
        found["tls"] = {"ca": authority}
    return found


def _no_file(answer: str) -> str:
    return "" if Path(answer).is_file() else f"there is no file {answer} on this machine"


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def tables(ask: Questions) -> list[str]:
    """Return the patterns of the captured tables."""
    return split(
        ask.text(
            "--tables",
            "Tables, such as shop.*, separated by commas",
            None,
            _valid(TablesConfig, "include", listed=True),
        )
    )


def data_folder(wanted: Path = DATA) -> Path:
    """Return the folder for batches and lake on this machine: in the user's home if the usual one cannot be written to."""
    there = next(one for one in (wanted, *wanted.parents) if one.exists())
    return wanted if there.is_dir() and os.access(there, os.W_OK) else Path.home() / ".local" / "share" / "cdc"


def shared(ask: Questions, data: Path) -> dict[str, Any]:
    """Return what all sources of a folder have in common: all that the shipped ``_defaults.yaml`` sets."""
    store = _store(ask, data)
    found = {
        "start": "snapshot",
        "schedule": SCHEDULE,
        "store": store,
        "lake": _lake(ask, store["url"], data),
        "merge": _merge(ask),
    }
    return found | {"verify": VERIFY}


def _store(ask: Questions, data: Path) -> dict[str, Any]:
    question = f"Store of the batches: {_FILE_OR_S3}, gs://bucket/prefix or "
    question += "abfss://container@account.dfs.core.windows.net/prefix"
    url = ask.text("--store", question, f"file://{quote(str(data))}/batches", _valid(StoreConfig, "url"))
    found: dict[str, Any] = {"url": url}
    scheme = urlsplit(url).scheme
    if scheme == "s3":
        own = "Endpoint of an S3 server of your own, https://host:port; empty: Amazon's"
        endpoint = ask.text("--endpoint", own, "", _valid(StoreConfig, "endpoint_url"))
        region = ask.text("--region", "Region; empty: that of the environment", "us-east-1" if endpoint else "")
        found |= {"endpoint_url": endpoint, "region": region}
    if ask.has("--store-connection"):
        found["connection"] = ask.text("--store-connection", "")
    elif scheme == "s3":
        found |= _s3_keys(ask)
    elif key := {"gs": "service_account_env", "abfss": "azure_secret_env"}.get(scheme):
        question = "Environment variable that holds the secret of the store; empty: credentials of this machine"
        found[key] = ask.text("--secret-key-env", question, "", _valid(StoreConfig, key))
    return {name: value for name, value in found.items() if value}


def _s3_keys(ask: Questions) -> dict[str, str]:
    question = "Environment variable that holds the access key; empty: AWS's default credentials"
    access = ask.text("--access-key-env", question, "", _valid(StoreConfig, "access_key_env"))
    if not access:
        return {}
    question = "Environment variable that holds the secret key"
    secret = ask.text("--secret-key-env", question, None, _valid(StoreConfig, "secret_key_env"))
    return {"access_key_env": access, "secret_key_env": secret}


def _lake(ask: Questions, store: str, data: Path) -> dict[str, Any]:
    question = "Iceberg catalog: jdbc:…, https://… (REST), thrift://… (Hive) or glue; a password in it as ${NAME}"
    uri = ask.text("--catalog", question, f"jdbc:sqlite:{data}/lake/catalog.db?busy_timeout=30000")
    kind = _CATALOGS.get(re.split(r"[:/]", uri)[0], "jdbc")
    parts = urlsplit(store)
    beside = f"s3://{parts.netloc}/lake" if parts.scheme == "s3" else f"file://{quote(str(data))}/lake"
    found = {"catalog": "lake", "type": kind, "uri": "" if kind == "glue" else uri}
    found["warehouse"] = ask.text("--warehouse", f"Lake: {_FILE_OR_S3}", beside)
    question = f"Engines that read the tables, of {', '.join(READERS)}"
    readers = split(
        ask.text("--readers", question, "spark,trino,pyiceberg", _valid(LakeConfig, "readers", listed=True))
    )
    found = {name: value for name, value in found.items() if value}
    return found | {"namespace": "{database}", "readers": readers}


def _merge(ask: Questions) -> dict[str, Any]:
    question = "Spark server, as http://host:8998 (cdc spark serve); empty: each job starts Spark here"
    url = ask.text("--spark-server", question, "", _valid(SparkServerConfig, "url"))
    if not url:
        return {"spark_master": "local[2]"}
    question = "Environment variable that holds its token"
    token = ask.text("--spark-token-env", question, "CDC_SPARK_TOKEN", _valid(SparkServerConfig, "token_env"))
    return {"spark_server": {"url": url} | ({"token_env": token} if token else {})}

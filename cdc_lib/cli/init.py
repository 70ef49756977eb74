"""``cdc init``: the file of a new source."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from cdc_lib.cli.context import AsJson, settings
from cdc_lib.cli.doctor import Line, examined, show_lines
from cdc_lib.cli.output import print_json, say
from cdc_lib.config import DEFAULTS_FILE, Loaded, SourceConfig, load_source
from cdc_lib.config.load import source_files
from cdc_lib.config.source import SOURCE_NAME
from cdc_lib.doctor.visit import Visit
from cdc_lib.errors import ConfigError

DAG_FILES = ("cdc_sources.py", "cdc_maintenance.py", "cdc_wrong_sources.py")
_PORT, _USER = 3306, "cdc"
_STORE, _WAREHOUSE = "file:///var/lib/cdc/batches", "file:///var/lib/cdc/lake"
_CATALOG = "jdbc:sqlite:/var/lib/cdc/lake/catalog.db?busy_timeout=30000"
_SCHEDULE = "*/5 * * * *"

_Text = str | None


def init(
    context: typer.Context,
    source: Annotated[_Text, typer.Argument(metavar="[SOURCE]", help="Name of the new source.")] = None,
    host: Annotated[_Text, typer.Option("--host", help="Name or address of the server.")] = None,
    port: Annotated[int | None, typer.Option("--port", help=f"Port of the server. Default: {_PORT}.")] = None,
    user: Annotated[_Text, typer.Option("--user", help=f"User of the server. Default: {_USER}.")] = None,
    password_env: Annotated[
        _Text, typer.Option("--password-env", help="Environment variable with the password. Default: SOURCE_PASSWORD.")
    ] = None,
    ca: Annotated[
        _Text, typer.Option("--ca", help="File with the certificate of the server's authority, which is then checked.")
    ] = None,
    connection: Annotated[
        _Text, typer.Option("--connection", help="Id of an Airflow connection with the log-in, instead of a variable.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--tables", help="Pattern of captured tables, such as shop.*; may be repeated.")
    ] = None,
    store: Annotated[
        _Text, typer.Option("--store", help="URL of the store, for a folder without _defaults.yaml.")
    ] = None,
    warehouse: Annotated[
        _Text, typer.Option("--warehouse", help="URL of the lake, for a folder without _defaults.yaml.")
    ] = None,
    catalog: Annotated[
        _Text, typer.Option("--catalog", help="JDBC URI of the Iceberg catalog, for a folder without _defaults.yaml.")
    ] = None,
    airflow: Annotated[
        bool, typer.Option("--airflow", help="Also write the three DAG files, beside the folder of the source files.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the file of a new source, check that a run can work, and print the next command.

    Asks for what no option gives. Exits with 1 if the check finds an error; the file is written all the same.

    Example:
        cdc init --airflow
        cdc init shop --host db.example.com --ca /etc/cdc/db-ca.pem --tables 'shop.*' --yes
    """
    folder, ask = settings(context).sources, _Questions(yes=yes)
    source = _name(folder, ask.text("SOURCE", "Name of the source", source))
    server: dict[str, Any] = {
        "host": ask.text("--host", "Host of the MySQL or MariaDB server", host),
        "port": int(ask.text("--port", "Port", port, str(_PORT))),
        "user": ask.text("--user", "User", user, _USER),
    }
    if ca:
        server["tls"] = {"ca": ca}
    if connection:
        server["connection"] = connection
        server |= {"password_env": password_env} if password_env else {}
    else:
        variable = re.sub(r"\W", "_", f"{source.upper()}_PASSWORD".lstrip("0123456789"), flags=re.ASCII)
        server["password_env"] = ask.text(
            "--password-env", "Environment variable that holds the password", password_env, variable
        )
    patterns = tables or ask.text("--tables", "Tables, such as shop.*, separated by commas", None).split(",")
    texts = {f"{source}.yaml": _yaml({"server": server, "tables": [one.strip() for one in patterns]})}
    if not (folder / DEFAULTS_FILE).exists():
        shared = {
            "schedule": _SCHEDULE,
            "store": {
                "url": ask.text(
                    "--store",
                    "Store: file:///folder, s3://bucket/prefix, gs://bucket/prefix or abfss://container@account.dfs.core.windows.net/prefix",
                    store,
                    _STORE,
                )
            },
            "lake": {
                "type": "jdbc",
                "uri": ask.text("--catalog", "Iceberg catalog: JDBC URI", catalog, _CATALOG),
                "warehouse": ask.text(
                    "--warehouse", "Lake: file:///folder or s3://bucket/prefix", warehouse, _WAREHOUSE
                ),
            },
        }
        texts[DEFAULTS_FILE] = _yaml(
            shared, "# What holds for every source of this folder unless its own file says otherwise.\n"
        )
    config = _checked(folder, source, texts)
    written = _write(folder, texts)
    if airflow:
        written += _write(folder.parent, _dag_files(folder.parent))
    lines = _examine(config, folder / f"{source}.yaml")
    if as_json:
        print_json({"source": source, "files": written, "findings": lines})
    else:
        for path in written:
            say(f"written: {path}", style="green")
        if lines:
            show_lines(lines)
        say(_next(config, lines), style="bold")
    if any(line.level == "error" for line in lines):
        raise typer.Exit(1)


class _Questions:
    """Asks for the values that no option gives.

    Args:
        yes: whether defaults are taken without a question.
    """

    def __init__(self, *, yes: bool) -> None:
        self.yes = yes

    def text(self, option: str, question: str, given: object, default: str | None = None) -> str:
        """Return the given value, the default, or the answer to a question.

        Raises:
            ConfigError: nothing may be asked, and there is no default.
        """
        if given is not None:
            return str(given)
        if not self.yes:
            return str(typer.prompt(question, default=default, err=True))
        if default is None:
            raise ConfigError(f"{option} is missing", hint="Give it, or leave out --yes to be asked.")
        return default


def _name(folder: Path, source: str) -> str:
    if not re.fullmatch(SOURCE_NAME, source):
        raise ConfigError(
            f"{source!r} is not a valid name of a source",
            hint="Use letters, digits, - and _, up to 64, and begin with a letter or digit.",
        )
    for path in source_files(folder) if folder.is_dir() else ():
        if path.stem.lower() == source.lower():  # two sources whose names differ in case alone are refused
            raise ConfigError(
                f"there is a source {path.stem!r} already",
                hint="Edit its file, or choose another name.",
                file=str(path),
            )
    return source


def _yaml(values: dict[str, Any], comment: str = "") -> str:
    return comment + yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _checked(folder: Path, source: str, texts: dict[str, str]) -> SourceConfig:
    """Return what the new files say, before they are in the folder: Airflow reads it all the time.

    Raises:
        ConfigError: a value is wrong.
    """
    with tempfile.TemporaryDirectory() as copies:
        if DEFAULTS_FILE not in texts:
            shutil.copy(folder / DEFAULTS_FILE, copies)
        for name, text in texts.items():
            (Path(copies) / name).write_text(text)
        try:
            return load_source(Path(copies) / f"{source}.yaml")
        except ConfigError as error:
            raise ConfigError(error.message, hint="Nothing was written. Give other values.") from None


def _write(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Write each file whole, the source's last; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in sorted(texts)]
    for path in written:
        part = path.with_name(f".{path.name}.part")
        part.write_text(texts[path.name])
        os.link(part, path)  # fails if somebody made the file meanwhile
        part.unlink()
    return written


def _dag_files(folder: Path) -> dict[str, str]:
    """Return the text of each DAG file that a folder does not have; a wheel has them beside this library, a checkout in ``dags``."""
    library = Path(__file__).parents[1]
    found = [library / "dag_files" / name for name in DAG_FILES]
    texts = [path if path.is_file() else library.parent / "dags" / path.name for path in found]
    return {path.name: path.read_text() for path in texts if not (folder / path.name).exists()}


def _examine(config: SourceConfig, path: Path) -> list[Line]:
    """Run the checks of ``cdc doctor``, if this process has the log-in."""
    variable = config.server.password_env
    if variable is None or variable not in os.environ:
        return []
    loaded = Loaded(config.source, path, config=config)
    return list(examined(loaded, Visit(1)))


def _next(config: SourceConfig, lines: list[Line]) -> str:
    variable = config.server.password_env
    if any(line.code for line in lines):
        return "next: do what the findings say, then: cdc doctor"
    if lines:
        return f"next: cdc run {config.source}, or unpause the DAG cdc_{config.source} in Airflow"
    if variable is None:
        return (
            f"next: test the connection {config.server.connection} in Airflow, then unpause the DAG cdc_{config.source}"
        )
    return f"next: set {variable}, then: cdc doctor"

"""``cdc init``: the file of a new source."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from cdc_lib.cli import questions
from cdc_lib.cli.context import AsJson, settings
from cdc_lib.cli.doctor import Line, examined, show_lines
from cdc_lib.cli.output import print_json, say
from cdc_lib.cli.questions import Questions
from cdc_lib.cli.settings import airflow_sources
from cdc_lib.config import DEFAULTS_FILE, Loaded, SourceConfig, load_source
from cdc_lib.config.load import source_files
from cdc_lib.config.source import SOURCE_NAME
from cdc_lib.doctor.visit import Visit
from cdc_lib.errors import ConfigError
from cdc_lib.jobs.secrets import named_variables
from cdc_lib.model.readers import READERS

DAG_FILES = ("cdc_sources.py", "cdc_maintenance.py", "cdc_wrong_sources.py")
_COMMENT = "# What holds for every source of this folder unless its own file says otherwise.\n"

_Text = str | None


def init(
    context: typer.Context,
    source: Annotated[_Text, typer.Argument(metavar="SOURCE", help="Name of the new source.")] = None,
    host: Annotated[_Text, typer.Option("--host", help="Name or address of the server.")] = None,
    port: Annotated[int | None, typer.Option("--port", help=f"Port of the server. Default: {questions.PORT}.")] = None,
    user: Annotated[_Text, typer.Option("--user", help=f"User of the server. Default: {questions.USER}.")] = None,
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
        _Text,
        typer.Option(
            "--store",
            help=f"URL of the store, for a folder without _defaults.yaml. Default: file://{questions.DATA}/batches.",
        ),
    ] = None,
    endpoint: Annotated[
        _Text, typer.Option("--endpoint", help="Address of an S3 server of your own. Default: Amazon's.")
    ] = None,
    region: Annotated[_Text, typer.Option("--region", help="Region of the S3 bucket.")] = None,
    access_key_env: Annotated[
        _Text, typer.Option("--access-key-env", help="Environment variable with the access key of S3.")
    ] = None,
    secret_key_env: Annotated[
        _Text, typer.Option("--secret-key-env", help="Environment variable with the secret of the store.")
    ] = None,
    store_connection: Annotated[
        _Text, typer.Option("--store-connection", help="Id of an Airflow connection with the keys of the store.")
    ] = None,
    catalog: Annotated[
        _Text,
        typer.Option("--catalog", help="Iceberg catalog: jdbc:…, https://… (REST), thrift://… (Hive) or glue."),
    ] = None,
    warehouse: Annotated[_Text, typer.Option("--warehouse", help="URL of the lake.")] = None,
    spark_server: Annotated[
        _Text, typer.Option("--spark-server", help="Address of a Spark server. Default: each job starts Spark.")
    ] = None,
    spark_token_env: Annotated[
        _Text, typer.Option("--spark-token-env", help="Environment variable with its token. Default: CDC_SPARK_TOKEN.")
    ] = None,
    readers: Annotated[
        _Text,
        typer.Option("--readers", help=f"Engines that read the tables, with commas: {', '.join(READERS)}."),
    ] = None,
    airflow: Annotated[
        bool | None,
        typer.Option(
            "--airflow/--no-airflow",
            help="Write the three DAG files, beside the folder of the source files. Default: in the home of Airflow.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the file of a new source and check it.

    Checks that a run can work, and prints the next command.
    Asks for what no option gives, in a terminal. Elsewhere, and with --yes, defaults are taken. Secrets are in no file: name the
    environment variables that hold them. The first source of a folder also gets _defaults.yaml: store, lake and Spark of all sources.
    In the home of Airflow the DAG files are written too. Exits with 1 if the check finds an error; the files are written all the same.

    Example:
        cdc init
        cdc init shop --host db.example.com --ca /etc/cdc/db-ca.pem --tables 'shop.*' --yes
        cdc init shop --host db.example.com --tables 'shop.*' --store s3://bucket/cdc --endpoint https://s3.example.com --yes
    """
    folder = settings(context).sources
    given = {
        "SOURCE": source, "--host": host, "--port": port, "--user": user, "--password-env": password_env, "--ca": ca,
        "--connection": connection, "--store": store, "--endpoint": endpoint, "--region": region,
        "--access-key-env": access_key_env, "--secret-key-env": secret_key_env, "--store-connection": store_connection,
        "--catalog": catalog, "--warehouse": warehouse, "--spark-server": spark_server,
        "--spark-token-env": spark_token_env, "--readers": readers,
    }  # fmt: skip
    ask = Questions(given, asks=sys.stdin.isatty() and not yes)
    ask.refuse_missing("SOURCE", "--host", *(() if tables else ("--tables",)))
    config, texts = _answered(ask, folder, tables)
    written = _write(folder, texts)
    if airflow or (airflow is None and folder == airflow_sources()):
        written += _write(folder.parent, _dag_files(folder.parent))
    named = named_variables(config.model_dump(mode="json"))
    unset = sorted(name for name in named if name not in os.environ)
    lines = [] if unset or config.server.password_env is None else _examine(config, folder)
    if as_json:
        print_json({"source": config.source, "files": written, "findings": lines})
    else:
        for path in written:
            say(f"written: {path}", style="green")
        if lines:
            show_lines(lines)
        say(_next(config, unset, lines, in_airflow=folder == airflow_sources()), style="bold")
    if any(line.level == "error" for line in lines):
        raise typer.Exit(1)


def _answered(ask: Questions, folder: Path, tables: list[str] | None) -> tuple[SourceConfig, dict[str, str]]:
    """Return the values of the new source, and the text of each file that is needed for them.

    Raises:
        ConfigError: a value is wrong, or an option has no use.
    """
    source = ask.text("SOURCE", "Name of the source", check=partial(_problem_of_name, folder))
    if wrong := _problem_of_name(folder, source):
        raise ConfigError(wrong, hint="Choose another name, or edit the file that is there.")
    own = {"server": questions.server(ask, source), "tables": tables or questions.tables(ask)}
    texts = {f"{source}.yaml": _yaml(own)}
    defaults = folder / DEFAULTS_FILE
    if not defaults.exists():
        texts[DEFAULTS_FILE] = _yaml(questions.shared(ask, questions.data_folder()), _COMMENT)
    if unused := ask.unused():
        why = f"{defaults} has what all sources share" if defaults.exists() else "the other values do not need it"
        raise ConfigError(
            f"{' and '.join(unused)} would have no effect: {why}", hint="Leave it out, or edit that file."
        )
    return _checked(folder, source, texts), texts


def _problem_of_name(folder: Path, source: str) -> str:
    """Say why a source cannot have this name; an empty text if it can."""
    if not re.fullmatch(SOURCE_NAME, source):
        return f"{source!r} is not a valid name of a source: letters, digits, - and _, up to 64, the first a letter or digit"
    for path in source_files(folder) if folder.is_dir() else ():
        if path.stem.lower() == source.lower():  # two sources whose names differ in case alone are refused
            return f"there is a source {path.stem!r} already: {path}"
    return ""


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


def _examine(config: SourceConfig, folder: Path) -> list[Line]:
    """Run the checks of ``cdc doctor``."""
    loaded = Loaded(config.source, folder / f"{config.source}.yaml", config=config)
    return list(examined(loaded, Visit(1)))


def _next(config: SourceConfig, unset: list[str], lines: list[Line], *, in_airflow: bool) -> str:
    if any(line.code for line in lines):
        return "next: do what the findings say, then: cdc doctor"
    if unset:
        return f"next: set {', '.join(unset)}, then: cdc doctor"
    if config.server.password_env is None:
        return (
            f"next: test the connection {config.server.connection} in Airflow, then unpause the DAG cdc_{config.source}"
        )
    dag = f", or unpause the DAG cdc_{config.source} in Airflow" if in_airflow else ""
    return f"next: cdc run {config.source}{dag}"

"""``cdc spark serve``: one Spark for the jobs of many sources."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cdc_lib.cli.listening import Socket, listening_token
from cdc_lib.errors import ConfigError
from cdc_lib.jobs.secrets import SERVER_TOKEN
from cdc_lib.model.spark_master import MASTERS, master_problem


def serve(
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="TCP port.")] = 8998,
    token_env: Annotated[
        str, typer.Option("--token-env", metavar="NAME", help="Environment variable with the token that clients send.")
    ] = "",
    socket: Socket = None,
    master: Annotated[
        str, typer.Option("--master", help="Where Spark runs its tasks: local[*], spark://host:7077, yarn, k8s://...")
    ] = "local[*]",
    driver_memory: Annotated[str, typer.Option("--driver-memory", help="Memory of its Java process: 4g.")] = "4g",
    slots: Annotated[int, typer.Option("--slots", min=1, max=256, help="Jobs that run at the same time.")] = 4,
    ca: Annotated[
        Path | None, typer.Option("--ca", help="PEM file of certificate authorities that Java trusts too.", exists=True)
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
    ] = None,
) -> None:
    """Run the Spark jobs of many sources in one Spark that stays up: no job starts Java.

    Sources name it under merge.spark_server: in their files. Each job is a process of its own, with a session of its own. The server may be
    stopped and started at any time: the jobs that it ran are tried again.

    Clients send the passwords that their jobs need, and a token, which is made and printed if --token-env names none. At a --socket they
    send none, and sources name it as url: unix:///FILE. TLS is a proxy's.

    Example:
        cdc spark serve
        cdc spark serve --socket /run/cdc/spark.sock
        cdc spark serve --host 0.0.0.0 --token-env CDC_SPARK_TOKEN --master spark://master:7077
    """
    for needed, extra in {"pyspark": "spark", "spark_jobs": "spark", "fastapi": "serve", "uvicorn": "serve"}.items():
        if importlib.util.find_spec(needed) is None:
            raise ConfigError(
                f"a Spark server needs {needed}, which is not installed", hint=f'pip install "lakecdc[{extra}]"'
            )
    if master_problem(master):
        raise ConfigError(
            f"--master {master} is not a master that a Spark server can use",
            hint=f"Give one of {MASTERS}. A Spark server is a driver of its own: it does not use Spark Connect.",
        )
    token = listening_token(host, token_env, socket)
    command = [sys.executable, "-m", "spark_jobs.server", "--host", host, "--port", str(port), "--master", master]
    command += ["--driver-memory", driver_memory, "--slots", str(slots)]
    command += ["--socket", str(socket)] if socket is not None else []
    command += ["--ca", str(ca)] if ca is not None else []
    command += [f"--conf={setting}" for setting in conf or ()]
    others = {name: value for name, value in os.environ.items() if name != token_env}  # of Java and the jobs
    os.execve(command[0], command, {**others, SERVER_TOKEN: token})  # noqa: S606 - signals reach the server itself

"""``cdc serve``: a read-only Iceberg REST catalog over the cuts of the sources."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack
from typing import Annotated

import typer

from cdc_lib.cli.context import config_of, find, settings
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.listening import Socket, listening_token
from cdc_lib.cli.output import say
from cdc_lib.config import SourceConfig, load_sources
from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.open import open_store


def serve(
    context: typer.Context,
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE", help="Sources whose lakes are shown. Default: all.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="TCP port.")] = 8181,
    token_env: Annotated[
        str, typer.Option("--token-env", metavar="NAME", help="Environment variable with the token that clients send.")
    ] = "",
    socket: Socket = None,
) -> None:
    """Serve the lake as a read-only Iceberg REST catalog.

    Spark, PyIceberg, DuckDB or Trino read all tables as of one transaction.
    The warehouse of a client is the name of a source. A namespace begins with a cut: latest, a time, a GTID, file:offset or an id.
    Clients read the files with their own credentials. Below /hbase/SOURCE are the GET paths of HBase's REST server.
    Clients send a token, which is made and printed if --token-env names none; at a --socket they send none. TLS is a proxy's.

    Example:
        cdc serve shop
        cdc serve --host 0.0.0.0 --token-env CDC_SERVE_TOKEN
    """
    token = listening_token(host, token_env, socket)
    configs = [config_of(find(context, name)) for name in sources] if sources else _all(context)
    if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("uvicorn") is None:
        raise ConfigError("serving needs FastAPI and uvicorn", hint='pip install "lakecdc[serve]"')
    server = lake_reader("serve.server")
    with ExitStack() as opened:
        listener = opened.enter_context(server.listener(host, port, socket))
        app = lake_reader("serve.app").make_app({one.source: _catalog(one, opened) for one in configs}, token)
        say(f"serving {', '.join(one.source for one in configs)} at {server.address(listener)}; Ctrl-C ends it")
        server.run(app, listener)


def _all(context: typer.Context) -> list[SourceConfig]:
    found = [config_of(loaded) for loaded in load_sources(settings(context).sources)]
    if not found:
        raise ConfigError(f"there is no source in {settings(context).sources}", hint="cdc init writes one.")
    return found


def _catalog(config: SourceConfig, opened: ExitStack) -> object:
    lake = lake_reader("lake.catalog")
    with lake.translate_errors():
        catalog = opened.enter_context(lake.open_catalog(config))
    return lake_reader("serve.catalog").CutCatalog(config, open_store(config.store), catalog)

"""Pages of the site that are made from the code when the site is built: configuration, command line, DAGs, errors and benchmarks.

mkdocs calls :func:`on_files`. Because the pages do not exist as files, they cannot differ from the models and commands.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.core import TyperGroup
from typer.main import get_command

from cdc_airflow import docs as task_docs
from cdc_lib import errors
from cdc_lib.cli.errors import EXIT_STATUS
from cdc_lib.cli.main import app
from cdc_lib.cli.output import exit_code
from cdc_lib.cli.registry import CommandWithMore
from cdc_lib.config.source import SourceConfig
from cdc_lib.lake.reader_faults import READER_FAULTS
from cdc_lib.model.readers import READERS
from tests.bench import page as benchmarks

_ARGUMENT = re.compile(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", re.MULTILINE)
_LITERAL = re.compile(r"``([^`]+)``")
_ROLE = re.compile(r":\w+:`~?([^`]+)`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages; mkdocs calls this once for each build."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """Return the Markdown of each generated page by its path below ``docs/``."""
    return {
        "reference/configuration.md": configuration(),
        "reference/cli.md": command_line(),
        "reference/errors.md": error_tree(),
        "reference/dags.md": dags(),
        "reference/readers.md": readers(),
        "benchmarks/all.md": benchmarks.page(benchmarks.results()),
    }


# --- configuration


def configuration() -> str:
    """Return the page of all keys of a source file, one section for each model."""
    head = (
        "# Configuration\n\n"
        "One YAML file for each source: `dags/sources/<name>.yaml`. Keys in `_defaults.yaml` beside it apply to all sources; "
        "a source's own keys win. `${NAME}` is replaced by an environment variable. An unknown key is an error.\n\n"
        "Durations are a number and a unit: `60s`, `90m`, `36h`, `7d`. "
        "This page is generated from the models that check the files.\n"
    )
    return head + "".join(_section("", SourceConfig))


def _section(path: str, model: type[BaseModel]) -> Iterator[str]:
    """Yield a model as a table of its keys, and then each model below it."""
    summary, meanings = _docstring(model)
    defaults = model.model_construct().model_dump(mode="json", warnings=False)
    yield f"\n## {f'`{path}`' if path else 'Top level'}\n\n{summary}\n\n"
    yield "| key | default | value | meaning |\n|---|---|---|---|\n"
    below: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        yield f"| `{name}` | {_default(field, defaults.get(name))} | {_cell(field.description or '')} | {_cell(meanings.get(name, ''))} |\n"
        inner = _model_of(field.annotation)
        if inner is not None:
            below.append((f"{path}.{name}" if path else name, inner))
    for inner_path, inner in below:
        yield from _section(inner_path, inner)


def _docstring(model: type[BaseModel]) -> tuple[str, dict[str, str]]:
    """Return the text of a model's docstring, and the meaning of each field that it explains."""
    text = model.__doc__ or ""
    summary = inspect.cleandoc(text).partition("\n\nArgs:")[0]
    meanings = {name: " ".join(meaning.split()) for name, meaning in _ARGUMENT.findall(text)}
    return _markdown(" ".join(summary.split("\n"))), meanings


def _default(field: FieldInfo, plain: Any) -> str:
    """Return a default as a source file spells it; empty where the key has none worth showing."""
    if field.is_required():
        return "required"
    if plain is None or isinstance(plain, dict) or plain in ([], ""):
        return ""
    return f"`{json.dumps(plain) if isinstance(plain, bool | list) else plain}`"


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model in an annotation, through optional values and lists; None without one."""
    choices = get_args(annotation) if get_origin(annotation) in {Union, UnionType, tuple} else (annotation,)
    return next((one for one in choices if isinstance(one, type) and issubclass(one, BaseModel)), None)


# --- DAGs


def dags() -> str:
    """Return the page of all DAGs and their tasks, each DAG with a picture."""
    head = (
        "# DAGs and tasks\n\n"
        "What each task does, and what happens if it is retried, cleared or marked as success. Airflow shows the same texts beside "
        "the tasks. [Airflow](../guides/airflow.md) says when the DAGs run.\n\n"
        "This page is generated from the texts of the DAGs.\n"
    )
    of_source = (_dag(f"cdc_<source>{kind}", tasks, " ──▶ ") for kind, tasks in task_docs.OF_A_SOURCE.items())
    return head + "".join([*of_source, _dag("cdc_maintenance", task_docs.OF_MAINTENANCE, "\n")])


def _dag(name: str, tasks: Mapping[str, str], between: str) -> str:
    """Return the section of one DAG.

    Args:
        name: id of the DAG.
        tasks: texts of its tasks, by their ids.
        between: what the picture has between two tasks.
    """
    names = [f"{task}_<source>" if name == "cdc_maintenance" else task for task in tasks]
    boxes = [f"[ {one} ]" if one != "drain" else "[[ drain: one for each window or snapshot ]]" for one in names]
    texts = "".join(f"\n### `{one}`\n{text}" for one, text in zip(names, tasks.values(), strict=True))
    return f"\n## `{name}`\n\n```text\n{between.join(boxes)}\n```\n{texts}"


# --- command line


def command_line() -> str:
    """Return the page of all commands, with their arguments and options."""
    root = get_command(app)
    head = (
        "# Command line\n\n"
        "`cdc` runs every step without Airflow. In a checkout, write `./dev cdc`. "
        f"{EXIT_STATUS}\n\n"
        "This page is generated from the commands.\n"
    )
    return head + "".join(_commands("cdc", root))


def _commands(prefix: str, command: Any) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        if prefix == "cdc":
            yield f"\n## Options of every command\n\n{_parameters(command)}"
        for name in command.list_commands(command.make_context(prefix, [], resilient_parsing=True)):
            inner = command.get_command(command.make_context(prefix, [], resilient_parsing=True), name)
            yield from _commands(f"{prefix} {name}", inner)
        return
    context = command.make_context(prefix, [], resilient_parsing=True)
    usage = " ".join([prefix, *command.collect_usage_pieces(context)])
    yield f"\n## `{prefix}`\n\n{_markdown(inspect.cleandoc(command.help or ''))}\n\n```text\n{usage}\n```\n\n"
    examples = (command.epilog or "").replace("Example: ", "").replace("\n\n", "\n")
    yield f"```sh\n{examples}\n```\n\n" if examples else ""
    yield _parameters(command)
    if isinstance(command, CommandWithMore):
        for name in command.entries:
            yield from _commands(f"{prefix} {name}", command.inner(name))


def _parameters(command: Any) -> str:
    rows = []
    for one in command.params:
        if one.name == "help":
            continue
        options = [*getattr(one, "opts", ()), *getattr(one, "secondary_opts", ())]
        name = ", ".join(options) if options[0].startswith("-") else (one.metavar or options[0].upper())
        rows.append(f"| `{name}` | {_cell(getattr(one, 'help', None) or '')} |\n")
    return "| argument or option | meaning |\n|---|---|\n" + "".join(rows) if rows else ""


# --- errors


def error_tree() -> str:
    """Return the page of all error classes, with their exit status and whether Airflow retries them."""
    head = (
        "# Errors\n\n"
        "Every error has a message, the place where it happened, and a hint that says what to do. "
        "A retryable error uses the retries of the Airflow task; any other error fails the task at once. "
        "The [runbook](../operations.md) lists the messages and what to do.\n\n"
        "Stored documents and JSON name an error by its code.\n\n"
        "| error | code | kind of | meaning | retried | exit status |\n|---|---|---|---|---|---|\n"
    )
    classes = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.CdcError)]
    order = sorted(classes, key=lambda one: [parent.__name__ for parent in reversed(one.__mro__)])
    rows = (
        f"| `{one.__name__}` | `{one.code}` | `{one.__mro__[1].__name__}` | {_cell(inspect.cleandoc(one.__doc__ or ''))} "
        f"| {'yes' if one.retryable else 'no'} | {exit_code(one(''))} |\n"
        for one in order
        if one is not errors.CdcError
    )
    return head + "".join(rows)


# --- readers


def readers() -> str:
    """Return the page of what engines read of a layout, and what they read wrongly from partitioned tables."""
    return f"# Readers\n\n{_layout_readers()}\n## Partitions\n\n{_partition_readers()}"


def _layout_readers() -> str:
    head = (
        "`lake.readers` names the engines that read the tables. A table gets the fastest layout that all of them read, if `layouts` says "
        "nothing else, and `cdc doctor` refuses one that a reader does not read.\n\n"
        "| `lake.readers` | `format_version` | `write_mode` | from | who says so | when |\n|---|---|---|---|---|---|\n"
    )
    rows = (
        f"| `{name}` | {one.format_version} | `{one.write_mode}` | {one.since} | {_linked(one.source)} | {one.date} |\n"
        for name, one in READERS.items()
    )
    return head + "".join(rows)


def _linked(source: str) -> str:
    return (
        f"[its documentation]({source})" if source.startswith("https:") else f"`{source}`" if "/" in source else source
    )


def _partition_readers() -> str:
    head = (
        "Some engines skip files that they must read: a query with a condition on the partition column lacks rows, without an error. "
        "Without such a condition they are right. `cdc doctor` warns of a layout that is in this table.\n\n"
        "| reader | transform | type of the column | what happens |\n|---|---|---|---|\n"
    )
    rows = (
        f"| {one.reader} | `{one.transform}` | {', '.join(f'`{kind}`' for kind in one.types)} | {_cell(one.what)} |\n"
        for one in READER_FAULTS
    )
    tail = (
        "\nEach other transform and type was right in these versions and in Spark, on each format version and write mode, with "
        "`=`, `<`, `<=`, `>`, `>=`, `<>`, `IN`, `IS NULL` and `IS NOT NULL`, with the smallest and the largest value of the type. "
        "`tests/integration/spark/test_partitions.py` compares them, and this page is generated from what it expects.\n"
    )
    return head + "".join(rows) + tail


# --- text


def _cell(text: str) -> str:
    return _markdown(" ".join(text.split())).replace("|", "\\|")


def _markdown(text: str) -> str:
    """Turn the marks of docstrings into those of Markdown."""
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))

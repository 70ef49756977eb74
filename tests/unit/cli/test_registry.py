"""The list of commands, and what it costs to show it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from cdc_lib.cli import registry
from cdc_lib.cli.main import app
from tests.harness.docs.pages import problem_of

HEAVY = (
    "airflow", "boto3", "botocore", "cdc_lib.config", "cdc_lib.pipeline", "numba", "numpy", "pandas", "pyarrow", "pydantic",
    "pyiceberg", "pymysql", "pymysqlreplication", "pyspark", "sqlglot", "yaml",
)  # fmt: skip

OF_TYPER = {
    "annotated_doc", "attr", "click", "linkify_it", "markdown_it", "mdurl", "pygments", "rich", "shellingham", "typer",
}  # fmt: skip
"""The packages of others that the list of commands may import: typer, what it prints with, and their dependencies."""


def leaves(entries=registry.COMMANDS, path=()):
    """The paths of all commands and their entries."""
    for name, entry in entries.items():
        if isinstance(entry, registry.GroupEntry):
            yield from leaves(entry.commands, (*path, name))
        if isinstance(entry, registry.Entry) or entry.own:
            yield (*path, name), entry


LEAVES = dict(leaves())
OWN = ("verify", "tables")
"""Where a command is whose name is that of more commands."""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["step", "--help"], ["step", "ack", "--help"], ["lake"]]
)
def test_what_needs_no_source_imports_nothing_heavy(arguments):
    """The list of commands took three seconds, most of them for libraries that it does not use."""
    code = (
        "import json, sys\nfrom cdc_lib.cli.main import app\n"
        f"try:\n    app({arguments})\nfinally:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout
    by_typer = (
        {"pydantic"} if len(arguments) > 1 or arguments == ["lake"] else set()
    )  # checks the options of the root by it
    assert set(json.loads(done.stderr.splitlines()[-1])).isdisjoint(set(HEAVY) - by_typer)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_list_of_commands_imports_nothing_but_typer_and_what_it_needs(argument):
    """Any other import makes each call of cdc slower: it belongs into the command that uses it."""
    code = (
        "import json, sys\nat_start = set(sys.modules)\nfrom cdc_lib.cli.main import app\n"
        f"try:\n    app(['{argument}'])\nfinally:\n    print(json.dumps(sorted(set(sys.modules) - at_start)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout
    imported = {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}
    assert "typer" in imported
    assert imported - sys.stdlib_module_names - {"cdc_lib"} <= OF_TYPER


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_the_line_about_a_command_is_that_of_its_own_help(path):
    """It is in the list without the command being imported."""
    command = registry.load(*path)
    assert command.name == path[-1]
    assert LEAVES[path].help == " ".join((command.help or "").split("\n\n")[0].split())


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_a_command_is_in_the_module_of_its_name_and_has_an_example(path):
    """The example is a call of that command, with options that it has."""
    command = registry.load(*path)
    assert command.callback.__module__ == ".".join(("cdc_lib.cli", *(path[:2] if path != ("verify",) else OWN)))
    examples = [line.removeprefix("Example: ") for line in command.epilog.split("\n\n")]
    assert [one for one in examples if not f"{one} ".startswith(f"cdc {' '.join(path)} ")] == []
    assert [problem for one in examples if (problem := problem_of(one.partition(" > ")[0]))] == []
    assert f"Example: cdc {' '.join(path)}" in " ".join(CliRunner().invoke(app, [*path, "--help"]).stdout.split())


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_options_of_one_name_mean_the_same_in_every_command(path):
    """Times are --since and --until, keys --key-from and --key-to; --from could be a time, a key, a place or a file."""
    options = {option: one for one in registry.load(*path).params for option in one.opts if option.startswith("--")}
    assert "--from" not in options
    assert "--to" not in options or path == ("cursor", "failover")
    if "--json" in options:
        assert options["--json"].help == "Print JSON instead of tables."
    if "--yes" in options and path != ("batches", "gc"):
        assert options["--yes"].help == "Do not ask."


def test_a_command_whose_name_is_that_of_more_commands_hands_its_arguments_on(sources):
    """By its first argument only; after -- a source may have the name of a command."""
    for words, said in (
        (["verify", "windows", "shop", "--daily", "--last", "1"], "--daily chooses windows of all tables"),
        (["verify", "ranges", "other"], "there is no source 'other'"),
        (["verify", "other", "ranges"], "there is no source 'other'"),
        (["verify", "--", "ranges"], "there is no source 'ranges'"),
    ):
        done = CliRunner().invoke(app, ["--sources", str(sources), *words])
        assert (done.exit_code, said in " ".join(done.output.split())) == (2, True), done.output
    assert "cdc verify windows" in CliRunner().invoke(app, ["verify", "--help"], prog_name="cdc").stdout


def test_an_unknown_command_is_an_error():
    """Also in a group, and one that is a word of another group."""
    for words in (["plann"], ["plan"], ["step", "gc"], ["step", "ack", "merge"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2
        assert f"No such command '{words[-1]}'" in result.stderr


def test_the_help_fits_one_screen(monkeypatch):
    """Daily commands first, each with one line; what exit statuses mean is there for scripts."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line for line in CliRunner().invoke(app, ["--help"], prog_name="cdc").stdout.splitlines() if line.strip()]
    assert len(lines) <= 40, "\n".join(lines)
    begins = [line.split()[1] for line in lines if line.startswith("│ ")]
    assert begins[begins.index("init") :] == list(registry.COMMANDS)
    assert "Exit status: 0 done; 1 an error" in " ".join(lines)


def test_the_version_is_an_option():
    """As everywhere."""
    assert CliRunner().invoke(app, ["--version"]).stdout == f"lakecdc {version('lakecdc')}\n"

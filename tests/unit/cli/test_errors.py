from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.cli.output import exit_code
from cdc_lib.errors import ConfigError, MergeError, SourceUnavailable

COMMANDS = [
    ["step", "plan"],
    ["step", "drain"],
    ["step", "merge"],
    ["step", "ack", "drain"],
    ["step", "ack", "lake"],
    ["run"],
    ["status"],
    ["cursor", "show"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_source_that_is_not_there_ends_with_two_and_names_those_that_are(cdc, command):
    """A misspelt name is a person's mistake."""
    result = cdc(*command, "shoop")
    assert result.exit_code == 2
    assert "there is no source 'shoop'" in result.stderr
    assert "The sources there: shop." in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_source_file_ends_with_two_and_what_is_wrong(cdc, sources, command):
    """Before anything is connected to."""
    (sources / "bad.yaml").write_text("tables: []\nstroe: {}\n")
    result = cdc(*command, "bad")
    assert result.exit_code == 2
    assert "bad.yaml, line 2: stroe: unknown key" in result.stderr
    assert "did you mean 'store'?" in result.stderr


@pytest.mark.parametrize("command", [["step", "plan"], ["step", "drain"], ["run"]], ids=" ".join)
def test_a_server_that_does_not_answer_ends_with_one_and_says_so(cdc, command):
    """With no traceback and no password."""
    result = cdc(*command, "shop")
    assert result.exit_code == 1
    assert "error: " in result.stderr
    assert "Traceback" not in result.output


def test_debug_shows_where_an_error_came_from(sources):
    """The message and the exit code stay."""
    result = CliRunner().invoke(app, ["--sources", str(sources), "--debug", "step", "plan", "nope"])
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "there is no source" in result.stderr


def test_a_password_that_is_not_set_names_its_variable(cdc, monkeypatch):
    """The name is in the file, the value never."""
    monkeypatch.delenv("SHOP_PASSWORD")
    result = cdc("step", "plan", "shop")
    assert result.exit_code == 2
    assert "SHOP_PASSWORD is not set" in result.stderr


def test_a_folder_that_does_not_exist_is_reported(tmp_path):
    """With the two ways to name another."""
    result = CliRunner().invoke(app, ["--sources", str(tmp_path / "none"), "status"])
    assert result.exit_code == 2
    assert "CDC_SOURCES" in result.stderr


def test_the_folder_may_come_from_the_environment(sources):
    """As it does in Airflow."""
    result = CliRunner().invoke(app, ["step", "plan", "nope"], env={"CDC_SOURCES": str(sources)})
    assert f"in {sources}" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConfigError("x"), 2), (SourceUnavailable("x"), 1), (MergeError("x"), 1)],
    ids=["config", "source", "merge"],
)
def test_only_a_persons_mistake_ends_with_two(error, code):
    """Scripts distinguish it from temporary errors."""
    assert exit_code(error) == code


def test_square_brackets_in_a_message_are_printed_as_they_are(cdc, sources):
    """Rich would read them as markup and drop them."""
    (sources / "bad.yaml").write_text("tables: ['[bold]x']\n")
    assert "'[bold]x' is not database.table" in cdc("step", "plan", "bad").stderr


def test_the_version_is_that_of_the_installation(cdc):
    """One line, for bug reports."""
    result = cdc("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("lakecdc 0.")


@pytest.mark.parametrize("command", [*COMMANDS, ["doctor"], ["lake", "preview"], []], ids=" ".join)
def test_every_command_explains_itself(cdc, command):
    """``--help`` after anything."""
    result = cdc(*command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout

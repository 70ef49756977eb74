"""Every code block of the documentation can be used as it is: commands, source files and SQL, each read by what will read it."""

from __future__ import annotations

import logging
import re
import shlex
import tomllib

import pytest
import sqlglot
import yaml
from airflow.cli.cli_parser import get_parser
from sqlglot import exp

from cdc_lib.config import SourceConfig, load_source
from cdc_lib.errors import ConfigError
from tests.harness.docs.pages import (
    ROOT,
    blocks,
    dev_problem,
    dev_usage,
    languages,
    pages,
    problem_of,
    shell_lines,
    usage_problem,
)  # fmt: skip

PAGES = {str(path.relative_to(ROOT)): path.read_text() for path in [*pages(), ROOT / "ARCHITECTURE.md"]}
LINES = sorted({(page, line) for page, text in PAGES.items() for line in shell_lines(text)})
SPANS = sorted(
    {
        (page, span)
        for page, text in PAGES.items()
        for span in re.findall(r"(?<!`)`((?:cdc|\./dev) [^`\n]+)`(?!`)", text)
    }
)
FILES = [(page, block) for page, text in PAGES.items() for block in blocks(text, "yaml")]
QUERIES = [(page, block) for page, text in PAGES.items() for block in blocks(text, "sql")]
SETTINGS = sorted(
    {
        (page, span)
        for page, text in PAGES.items()
        for span in re.findall(r"(?<!`)`([a-z_]+(?:\.[a-z_]+)*: [^`\n]+)`(?!`)", text)
    }
)
WHOLE = {"server", "tables"}
"""Keys of a source file that is shown whole."""
OF_AN_ENTRY = {"keys: [server, schema, table]"}
"""Settings of one entry of a list, which need the rest of the entry."""
LEAST = """
server: {host: db.example.com, user: cdc, password_env: SHOP_PASSWORD}
tables: ["shop.*"]
"""


def installs(line):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    name, wanted = re.fullmatch(r"pip install (\.|\w+)(?:\[([\w,]+)\])?", " ".join(shlex.split(line))).groups()
    known = name in {".", "lakecdc"} and set((wanted or "").split(",")) <= {*extras, ""}
    return None if known else f"no such package or extra: {line}"


def in_airflow(line):
    try:
        get_parser().parse_args(shlex.split(line)[1:])
    except SystemExit:
        return f"airflow does not take: {line}"
    return None


def of_a_file(name):
    return None if (ROOT / name).exists() else f"there is no {name}"


def of_files(line):
    """Look for the files and folders that options of docker, kubectl and helm name."""
    named = re.findall(r" --(?:file|kustomize|values)[ =](\S+)", line)
    return next(filter(None, map(of_a_file, named)), None)


PROGRAMS = {
    "./dev": dev_problem,
    "cdc": usage_problem,
    "pip": installs,
    "airflow": in_airflow,
    "python": lambda line: (
        None if re.fullmatch(r"python -m cdc_lib\.compile_kernels", line) else f"not run by a test: {line}"
    ),
    "python3": lambda line: None if re.fullmatch(r"python3 -m venv \S+", line) else f"not run by a test: {line}",
    "docker": lambda line: of_a_file("docker-compose.yml") if "compose" in line else of_files(line),
    "kubectl": of_files,
    "helm": of_files,
    "cp": lambda line: of_a_file(line.split()[1]),
}
"""What reads a line of a shell block, by its program."""


def problem_in(line):
    """Return what is wrong with a line of a shell block, up to a pipe or a file that it writes."""
    line = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", line)  # variables for the program
    line = re.sub(r"^[~/]\S+/(?=\w+ )", "", line)  # the place of an environment
    program = line.split()[0]
    if program not in PROGRAMS:
        return f"no test knows the program {program}"
    return PROGRAMS[program](re.split(r" \| | > ", line)[0])


def source_of(block, folder):
    """Load a source file of a page over the defaults of the repository; a fragment is put into the least source file."""
    shown = yaml.safe_load(block)
    (folder / "_defaults.yaml").write_text((ROOT / "dags" / "sources" / "_defaults.yaml").read_text())
    (folder / "shop.yaml").write_text(
        block if set(shown) >= WHOLE else yaml.safe_dump(over(yaml.safe_load(LEAST), shown))
    )
    return load_source(folder / "shop.yaml", {})


def over(least, shown):
    """Return a document with the values of another one in it, section by section."""
    if not isinstance(least, dict) or not isinstance(shown, dict):
        return shown
    return {**least, **{key: over(least.get(key), value) for key, value in shown.items()}}


def setting(span):
    """Return a setting of a sentence, such as ``failover.attempts: 3``, as a source file has it."""
    path, _, value = span.partition(": ")
    found = yaml.safe_load(value.replace("...", "shop.orders").replace("…", "2026-11-21T06:00:00Z"))
    for name in reversed(path.split(".")):
        found = {name: found}
    return yaml.safe_dump(found)


def test_there_is_something_to_look_at():
    """Were the pages written in another way, the tests below would look at nothing."""
    assert len(LINES) > 90
    assert len(SPANS) > 60
    assert len(FILES) > 9
    assert len(QUERIES) > 3


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_only_blocks_that_a_test_reads(page):
    """A block of another language would be looked at by nobody; ``text`` and ``mermaid`` are pictures."""
    assert languages(PAGES[page]) <= {"sh", "yaml", "sql", "python", "text", "mermaid"}


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_line_of_a_shell_block_is_taken_as_it_is(page, line):
    assert problem_in(line) is None


@pytest.mark.parametrize(("page", "span"), SPANS)
def test_a_command_in_a_sentence_exists_with_its_options(page, span):
    """Its arguments may be missing there."""
    assert (dev_problem(span) if span.startswith("./dev") else problem_of(re.split(r" \| | > ", span)[0])) is None


def test_a_line_that_is_wrong_is_found():
    """Wrong words, options, values, and arguments that are missing."""
    assert problem_in("cdc walk shop") == "no command walk"
    assert "No such option: --jsn" in problem_in("cdc status shop --jsn")
    assert "Missing argument" in problem_in("cdc run")
    assert "is not one of" in problem_in("./dev cdc backfill shop --into elsewhere")
    assert "unexpected extra argument" in problem_in("cdc step rollback shop shop.orders")
    assert problem_in("./dev dance") == "./dev has no command dance"
    assert problem_in("./dev demo --loud") == "./dev demo does not take --loud"
    assert "no such package or extra" in problem_in('pip install "lakecdc[kafka]"')
    assert problem_in("airflow backfill create --dag shop") is not None
    assert problem_in("kubectl apply --kustomize docs/k8s") == "there is no docs/k8s"
    assert problem_in("terraform apply") == "no test knows the program terraform"
    assert {"demo", "test", "cdc", "docs", "demo-clean"} <= dev_usage().keys()


@pytest.mark.parametrize(("page", "block"), FILES)
def test_a_source_file_of_a_page_loads(page, block, tmp_path):
    """Whole, or as a part of the least source file; every key that it names is set then."""
    found = source_of(block, tmp_path)
    assert isinstance(found, SourceConfig)
    assert set(yaml.safe_load(block)) <= found.model_fields_set


def test_a_source_file_that_does_not_load_is_found(tmp_path):
    for block in ("verify: {wait: soon}", "modes: [{tables: a.b, mode: hourly}]", "server: {}\ntables: [a.b]"):
        with pytest.raises(ConfigError):
            source_of(block, tmp_path)


@pytest.mark.parametrize(("page", "span"), [one for one in SETTINGS if one[1] not in OF_AN_ENTRY])
def test_a_setting_in_a_sentence_is_a_valid_one(page, span, tmp_path):
    """Its key with the names of its sections, and its value."""
    assert isinstance(source_of(setting(span), tmp_path), SourceConfig)


def test_a_setting_that_is_not_valid_is_found(tmp_path):
    assert len(SETTINGS) > 30
    for span in ("legacy_temporals: whole", "attempts: 3", "failover.attempts: many"):
        with pytest.raises(ConfigError):
            source_of(setting(span), tmp_path)


@pytest.mark.parametrize(("page", "block"), QUERIES)
def test_sql_of_a_page_parses(page, block, caplog):
    """Statements for the server as MySQL's, of which accounts are not parsed; queries as Spark's, or as DuckDB's where one attaches a catalog."""
    dialect = "mysql" if "SET " in block else "duckdb" if "ATTACH " in block else "spark"
    with caplog.at_level(logging.ERROR, "sqlglot"):
        found = sqlglot.parse(block, dialect=dialect)
    assert found
    assert [
        one.sql()
        for one in found
        if isinstance(one, exp.Command) and not re.match("CREATE USER|GRANT |CREATE SECRET ", one.sql())
    ] == []


def test_sql_that_is_wrong_is_found():
    with pytest.raises(sqlglot.ParseError):
        sqlglot.parse("SELECT * FROM WHERE", dialect="spark")


def test_commands_in_a_checkout_name_their_source():
    """The source of the demo is there too, and its password only while the demo runs: ``cdc doctor`` alone ends in an error."""
    first = PAGES["docs/install.md"].partition("\n## ")[0]
    lines = [*shell_lines(first), *shell_lines(PAGES["README.md"]), *shell_lines(PAGES["docs/quickstart.md"])]
    assert {line.rpartition("cdc doctor")[2] for line in lines if "cdc doctor" in line} == {" billing"}

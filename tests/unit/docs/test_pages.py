"""Every command, source file and import that the documentation shows exists; the generated pages hold everything."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from itertools import pairwise

import pytest
import yaml
from typer.main import get_command

from cdc_lib import errors
from cdc_lib.cli.main import app
from cdc_lib.config import SourceConfig
from tests.harness.docs.pages import ROOT, blocks, commands, imports, pages, problem_of, unknown_keys

PAGES = {str(path.relative_to(ROOT)): path.read_text() for path in pages()}
COMMANDS = sorted({(page, command) for page, text in PAGES.items() for command in commands(text)})
FILES = [(page, block) for page, text in PAGES.items() for block in blocks(text, "yaml")]
OF_AIRFLOW_2 = "docs/guides/airflow-2.md"  # tests/integration/airflow/test_airflow_2.py runs it
CODE = [(page, block) for page, text in PAGES.items() if page != OF_AIRFLOW_2 for block in blocks(text, "python")]


@pytest.fixture(scope="module")
def generated():
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.pages()


def test_there_is_something_to_look_at():
    """Were the pages written in another way, the tests below would look at nothing."""
    assert len(COMMANDS) > 40
    assert len(FILES) > 8
    assert len(CODE) > 1


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_command_of_a_page_exists_with_its_options(page, command):
    assert problem_of(command) is None


def test_a_command_that_does_not_exist_is_found():
    assert problem_of("cdc walk shop") == "no command walk"
    assert problem_of("cdc status shop --jsn") == "no option --jsn"
    assert problem_of("cdc step rollback shop shop.orders") == "2 arguments where 1 are taken"


@pytest.mark.parametrize(("page", "block"), FILES)
def test_a_source_file_of_a_page_has_known_keys_only(page, block):
    assert list(unknown_keys(yaml.safe_load(block))) == []


def test_a_key_that_does_not_exist_is_found():
    assert list(unknown_keys({"failover": {"pauze": 1}, "routes": [{"tables": "a.b", "to": "c"}]})) == [
        "failover.pauze",
        "routes.to",
    ]


@pytest.mark.parametrize(("page", "code"), CODE)
def test_names_that_a_page_imports_exist(page, code):
    for module, name in imports(code):
        assert hasattr(importlib.import_module(module), name)


def test_the_configuration_page_has_every_key(generated):
    """Also those of sections in sections."""
    page = generated["reference/configuration.md"]
    assert [name for name in SourceConfig.model_fields if f"| `{name}` |" not in page] == []
    assert "## `server.tls`" in page
    assert "| `keep_snapshots_for` | `5d` |" in page


def test_the_command_page_has_every_command(generated):
    page = generated["reference/cli.md"]
    root = get_command(app)
    names = root.list_commands(root.make_context("cdc", [], resilient_parsing=True))
    assert [name for name in names if f"## `cdc {name}" not in page] == []
    paths = [name for name in re.findall(r"^## `cdc ([a-z ]+)`$", page, flags=re.MULTILINE) if " " in name]
    assert {"step ack lake", "cursor show", "quarantine list", "batches replay", "lake cuts", "consumers drop"} <= {
        *paths
    }
    assert [path for path in paths if not re.search(rf"\ncdc {path}( shop|\n)", page)] == []  # an example


def test_the_page_of_errors_has_every_class_with_its_code(generated):
    rows = {code: kind.__name__ for code, kind in errors.error_classes().items() if kind is not errors.CdcError}
    page = generated["reference/errors.md"]
    assert [name for code, name in rows.items() if f"| `{name}` | `{code}` |" not in page] == []


def test_links_of_the_readme_lead_somewhere():
    """The site's build looks at the links of its own pages."""
    links = re.findall(r"\]\(([^)#]+)", PAGES["README.md"])
    assert len(links) > 30
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_page_is_in_the_navigation_and_begins_with_its_title():
    """A page that nobody finds is none; headings go down one level at a time."""
    text = (ROOT / "mkdocs.yml").read_text()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        assert str(page.relative_to(ROOT / "docs")) in text
        lines = page.read_text().splitlines()
        assert lines[0].startswith("# ")
        levels = [len(line) - len(line.lstrip("#")) for line in lines if line.startswith("#")]
        assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_documentation_can_be_read_to_its_end():
    """About 45,000 words, and two first pages: what is said twice, or that the command line prints, is cut instead."""
    texts = {**PAGES, "ARCHITECTURE.md": (ROOT / "ARCHITECTURE.md").read_text()}
    assert sum(len(text.split()) for text in texts.values()) <= 46_000
    assert len(PAGES["README.md"].splitlines()) <= 110
    assert len(texts["ARCHITECTURE.md"].split()) <= 700

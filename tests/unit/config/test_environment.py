from __future__ import annotations

import pytest

from cdc_lib.config import load_source
from cdc_lib.config.environment import fill_in
from cdc_lib.errors import ConfigError


def filled(value, **environ):
    """Fill in a value that has no problems."""
    problems = {}
    result = fill_in(value, environ, problems)
    assert problems == {}
    return result


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("${A}", {"A": "x"}, "x"),
        ("a${A}b${A}c", {"A": "x"}, "axbxc"),
        ("${A:-y}", {}, "y"),
        ("${A:-y}", {"A": ""}, "y"),
        ("${A:-y}", {"A": "x"}, "x"),
        ("${A:-}", {}, None),
        ("${A}", {"A": ""}, None),
        ("b${A:-}", {}, "b"),
        ("${A:-http://h:1/}", {}, "http://h:1/"),
        ("$${A}", {}, "${A}"),
        ("$A and $ and {A}", {"A": "x"}, "$A and $ and {A}"),
        ("${A}", {"A": "${B}"}, "${B}"),
    ],
)
def test_references_are_filled_in_as_a_shell_does(text, environ, expected):
    """Values of variables are not read for references again; a lone empty one means null."""
    assert filled(text, **environ) == expected


def test_only_texts_are_touched():
    """At any depth."""
    assert filled({"a": [1, {"b": "${X}"}], "c": None, "d": True}, X="y") == {
        "a": [1, {"b": "y"}],
        "c": None,
        "d": True,
    }


def test_every_unset_variable_is_reported_with_its_key():
    """All at once; the value stays as it is."""
    problems = {}
    value = {"store": {"url": "${URL}"}, "tables": ["${T}", "ok"]}
    assert fill_in(value, {}, problems) == value
    assert set(problems) == {("store", "url"), ("tables", 0)}
    assert "URL is not set" in problems["store", "url"]


@pytest.mark.parametrize("name", ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW_CONN_BANK"])
def test_a_source_file_reads_no_secret_of_airflow(tmp_path, name):
    """Neither inside a text, where an error would print it, nor as a password; a default does not help."""
    for text in (f"${{{name}}}", f"${{{name}:-x}}"):
        problems = {}
        assert fill_in({"k": text}, {name: "s3cret"}, problems) == {"k": text}
        assert "is Airflow's own" in problems["k",]
    file = tmp_path / "shop.yaml"
    file.write_text(f"server: {{host: h, user: u, password_env: {name}}}\ntables: ['a.*']\n")
    with pytest.raises(ConfigError, match=f"{name} is Airflow's own"):
        load_source(file, {name: "s3cret"})


@pytest.mark.parametrize("text", ["${", "${A", "${A B}", "${1A}", "${A:+x}"])
def test_a_malformed_reference_is_reported(text):
    """Instead of being taken literally."""
    problems = {}
    fill_in({"k": text}, {"A": "x"}, problems)
    assert ("k",) in problems


def test_a_worker_may_say_which_variables_a_source_file_reads(tmp_path, monkeypatch):
    """By how their names begin; as a text of the file and as a password."""
    monkeypatch.setenv("CDC_VARIABLES", "SHOP_, CDC_")
    problems = {}
    assert fill_in({"a": "${SHOP_HOST}", "b": "${HOME}"}, {"SHOP_HOST": "h", "HOME": "/root"}, problems) == {
        "a": "h",
        "b": "${HOME}",
    }
    assert "CDC_VARIABLES allows those that begin with SHOP_ or CDC_" in problems["b",]
    file = tmp_path / "shop.yaml"
    file.write_text("server: {host: h, user: u, password_env: BANK_PASSWORD}\ntables: ['a.*']\n")
    with pytest.raises(ConfigError, match="takes no variable BANK_PASSWORD here"):
        load_source(file, {"BANK_PASSWORD": "s3cret"})

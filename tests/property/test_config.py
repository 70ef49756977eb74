from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.config import SourceConfig, load_source
from cdc_lib.config.documents import parse_document
from cdc_lib.config.environment import fill_in
from cdc_lib.config.patterns import matches
from cdc_lib.errors import ConfigError
from cdc_lib.model.table_name import TableName

SHOP = Path("shop.yaml")
KEYS = st.one_of(st.sampled_from(["source", *SourceConfig.model_fields, "url", "host", "type", "password"]), st.text())
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.dates())
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=10
)
NAMES = st.text(alphabet="abAB_-$.[]+ é", min_size=1, max_size=8)


@given(st.text())
def test_any_text_is_a_document_or_a_config_error(text):
    """No other exception leaves the reader, whatever a person typed."""
    try:
        document = parse_document(text, SHOP)
    except ConfigError:
        return
    assert isinstance(document.values, dict)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_yaml_is_a_source_or_a_config_error(tmp_path_factory, values):
    """Every problem is named in words, none of them by an exception of a library."""
    path = tmp_path_factory.mktemp("sources") / "shop.yaml"
    path.write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:  # no such file is whole
        load_source(path, {})
    assert "shop" in str(caught.value)


@given(VALUES)
def test_filling_in_leaves_values_without_references_as_they_are(value):
    """Also those that it cannot know, such as dates."""
    if "${" not in repr(value):
        problems = {}
        assert repr(fill_in(value, {}, problems)) == repr(value)
        assert problems == {}


@given(NAMES, NAMES)
def test_a_name_written_out_matches_itself_alone(one, other):
    """Nothing in it is wild."""
    assert matches(TableName(one, other), one, other)
    assert matches(TableName(one, other), one, other + "x") is False


@given(st.text(alphabet="ab*?", min_size=1, max_size=6), st.text(alphabet="ab", max_size=6))
def test_wildcards_mean_what_the_shell_means_by_them(pattern, name):
    """The standard library's matcher agrees where both know the characters."""
    assert matches(f"d.{pattern}", "d", name) == fnmatch.fnmatchcase(name, pattern)
